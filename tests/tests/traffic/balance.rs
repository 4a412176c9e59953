//! Which endpoint of a provider is chosen.

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

use crate::with;

/// Two endpoints of one provider, chosen by `balance`.
async fn lb(balance: &str) -> (Provider, Provider, Lb) {
    let [one, two] = [(); 2].map(|()| Provider::start(Script::completion("ok")));
    let (one, two) = (one.await, two.await);
    let setup = Setup::new()
        .at("gpu", &[&one.url(), &two.url()])
        .provider(balance);
    let lb = Lb::start(&setup).await;
    (one, two, lb)
}

fn counts(one: &Provider, two: &Provider) -> [usize; 2] {
    [one.requests().len(), two.requests().len()]
}

// [BALANCE-1] [BALANCE-3]
#[tokio::test]
async fn in_turn_each_endpoint_gets_its_part_to_the_request() {
    let (one, two, lb) = lb("balance: round_robin").await;
    for sent in 1..=4 {
        assert_eq!(lb.chat(false).await.status(), 200);
        assert_eq!(counts(&one, &two).iter().sum::<usize>(), sent);
        assert!(counts(&one, &two).iter().all(|count| *count >= sent / 2));
    }
    lb.idle().await;
}

// [BALANCE-2]
#[tokio::test]
async fn by_chance_everybody_gets_some() {
    let (one, two, lb) = lb("balance: random").await;
    for _ in 0..60 {
        assert_eq!(lb.chat(false).await.status(), 200);
    }
    // Sixty in a row at one of the two happen once in 2^59 runs.
    assert!(
        counts(&one, &two).iter().all(|count| *count > 0),
        "{:?}",
        counts(&one, &two)
    );
}

// [BALANCE-4]
#[tokio::test]
async fn by_latency_an_endpoint_that_fails_fast_is_left_alone() {
    let (one, two, lb) =
        lb("balance: peak_ewma, health: { enabled: false }, retries: { max_attempts: 1 }").await;
    one.otherwise(Script::error(400));
    one.next(Script::error(500));
    for _ in 0..20 {
        lb.chat(false).await;
    }
    let [failing, working] = counts(&one, &two);
    assert!(failing <= 1, "{failing} requests went where the first had failed");
    assert_eq!(failing + working, 20);
}

// [BALANCE-5]
#[tokio::test]
async fn by_a_key_the_same_key_meets_the_same_endpoint() {
    let (one, two, lb) = lb("balance: hash, hash_key: 'header:x-session'").await;
    for session in 0..12 {
        let before = counts(&one, &two);
        for _ in 0..3 {
            assert_eq!(
                lb.ask(with(&format!("x-session: s{session}"))).await.status(),
                200
            );
        }
        let after = counts(&one, &two);
        let gained = [after[0] - before[0], after[1] - before[1]];
        assert!(
            gained == [3, 0] || gained == [0, 3],
            "session {session}: {gained:?}"
        );
    }
    assert!(
        counts(&one, &two).iter().all(|count| *count > 0),
        "all sessions at one endpoint"
    );
}

// [BALANCE-5] [BALANCE-6]
#[tokio::test]
async fn by_address_a_crowd_behind_one_overflows_to_the_other_endpoint() {
    let (one, two, lb) = lb("balance: hash").await;
    for provider in [&one, &two] {
        provider.otherwise(Script::stream().token("a").stall());
    }
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut exchange = lb.begin().await;
        exchange.head().await;
        open.push(exchange);
    }
    let mut counts = counts(&one, &two);
    counts.sort_unstable();
    // A quarter more than its half of what is in flight, rounded up.
    assert_eq!(counts, [3, 5]);
    drop(open);
    lb.idle().await;
}
