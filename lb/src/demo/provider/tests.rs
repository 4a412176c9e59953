use std::time::Duration;

use super::{Plant, Provider};
use crate::demo::client::{Ending, chat};

const PREFILL: Duration = Duration::from_millis(100);

// [DEMO-4]
#[test]
fn the_first_token_takes_longer_with_every_request_in_the_batch() {
    let plant = Plant::new(PREFILL, 2);
    let places: Vec<_> = (0..5).map(|_| plant.enter()).collect();
    let times: Vec<_> = places
        .iter()
        .map(|(_, first_token)| first_token.as_millis())
        .collect();
    assert_eq!(times, [100, 150, 200, 250, 300]);
}

// [DEMO-4]
#[test]
fn a_client_that_leaves_gives_its_place_up() {
    let plant = Plant::new(PREFILL, 2);
    let places: Vec<_> = (0..4).map(|_| plant.enter()).collect();
    drop(places);
    assert_eq!(plant.enter().1, PREFILL);
}

#[tokio::test]
async fn it_streams_a_whole_answer_and_dies_and_returns_on_the_same_port() {
    let mut provider = Provider::start("gpu", Plant::new(Duration::ZERO, 1))
        .await
        .unwrap();
    let address = provider.address;
    assert_eq!(chat(address).await.ending, Ending::Answered);
    provider.kill().await;
    assert_eq!(chat(address).await.ending, Ending::Failed);
    provider.revive().await.unwrap();
    assert_eq!(chat(address).await.ending, Ending::Answered);
}
