use std::time::Duration;

use super::*;
use crate::config;
use crate::metrics::Metrics;
use crate::upstream::run::{Sent, Step};
use crate::upstream::{Context, Settled, Table, sites};

/// One provider of two endpoints, and one behind it; `more` is set for the first one's retries.
fn table(more: &str) -> (Table, Metrics) {
    let text = format!(
        "version: 1\nlisteners: [{{ name: l, address: '127.0.0.1:0' }}]\nproviders:\n  gpu: {{ retries: {{ \
         hedge_after_ms: 100, {more} }}, endpoints: [{{ url: 'http://127.0.0.1:1' }}, {{ url: 'http://127.0.0.1:2' }}] \
         }}\n  alt: {{ endpoints: [{{ url: 'http://127.0.0.1:3' }}] }}\nmodels:\n  chat: {{ targets: [{{ provider: gpu \
         }}, {{ provider: alt }}] }}\n  alone: {{ targets: [{{ provider: alt }}] }}\npresets:\n  quick: {{ model: chat }}\n"
    );
    let metrics = Metrics::new(&[Duration::from_secs(10)]);
    let config = match config::parse(&text, "test.yaml", &|_| None) {
        Ok(checked) => checked.config,
        Err(failure) => panic!("{failure:?}"),
    };
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

const STREAM: Sent = Sent {
    streaming: true,
    exempt: false,
    replayable: true,
    repeatable: true,
    idempotent: false,
};

fn at(millis: u64) -> Instant {
    Instant::default() + Duration::from_millis(millis)
}

fn draw() -> Draw {
    Draw::new(0.0)
}

fn first(table: &Table, model: &str, sent: Sent) -> (Run, Attempt) {
    let mut run = Run::begin(Arc::clone(table.find(model).expect("configured")), sent, at(0));
    match run.next(at(0), &mut draw) {
        Step::Try(attempt) => (run, attempt),
        step => panic!("nothing to try: {step:?}"),
    }
}

fn both(table: &Table) -> (Run, Attempt, Attempt) {
    let (mut run, original) = first(table, "chat", STREAM);
    let hedging = original.hedging().expect("set");
    let hedge = run.hedge(at(100), hedging, draw()).expect("room for it");
    (run, original, hedge)
}

fn count(metrics: &Metrics, series: &str) -> bool {
    metrics.exposition().lines().any(|line| line == series)
}

fn hedges(metrics: &Metrics, outcome: &str) -> bool {
    count(
        metrics,
        &format!("lb_hedges_total{{outcome=\"{outcome}\",provider=\"gpu\"}} 1"),
    )
}

/// What is held of the first provider: slots, places in flight, and outcomes that a controller waits for.
fn held(table: &Table) -> (u32, u32, Option<u64>) {
    let state = table.state(at(0));
    let gpu = &state.providers[0];
    let endpoints = gpu.endpoints.iter().map(|endpoint| endpoint.in_flight).sum();
    (gpu.in_flight, endpoints, state.models[0].pools[0].in_flight)
}

// [HEDGE-1] [HEDGE-2]
#[test]
fn it_is_due_by_its_provider_where_the_request_may_be_sent_twice() {
    let (table, _) = table("max_attempts: 2");
    let due = |model: &str, sent: Sent| first(&table, model, sent).1.hedging().map(|hedging| hedging.at);
    assert_eq!(due("chat", STREAM), Some(at(100)));
    assert_eq!(due("alone", STREAM), None, "its provider is not set to");
    assert_eq!(due("quick", STREAM), None, "presets switch, and do not try twice");
    let cases: [fn(&mut Sent); 3] = [
        |sent| sent.exempt = true,
        |sent| sent.replayable = false,
        |sent| sent.repeatable = false,
    ];
    for change in cases {
        let mut sent = STREAM;
        change(&mut sent);
        assert_eq!(due("chat", sent), None, "{sent:?}");
    }
}

// [HEDGE-1] [HEDGE-5]
#[test]
fn it_goes_to_the_other_endpoint_and_is_paid_for() {
    let (table, metrics) = table("max_attempts: 2");
    let (run, original, hedge) = both(&table);
    assert_ne!(original.claim().place, hedge.claim().place);
    assert_eq!((run.attempts(), hedge.started()), (2, at(100)));
    let budget = table.providers()[0].purse.snapshot(at(100));
    assert_eq!((budget.requests, budget.retries), (1, 1));
    assert_eq!(held(&table), (2, 2, Some(1)));
    drop((original, hedge));
    assert_eq!(held(&table), (0, 0, Some(0)));
    assert!(hedges(&metrics, "cancelled"));
}

// [HEDGE-5]
#[test]
fn what_forbids_a_retry_forbids_it_too() {
    let refused = |more: &str| {
        let (table, metrics) = table(more);
        let (mut run, original) = first(&table, "chat", STREAM);
        let hedging = original.hedging().expect("set");
        assert!(run.hedge(at(100), hedging, draw()).is_none(), "{more}");
        assert!(!run.is_racing());
        assert_eq!((run.attempts(), held(&table).0), (1, 1));
        assert_eq!(table.providers()[0].purse.snapshot(at(100)).retries, 0);
        metrics
    };
    assert!(!hedges(&refused("max_attempts: 1"), "room"));
    let poor = refused("budget_percent: 0, budget_min_per_window: 0");
    assert!(hedges(&poor, "budget"));
}

// [HEDGE-5]
#[test]
fn where_no_other_endpoint_is_in_there_is_none_and_nothing_is_paid() {
    let (table, metrics) = table("max_attempts: 3");
    let (mut run, original, hedge) = both(&table);
    let hedging = hedge.hedging().expect("set");
    assert!(
        run.hedge(at(200), hedging, draw()).is_none(),
        "both have been tried"
    );
    assert!(hedges(&metrics, "room"));
    assert_eq!(table.providers()[0].purse.snapshot(at(200)).retries, 1);
    drop(original);
}

// [HEDGE-3]
#[test]
fn the_first_to_commit_is_the_answer_and_the_other_is_nothing_to_anyone() {
    for hedge_wins in [false, true] {
        let (table, metrics) = table("max_attempts: 2");
        let (mut run, original, hedge) = both(&table);
        let (winner, loser) = if hedge_wins {
            (hedge, original)
        } else {
            (original, hedge)
        };
        let committed = Ended::Committed {
            first_data: Some(Duration::from_millis(120)),
        };
        let tail = match winner.settle(&mut run, at(150), &committed, draw()) {
            Settled::Committed(tail) => tail,
            settled => panic!("{settled:?}"),
        };
        let cut = loser.settle(&mut run, at(150), &Ended::Outrun, draw());
        assert!(matches!(cut, Settled::Fail), "{cut:?}");
        // What is left is the body's.
        assert_eq!(held(&table), (1, 1, Some(0)));
        tail.clean_end();
        assert_eq!(held(&table), (0, 0, Some(0)));
        assert!(hedges(&metrics, if hedge_wins { "won" } else { "lost" }));
        let samples = |outcome: &str| {
            format!("lb_aimd_samples_total{{model=\"chat\",outcome=\"{outcome}\",pool=\"default\"}} 1")
        };
        // The controller hears of the original alone: healthy where it answered, unknown where it was cut.
        assert_eq!(count(&metrics, &samples("healthy")), !hedge_wins);
        assert_eq!(count(&metrics, &samples("unknown")), hedge_wins);
        let state = table.state(at(150));
        let breaker = state.providers[0].breaker.as_ref().expect("on");
        assert_eq!((breaker.window_volume, breaker.window_failures), (1, 0));
    }
}

// [HEDGE-4]
#[test]
fn the_first_to_fail_leaves_the_answer_to_the_other_and_the_last_decides() {
    for hedge_first in [false, true] {
        let (table, metrics) = table("max_attempts: 2");
        let (mut run, original, hedge) = both(&table);
        let (one, other) = if hedge_first {
            (hedge, original)
        } else {
            (original, hedge)
        };
        let failed = Ended::Status { code: 503 };
        let settled = one.settle(&mut run, at(150), &failed, draw());
        assert!(matches!(settled, Settled::Yielded), "{settled:?}");
        assert_eq!(held(&table).0, 1, "what it held is free at once");
        let settled = other.settle(&mut run, at(160), &failed, draw());
        assert!(matches!(settled, Settled::Onward), "{settled:?}");
        assert!(hedges(&metrics, "failed"));
        // A breach of the original alone, and no failure of the provider's, whichever of the two it was.
        let breaches = "lb_aimd_overload_breaches_total{model=\"chat\",pool=\"default\",status=\"503\"} 1";
        assert!(count(&metrics, breaches));
        match run.next(at(160), &mut draw) {
            Step::Try(next) => assert_eq!(&*next.claim().provider().name, "alt"),
            step => panic!("{step:?}"),
        }
    }
}

// [HEDGE-4]
#[test]
fn a_stale_connection_of_either_is_tried_again_while_the_other_goes_on() {
    let (table, _) = table("max_attempts: 2");
    let (mut run, original, hedge) = both(&table);
    let Settled::Again(original) = original.settle(&mut run, at(110), &Ended::StaleConnection, draw()) else {
        panic!("a stale connection is no attempt at all");
    };
    let Settled::Again(hedge) = hedge.settle(&mut run, at(111), &Ended::StaleConnection, draw()) else {
        panic!("nor is that of a hedge");
    };
    assert!(run.is_racing());
    let settled = hedge.settle(&mut run, at(150), &Ended::Connect, draw());
    assert!(matches!(settled, Settled::Yielded), "{settled:?}");
    drop(original);
    assert_eq!(held(&table), (0, 0, Some(0)));
}
