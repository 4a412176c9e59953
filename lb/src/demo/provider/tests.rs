use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Plant, Provider};
use crate::demo::client::{Ending, chat};

const PREFILL: Duration = Duration::from_millis(100);

// [DEMO-4]
#[tokio::test(start_paused = true)]
async fn the_first_token_takes_the_prefill_below_capacity_and_queues_above() {
    let plant = Arc::new(Plant::new(2, PREFILL));
    let begun = Instant::now();
    let requests: JoinSet<_> = (0..5)
        .map(|_| {
            let plant = Arc::clone(&plant);
            async move {
                plant.first_token().await;
                begun.elapsed()
            }
        })
        .collect();
    let mut times = requests.join_all().await;
    times.sort_unstable();
    assert_eq!(times, [PREFILL, PREFILL, PREFILL * 2, PREFILL * 2, PREFILL * 3]);
}

// [DEMO-4]
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_gives_its_place_to_the_next() {
    let plant = Plant::new(1, PREFILL);
    let begun = Instant::now();
    let impatient = tokio::time::timeout(PREFILL / 2, plant.first_token());
    let (left, ()) = tokio::join!(impatient, plant.first_token());
    assert!(left.is_err());
    assert_eq!(begun.elapsed(), PREFILL / 2 + PREFILL);
}

#[tokio::test]
async fn it_streams_a_whole_answer_and_dies_and_returns_on_the_same_port() {
    let mut provider = Provider::start("gpu", Plant::new(1, Duration::ZERO))
        .await
        .unwrap();
    let address = provider.address;
    assert_eq!(chat(address).await.ending, Ending::Answered);
    provider.kill().await;
    assert_eq!(chat(address).await.ending, Ending::Failed);
    provider.revive().await.unwrap();
    assert_eq!(chat(address).await.ending, Ending::Answered);
}
