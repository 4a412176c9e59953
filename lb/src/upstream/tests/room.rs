//! Targets that are short of more than one thing at once. The simulation of a fleet found each of these.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::{
    Attempt, Draw, Duration, Ended, Instant, Run, Settled, Step, Stop, Table, at, attempt, begin, provider,
    table,
};
use crate::metrics::Metrics;
use crate::policy::health::KernelCause;
use crate::upstream::{Granted, Waiting};

const HEAD: &str = "
version: 1
listeners: [{ name: l, address: '127.0.0.1:0' }]
providers:
";

fn two(one: &str, other: &str, model: &str) -> Table {
    with_metrics(one, other, model).0
}

fn with_metrics(one: &str, other: &str, model: &str) -> (Table, Metrics) {
    let text = format!(
        "{HEAD}
  one: {{ endpoints: [{{ url: 'http://127.0.0.1:1' }}], {one} }}
  other: {{ endpoints: [{{ url: 'http://127.0.0.1:2' }}], {other} }}
models:
  chat: {{ targets: [{{ provider: one }}, {{ provider: other }}], {model} }}
  alone: {{ targets: [{{ provider: one }}] }}
"
    );
    table(&text)
}

/// Has the only endpoint of the attempt's provider ejected.
fn fail(run: &mut Run, attempt: Attempt, now: Instant) -> Settled {
    attempt.settle(run, now, &Ended::Connect, Draw::new(0.0))
}

fn queued(run: &mut Run, now: Instant) -> Waiting {
    match run.next(now, &mut || Draw::new(0.0)) {
        Step::Queue(waiting) => waiting,
        step => panic!("not queued: {step:?}"),
    }
}

fn granted(waiting: &Waiting) -> Option<Granted> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(waiting.granted()).poll(&mut context) {
        Poll::Ready(granted) => Some(granted),
        Poll::Pending => None,
    }
}

/// One request at a time, and none once its endpoint is out.
const BARRED: &str = "concurrency: 1, max_pending: 1, retries: { max_attempts: 1 }, \
                      health: { consecutive_failures: 1, fail_open: false }";

/// One request at a time, whatever its endpoint is.
const ONE_EACH: &str =
    "concurrency: 1, max_pending: 1, retries: { max_attempts: 1 }, health: { consecutive_failures: 1 }";

// [TABLE-8]
#[test]
fn a_provider_that_is_out_and_full_is_waited_for_like_any_other_that_is_full() {
    let table = two(ONE_EACH, "", "");
    let mut run = begin(&table, "alone");
    let first = attempt(&mut run, at(0));
    assert!(matches!(fail(&mut run, first, at(1)), Settled::Fail));
    let by_fail_open = attempt(&mut begin(&table, "alone"), at(2));
    let mut run = begin(&table, "alone");
    let waiting = queued(&mut run, at(2));
    assert!(granted(&waiting).is_none());
    drop(by_fail_open);
    run.granted(granted(&waiting).expect("the slot is free"));
    assert_eq!(provider(&attempt(&mut run, at(3))), "one");
}

// [TABLE-8]
#[test]
fn no_first_token_deadline_is_armed_for_the_sake_of_a_provider_that_is_out_and_full() {
    let table = two("", ONE_EACH, "");
    let mut run = begin(&table, "chat");
    let held = attempt(&mut run, at(0));
    assert!(held.first_token_deadline().is_some(), "the other provider is in");
    let Settled::Onward = fail(&mut run, held, at(1)) else {
        panic!("the other provider is next")
    };
    let other = attempt(&mut run, at(1));
    assert!(
        matches!(fail(&mut run, other, at(2)), Settled::Fail),
        "which ejects its endpoint"
    );
    let by_fail_open = {
        let mut run = begin(&table, "chat");
        let one = attempt(&mut run, at(3));
        assert!(
            one.first_token_deadline().is_some(),
            "fail-open is another attempt"
        );
        let Settled::Onward = fail(&mut run, one, at(4)) else {
            panic!("the other provider is next")
        };
        attempt(&mut run, at(4))
    };
    let last = attempt(&mut begin(&table, "chat"), at(5));
    assert_eq!((provider(&last), last.first_token_deadline()), ("one", None));
    drop(by_fail_open);
}

// [TABLE-9]
#[test]
fn a_slot_whose_provider_is_barred_when_it_comes_is_given_back_for_another_target() {
    let table = two(BARRED, ONE_EACH, "");
    let mut holder = begin(&table, "chat");
    let one = attempt(&mut holder, at(0));
    let other = attempt(&mut begin(&table, "chat"), at(0));
    let mut run = begin(&table, "chat");
    let waiting = queued(&mut run, at(0));
    drop(other);
    let Settled::Onward = fail(&mut holder, one, at(1)) else {
        panic!("the other provider is next")
    };
    run.granted(granted(&waiting).expect("the slot is free"));
    let attempt = attempt(&mut run, at(2));
    assert_eq!(provider(&attempt), "other");
    assert_eq!(
        table.providers()[0].in_flight(),
        0,
        "nobody holds a slot for nothing"
    );
}

// [TABLE-9]
#[test]
fn a_slot_whose_provider_is_barred_is_given_back_before_another_queue_is_joined() {
    let table = two(BARRED, ONE_EACH, "");
    let mut holder = begin(&table, "chat");
    let one = attempt(&mut holder, at(0));
    let other = attempt(&mut begin(&table, "chat"), at(0));
    let mut run = begin(&table, "chat");
    let waiting = queued(&mut run, at(0));
    assert!(matches!(fail(&mut holder, one, at(1)), Settled::Fail));
    run.granted(granted(&waiting).expect("the slot is free"));
    let second = queued(&mut run, at(2));
    assert_eq!(table.providers()[0].in_flight(), 0);
    drop(other);
    run.granted(granted(&second).expect("the slot is free"));
    assert_eq!(provider(&attempt(&mut run, at(3))), "other");
}

// [TABLE-9]
#[test]
fn with_nowhere_else_to_go_the_slot_goes_back_and_the_request_is_refused() {
    let table = two(BARRED, "", "");
    let mut holder = begin(&table, "alone");
    let one = attempt(&mut holder, at(0));
    let mut run = begin(&table, "alone");
    let waiting = queued(&mut run, at(0));
    assert!(matches!(fail(&mut holder, one, at(1)), Settled::Fail));
    run.granted(granted(&waiting).expect("the slot is free"));
    let step = run.next(at(2), &mut || Draw::new(0.0));
    assert!(matches!(step, Step::Stop(Stop::Barred { .. })), "{step:?}");
    assert_eq!(table.providers()[0].in_flight(), 0);
}

// [RETRY-20]
#[test]
fn what_a_retry_was_to_cost_goes_back_before_another_pass_is_waited_for() {
    let text = format!(
        "{HEAD}
  first: {{ endpoints: [{{ url: 'http://127.0.0.1:1' }}] }}
  pair: {{ endpoints: [{{ url: 'http://127.0.0.1:2' }}, {{ url: 'http://127.0.0.1:3' }}], health: {{ fail_open: false }} }}
models:
  chat: {{ targets: [{{ provider: first }}, {{ provider: pair }}], fallback: {{ max_attempts: 4 }} }}
"
    );
    let (table, _) = table(&text);
    let paid = |now: Instant| table.state(now).providers[1].retries.window_retries;
    let mut run = begin(&table, "chat");
    for name in ["first", "pair"] {
        let attempt = attempt(&mut run, at(0));
        assert_eq!(provider(&attempt), name);
        let settled = attempt.settle(&mut run, at(0), &Ended::Connect, Draw::new(0.9));
        assert!(matches!(settled, Settled::Onward));
    }
    assert_eq!(paid(at(1)), 1, "its other endpoint is to be tried");
    let Step::Wait(retry) = run.next(at(1), &mut || Draw::new(0.9)) else {
        panic!("after a wait")
    };
    for endpoint in &table.providers()[1].endpoints {
        table.eject(endpoint.id, at(2), KernelCause::Refused, Duration::from_secs(1));
    }
    let step = run.next(retry, &mut || Draw::new(0.9));
    assert!(matches!(step, Step::Wait(_)), "another pass: {step:?}");
    assert_eq!(paid(retry), 0);
}

// [LIMITER-7]
#[test]
fn a_request_that_its_model_lets_in_late_is_not_drawn_and_counts_for_the_share_all_the_same() {
    let (table, metrics) = with_metrics("", "", "concurrency: 1");
    let in_flight = |now: u64| table.state(at(now)).models[0].pools[0].in_flight;
    let draws = || {
        let page = metrics.exposition();
        let drawn = page
            .lines()
            .filter(|line| line.starts_with("lb_aimd_draws_total{"));
        drawn
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum::<u64>()
    };
    let first = attempt(&mut begin(&table, "chat"), at(0));
    assert_eq!((in_flight(0), draws()), (Some(1), 1));
    let mut late = begin(&table, "chat");
    assert_eq!(draws(), 1);
    drop(first);
    let second = attempt(&mut late, at(1));
    assert_eq!(provider(&second), "one");
    assert_eq!((in_flight(1), draws()), (Some(1), 1));
}
