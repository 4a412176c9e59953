use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// How long a stream lasts whose client does this.
async fn lasts(client: impl AsyncFnOnce(&Flow)) -> Duration {
    let begun = Instant::now();
    let flow = Arc::new(Flow::new(begun));
    let shared = Arc::clone(&flow);
    let stream = async move { client(&shared).await };
    taken(stream, flow, 10 * SECOND).await;
    begun.elapsed()
}

// [HTTP-44]
#[tokio::test(start_paused = true)]
async fn a_stream_whose_client_takes_nothing_is_given_up() {
    let never = lasts(async |flow| {
        flow.gave();
        std::future::pending::<()>().await;
    });
    assert_eq!(never.await, 10 * SECOND);
    let late = lasts(async |flow| {
        for _ in 0..5 {
            flow.gave();
            tokio::time::sleep(9 * SECOND).await;
            flow.asked();
        }
        flow.gave();
        std::future::pending::<()>().await;
    });
    assert_eq!(late.await, 55 * SECOND);
}

// [HTTP-44]
#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_for_its_upstream_is_left_alone() {
    let quiet = lasts(async |flow| {
        flow.gave();
        flow.asked();
        tokio::time::sleep(1000 * SECOND).await;
    });
    assert_eq!(quiet.await, 1000 * SECOND);
}
