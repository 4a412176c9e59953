use std::future::poll_fn;

use super::*;
use crate::proxy::insert::{Inserts, KeepAlive};

/// What happens first of all that can in a silence.
#[derive(Debug, PartialEq, Eq)]
enum First {
    Comment,
    TooLong,
}

/// A silence with a limit of a second, and comments every 300 ms.
struct Stage {
    clock: Clock,
    begun: Instant,
    silence: Silence,
    keepalive: Option<KeepAlive>,
}

impl Stage {
    fn new() -> Self {
        let clock = Clock::start();
        let text = "version: 1\nlisteners: [{ name: a, address: \"127.0.0.1:0\" }]\n\
                    providers: { p: { endpoints: [{ url: http://127.0.0.1:1 }] } }\n\
                    models: { m: { sse_keepalive_ms: 300, targets: [{ provider: p }] } }\n";
        let checked = crate::config::parse(text, "test", &|_| None).expect("valid");
        let inserts = Inserts::of(&checked.config.models[0]).expect("something to say");
        Self {
            begun: clock.now(),
            clock,
            silence: Silence::new(Some(Duration::from_secs(1)), None),
            keepalive: inserts.keepalive,
        }
    }

    /// What happens next, and how many milliseconds after the beginning. Timers are good to a millisecond.
    async fn next(&mut self) -> (First, u128) {
        let first = poll_fn(|cx| {
            let now = self.clock.now();
            let since = self.silence.goes_on(now, None);
            if self
                .silence
                .poll_too_long(cx, (since, now), &self.clock)
                .is_ready()
            {
                return Poll::Ready(First::TooLong);
            }
            let keepalive = self.keepalive.as_mut().expect("as configured");
            keepalive
                .poll(cx, (since, now), &self.clock)
                .map(|_| First::Comment)
        });
        let first = first.await;
        (first, self.clock.now().since(self.begun).as_millis() / 10 * 10)
    }
}

// [INSERT-2]
#[tokio::test(start_paused = true)]
async fn comments_come_at_their_interval_and_do_not_put_the_limit_off() {
    let mut stage = Stage::new();
    for expected in [300, 600, 900] {
        assert_eq!(stage.next().await, (First::Comment, expected));
    }
    assert_eq!(stage.next().await, (First::TooLong, 1000));
}

// [INSERT-2] [STREAM-10]
#[tokio::test(start_paused = true)]
async fn what_arrives_puts_off_both() {
    let mut stage = Stage::new();
    assert_eq!(stage.next().await, (First::Comment, 300));
    tokio::time::sleep(Duration::from_millis(200)).await;
    stage.silence.broken();
    for expected in [800, 1100, 1400] {
        assert_eq!(stage.next().await, (First::Comment, expected));
    }
    assert_eq!(stage.next().await, (First::TooLong, 1500));
}

// [STREAM-10]
#[tokio::test(start_paused = true)]
async fn a_silence_without_a_limit_lasts() {
    let mut stage = Stage::new();
    stage.silence = Silence::new(None, None);
    stage.keepalive = None;
    let forever = poll_fn(|cx| {
        let now = stage.clock.now();
        let since = stage.silence.goes_on(now, None);
        stage.silence.poll_too_long(cx, (since, now), &stage.clock)
    });
    let day = Duration::from_hours(24);
    assert!(tokio::time::timeout(day, forever).await.is_err());
}
