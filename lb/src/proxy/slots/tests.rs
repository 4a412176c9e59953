use std::time::Duration;

use super::*;

// [RELOAD-22]
#[tokio::test(start_paused = true)]
async fn a_lowered_limit_counts_what_is_taken_and_a_raised_one_wakes_who_waits() {
    let slots = Arc::new(Slots::new(3));
    let mut held: Vec<_> = (0..3).map(|_| slots.try_take().expect("free")).collect();
    slots.set_limit(1);
    held.pop();
    assert!(slots.try_take().is_none(), "two are taken, one is allowed");
    let waiting = tokio::spawn({
        let slots = Arc::clone(&slots);
        async move { slots.take().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    slots.set_limit(3);
    held.push(waiting.await.expect("no panic"));
    assert_eq!(slots.taken(), 3);
    drop(slots.take_beyond());
    held.clear();
    assert_eq!(slots.taken(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_freed_goes_to_one_who_waits_even_if_another_has_given_up() {
    let slots = Arc::new(Slots::new(1));
    let held = slots.try_take().expect("free");
    let gave_up = tokio::time::timeout(Duration::from_millis(1), slots.take()).await;
    assert!(gave_up.is_err());
    let waiting = tokio::spawn({
        let slots = Arc::clone(&slots);
        async move { slots.take().await }
    });
    tokio::task::yield_now().await;
    drop(held);
    drop(waiting.await.expect("no panic"));
    assert_eq!(slots.taken(), 0);
}
