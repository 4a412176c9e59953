use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::config;
use crate::metrics::Metrics;
use crate::policy::cascade::Stop;
use crate::policy::draw::Draw;
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;

mod room;

const TEXT: &str = "
version: 1
listeners: [{ name: l, address: '127.0.0.1:0' }]
providers:
  gpu: { concurrency: 1, retries: { max_attempts: 1 }, endpoints: [{ url: 'http://127.0.0.1:1' }], health: { consecutive_failures: 2 } }
  alt: { retries: { max_attempts: 1 }, endpoints: [{ url: 'http://127.0.0.1:2' }, { url: 'http://127.0.0.1:3' }] }
models:
  chat: { targets: [{ provider: gpu }, { provider: alt, upstream_model: big }] }
  'org/*': { targets: [{ provider: alt }] }
  'org/deep/*': { targets: [{ provider: gpu }] }
";

const STREAM: Sent = Sent {
    streaming: true,
    exempt: false,
    replayable: true,
    repeatable: true,
    idempotent: false,
};

fn table(text: &str) -> (Table, Metrics) {
    let metrics = Metrics::new(&[Duration::from_secs(10)]);
    let config = config::parse(text, "test.yaml", &|_| None)
        .expect("a valid file")
        .config;
    let keys = vec![None; config.providers.len()];
    let mut context = Context {
        metrics: &metrics,
        keys: &keys,
        sites: &sites(&config, |_, _, _| Vec::new()),
        now: Instant::default(),
        before: None,
        draw: &mut || Draw::new(0.0),
    };
    (Table::build(&config, &mut context), metrics)
}

fn at(millis: u64) -> Instant {
    Instant::default() + Duration::from_millis(millis)
}

fn begin(table: &Table, model: &str) -> Run {
    Run::begin(Arc::clone(table.find(model).expect("configured")), STREAM, at(0))
}

fn attempt(run: &mut Run, now: Instant) -> Attempt {
    match run.next(now, &mut || Draw::new(0.0)) {
        Step::Try(attempt) => attempt,
        step => panic!("nothing to try: {step:?}"),
    }
}

fn provider(attempt: &Attempt) -> &str {
    &attempt.claim().provider().name
}

// [TABLE-1]
#[test]
fn an_exact_name_wins_over_a_family_and_a_longer_family_over_a_shorter() {
    let (table, _) = table(&format!(
        "{TEXT}  'org/one': {{ targets: [{{ provider: gpu }}] }}\n"
    ));
    let found = |name: &str| table.find(name).map(|chain| chain.name.to_string());
    assert_eq!(found("org/one").as_deref(), Some("org/one"));
    assert_eq!(found("org/two").as_deref(), Some("org/*"));
    assert_eq!(found("org/deep/three").as_deref(), Some("org/deep/*"));
    assert_eq!(found("else"), None);
    let listed: Vec<_> = table.listed().iter().map(|listed| &*listed.name).collect();
    assert_eq!(listed, ["chat", "org/one"]);
}

// [TABLE-2]
#[test]
fn a_dropped_attempt_leaves_nothing_behind_and_blames_nobody() {
    let (table, metrics) = table(TEXT);
    let attempt = attempt(&mut begin(&table, "chat"), at(0));
    assert_eq!(provider(&attempt), "gpu");
    let state = table.state(at(1));
    assert_eq!(
        (
            state.providers[0].in_flight,
            state.providers[0].endpoints[0].in_flight
        ),
        (1, 1)
    );
    assert_eq!(state.models[0].pools[0].in_flight, Some(1));
    drop(attempt);
    let state = table.state(at(2));
    assert_eq!(
        (
            state.providers[0].in_flight,
            state.providers[0].endpoints[0].in_flight
        ),
        (0, 0)
    );
    assert_eq!(state.models[0].pools[0].in_flight, Some(0));
    assert_eq!(state.providers[0].endpoints[0].state, "healthy");
    let text = metrics.exposition();
    assert!(text.contains("lb_aimd_samples_total{model=\"chat\",outcome=\"unknown\",pool=\"default\"} 1"));
    assert!(text.contains("lb_attempts_total{model=\"chat\",outcome=\"cancelled\",provider=\"gpu\"} 1"));
    assert!(text.contains("lb_inflight_requests{model=\"chat\"} 0"));
}

// [TABLE-3]
#[test]
fn a_full_provider_is_skipped_and_a_chain_of_nothing_else_says_full() {
    let (table, _) = table(TEXT);
    let held = attempt(&mut begin(&table, "chat"), at(0));
    assert_eq!(provider(&attempt(&mut begin(&table, "chat"), at(0))), "alt");
    let step = begin(&table, "org/deep/x").next(at(0), &mut || Draw::new(0.0));
    assert!(matches!(step, Step::Stop(Stop::Full)));
    drop(held);
    assert_eq!(provider(&attempt(&mut begin(&table, "org/deep/x"), at(0))), "gpu");
}

// [TABLE-4]
#[test]
fn an_error_that_is_passed_on_whole_still_counts_towards_ejection() {
    let (table, metrics) = table(TEXT);
    for millis in [0, 10] {
        let mut run = begin(&table, "org/deep/x");
        let attempt = attempt(&mut run, at(millis));
        let settled = attempt.settle(
            &mut run,
            at(millis + 1),
            &Ended::Status { code: 500 },
            Draw::new(0.0),
        );
        let Settled::PassOn(tail) = settled else {
            panic!("the only target's answer is passed on")
        };
        tail.clean_end();
    }
    assert_eq!(table.state(at(20)).providers[0].endpoints[0].state, "ejected");
    let text = metrics.exposition();
    let series = "lb_ejections_total{cause=\"consecutive_failures\",endpoint=\"gpu-0\",provider=\"gpu\"} 1";
    assert!(text.contains(series));
}

// [TABLE-5]
#[test]
fn with_all_endpoints_out_one_is_tried_all_the_same_and_counted() {
    let (table, metrics) = table(TEXT);
    for _ in 0..2 {
        let mut run = begin(&table, "org/deep/x");
        let attempt = attempt(&mut run, at(0));
        assert!(matches!(
            attempt.settle(&mut run, at(1), &Ended::Connect, Draw::new(0.0)),
            Settled::Fail
        ));
    }
    assert_eq!(provider(&attempt(&mut begin(&table, "chat"), at(2))), "alt");
    assert_eq!(provider(&attempt(&mut begin(&table, "org/deep/x"), at(2))), "gpu");
    assert!(
        metrics
            .exposition()
            .contains("lb_fail_open_picks_total{provider=\"gpu\"} 1")
    );
}

// [TABLE-6]
#[test]
fn a_stale_connection_is_tried_again_under_the_same_claim() {
    let (table, _) = table(TEXT);
    let mut run = begin(&table, "chat");
    let first = attempt(&mut run, at(0));
    let Settled::Again(again) = first.settle(&mut run, at(1), &Ended::StaleConnection, Draw::new(0.0)) else {
        panic!("a stale connection is no attempt at all");
    };
    assert_eq!((provider(&again), run.attempts()), ("gpu", 1));
    assert_eq!(table.state(at(1)).providers[0].in_flight, 1);
}

// [TABLE-7]
#[test]
fn a_deadline_is_armed_only_where_another_attempt_could_follow_and_the_request_allows_it() {
    let (table, _) = table(TEXT);
    let armed = |sent: Sent| {
        let mut run = Run::begin(Arc::clone(table.find("chat").expect("configured")), sent, at(0));
        let first = attempt(&mut run, at(0)).first_token_deadline();
        (first, attempt(&mut run, at(0)).first_token_deadline())
    };
    assert_eq!(armed(STREAM), (Some(at(20_000)), None));
    assert_eq!(
        armed(Sent {
            exempt: true,
            ..STREAM
        }),
        (None, None)
    );
    assert_eq!(
        armed(Sent {
            streaming: false,
            ..STREAM
        }),
        (None, None)
    );
    assert_eq!(
        armed(Sent {
            replayable: false,
            ..STREAM
        }),
        (None, None)
    );
    assert_eq!(
        armed(Sent {
            repeatable: false,
            ..STREAM
        }),
        (None, None)
    );
}
