use std::time::Duration;

use http_body_util::BodyExt as _;

use super::*;
use crate::proxy::budget::Budget;

/// A client that sends a byte every so often, and says so.
struct Slow(Pin<Box<Sleep>>, Duration, usize);

impl http_body::Body for Slow {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        ready!(self.0.as_mut().poll(cx));
        let next = Instant::now() + self.1;
        self.0.as_mut().reset(next);
        if self.2 == 0 {
            return Poll::Ready(None);
        }
        self.2 -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
    }
}

fn slow(every: Duration, chunks: usize, max_body_bytes: u64) -> Source {
    let rules = Rules {
        max_body_bytes,
        body_timeout: Duration::from_mins(1),
        body_grace: Duration::from_secs(10),
    };
    let body = Slow(Box::pin(tokio::time::sleep(every)), every, chunks);
    let budget = Arc::new(Budget::new(100));
    Source::new(Rest::new(
        body,
        rules,
        Reading::Opaque,
        (0, None),
        Held::new(&budget),
    ))
}

async fn passed(source: &Source, pause: Duration) -> (Result<usize, CutOff>, Duration) {
    let begun = Instant::now();
    let mut passing = source.pass(Vec::new(), Vec::new());
    let mut length = 0;
    loop {
        match passing.frame().await {
            None => return (Ok(length), begun.elapsed()),
            Some(Err(cut)) => return (Err(cut), begun.elapsed()),
            Some(Ok(frame)) => length += frame.data_ref().map_or(0, Bytes::len),
        }
        tokio::time::sleep(pause).await;
    }
}

// [BODY-3] [HTTP-38]
#[tokio::test(start_paused = true)]
async fn a_slow_client_is_given_up_and_a_slow_provider_is_not_held_against_it() {
    let second = Duration::from_secs(1);
    let source = slow(second, 30, 1000);
    let (ended, after) = passed(&source, Duration::ZERO).await;
    assert!(ended.is_err() && source.refused() == Some(Refusal::SlowBody));
    assert_eq!(after, 10 * second + second / 50, "each byte earns 2 ms");
    // Nobody asked for the bytes any sooner.
    let source = slow(second / 10, 30, 1000);
    let (ended, after) = passed(&source, 5 * second).await;
    assert!(
        matches!(ended, Ok(30)) && after > 100 * second,
        "{ended:?} after {after:?}"
    );
}

// [LIMIT-4]
#[tokio::test(start_paused = true)]
async fn a_body_is_limited_while_it_is_streamed_as_well() {
    let source = slow(Duration::ZERO, 30, 29);
    assert!(passed(&source, Duration::ZERO).await.0.is_err());
    assert_eq!(source.refused(), Some(Refusal::TooLarge { limit: 29 }));
}
