use super::*;
use crate::proxy::service::Rules;

const SECOND: Duration = Duration::from_secs(1);

fn limits() -> Limits {
    Limits {
        rules: Rules {
            max_body_bytes: 1,
            body_timeout: SECOND,
            body_grace: SECOND,
        },
        first_byte_timeout: 3 * SECOND,
        header_timeout: 5 * SECOND,
        idle_timeout: 20 * SECOND,
        write_timeout: 7 * SECOND,
    }
}

fn activity() -> Arc<Activity> {
    Arc::new(Activity::new(Instant::now()))
}

/// When, after now, the timer strikes, and why; `happens` is polled first, as the socket's driver is.
async fn strikes(activity: &Activity, happens: impl Future<Output = ()>) -> (Duration, Expiry) {
    let begun = Instant::now();
    let mut happens = pin!(happens);
    let mut over = false;
    let limits = limits();
    let mut expired = pin!(activity.expired(&limits));
    let expiry = poll_fn(|cx| {
        over = over || happens.as_mut().poll(cx).is_ready();
        expired.as_mut().poll(cx)
    })
    .await;
    (begun.elapsed(), expiry)
}

async fn after(seconds: u32) {
    tokio::time::sleep(seconds * SECOND).await;
}

// [HTTP-21]
#[tokio::test(start_paused = true)]
async fn a_silent_connection_ends_after_the_first_byte_timeout() {
    let activity = activity();
    activity.opened(Version::Http1);
    assert_eq!(
        strikes(&activity, async {}).await,
        (3 * SECOND, Expiry::FirstByte)
    );
}

// [HTTP-22]
#[tokio::test(start_paused = true)]
async fn a_head_is_given_its_time_from_its_first_byte_and_no_more_for_further_ones() {
    let activity = activity();
    let drips = async {
        loop {
            after(1).await;
            activity.read();
        }
    };
    assert_eq!(strikes(&activity, drips).await, (6 * SECOND, Expiry::Head));
}

// [HTTP-23]
#[tokio::test(start_paused = true)]
async fn a_request_may_last_and_the_idle_time_begins_at_its_end() {
    let activity = activity();
    let request = async {
        activity.read();
        let busy = activity.begin_request(None);
        after(500).await;
        drop(busy);
    };
    assert_eq!(strikes(&activity, request).await, (520 * SECOND, Expiry::Idle));
}

// [HTTP-22]
#[tokio::test(start_paused = true)]
async fn a_slow_head_on_a_kept_connection_is_noticed_in_time() {
    let activity = activity();
    drop(activity.begin_request(None));
    let second = async {
        after(10).await;
        activity.read();
    };
    assert_eq!(strikes(&activity, second).await, (15 * SECOND, Expiry::Head));
}

// [HTTP-24]
#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_cut_and_one_that_takes_a_little_is_not() {
    let activity = activity();
    let _busy = activity.begin_request(None);
    let writes = async {
        for _ in 0..3 {
            activity.stalled(Instant::now());
            after(6).await;
            activity.wrote();
        }
        activity.stalled(Instant::now());
        after(1).await;
        activity.stalled(Instant::now());
    };
    assert_eq!(strikes(&activity, writes).await, (25 * SECOND, Expiry::Stalled));
}

// [HTTP-25]
#[tokio::test(start_paused = true)]
async fn over_http2_bytes_without_a_request_keep_nothing_alive() {
    let activity = activity();
    activity.opened(Version::Http2);
    let pings = async {
        loop {
            after(1).await;
            activity.read();
        }
    };
    assert_eq!(strikes(&activity, pings).await, (3 * SECOND, Expiry::FirstByte));
    let (one, two) = (activity.begin_request(None), activity.begin_request(None));
    let requests = async {
        after(100).await;
        drop(one);
        after(100).await;
        drop(two);
    };
    assert_eq!(strikes(&activity, requests).await, (220 * SECOND, Expiry::Idle));
}

// [HTTP-23]
#[tokio::test(start_paused = true)]
async fn an_end_that_the_driver_does_not_see_is_noticed_within_one_idle_time_more() {
    let activity = activity();
    let busy = activity.begin_request(None);
    let elsewhere = Arc::clone(&activity);
    tokio::spawn(async move {
        after(30).await;
        drop(busy);
        drop(elsewhere);
    });
    let (when, expiry) = strikes(&activity, std::future::pending()).await;
    assert_eq!(expiry, Expiry::Idle);
    assert!((50 * SECOND..=70 * SECOND).contains(&when), "{when:?}");
}

// [HTTP-26]
#[tokio::test(start_paused = true)]
async fn request_after_request_given_up_wears_the_connection_out_and_then_ends_it() {
    let activity = activity();
    for _ in 0..3 * MAX_ABANDONED {
        let mut busy = activity.begin_request(None);
        busy.answered();
    }
    for _ in 0..MAX_ABANDONED {
        drop(activity.begin_request(None));
    }
    assert!(!activity.is_worn());
    drop(activity.begin_request(None));
    assert!(activity.is_worn());
    for _ in 1..MAX_ABANDONED {
        drop(activity.begin_request(None));
    }
    assert_eq!(strikes(&activity, async {}).await, (20 * SECOND, Expiry::Idle));
    for _ in 0..=20 * 20 {
        drop(activity.begin_request(None));
    }
    assert_eq!(
        strikes(&activity, async {}).await,
        (Duration::ZERO, Expiry::Abandoned)
    );
    assert!(activity.is_worn());
}

// [HTTP-26]
#[tokio::test(start_paused = true)]
async fn requests_given_up_now_and_then_are_forgiven() {
    let activity = activity();
    // 20 a second for a quarter of an hour, however they are bunched.
    for _ in 0..9 {
        for _ in 0..MAX_ABANDONED {
            drop(activity.begin_request(None));
        }
        tokio::time::sleep(FORGIVING * MAX_ABANDONED).await;
    }
    for _ in 0..9 * MAX_ABANDONED {
        drop(activity.begin_request(None));
        tokio::time::sleep(FORGIVING).await;
    }
    assert!(!activity.is_worn());
}
