use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;

// [PROXY-13]
#[tokio::test(start_paused = true)]
async fn what_is_ready_when_its_deadline_passes_still_counts() {
    let at = Instant::now() + Duration::from_secs(20);
    let there = pin!(async {
        sleep(Duration::from_secs(20)).await;
        "there"
    });
    assert_eq!(until(Some(at), there).await, Some("there"));
}

// [PROXY-13]
#[tokio::test(start_paused = true)]
async fn what_comes_after_its_deadline_does_not_count() {
    let begun = Instant::now();
    let late = pin!(sleep(Duration::from_millis(20_001)));
    assert_eq!(until(Some(begun + Duration::from_secs(20)), late).await, None);
    assert_eq!(begun.elapsed(), Duration::from_secs(20));
    assert_eq!(until(None, pin!(sleep(Duration::from_hours(1)))).await, Some(()));
}

#[test]
fn the_earlier_of_two_deadlines_holds_and_either_may_be_off() {
    assert_eq!(earlier(Some(2), Some(1)), Some(1));
    assert_eq!(earlier(None, Some(1)), Some(1));
    assert_eq!(earlier(Some(2), None), Some(2));
    assert_eq!(earlier::<u8>(None, None), None);
}
