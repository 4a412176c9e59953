use proptest::prelude::*;

use super::*;

fn at(milliseconds: u64) -> Instant {
    Instant::from_nanos(milliseconds * 1_000_000)
}

/// How many retries come through when every request at `per_second` fails, in the tenth to the twentieth second.
fn retries_at(per_second: u64) -> u64 {
    let mut budget = Budget::new(Params::default());
    let mut allowed = 0;
    for request in 0..20 * per_second {
        let now = at(request * 1000 / per_second);
        budget.on_request(now);
        let paid = budget.withdraw(now).is_some();
        allowed += u64::from(paid && request >= 10 * per_second);
    }
    allowed
}

// [RETRY-6] field fault R7
#[test]
fn a_storm_gets_its_percent_and_a_trickle_its_minimum() {
    assert_eq!(retries_at(10_000), 20_000);
    assert_eq!(retries_at(100), 200);
    // One a second: two of ten would be the percent, three are always allowed.
    assert_eq!(retries_at(1), 3);
}

// [RETRY-6]
#[test]
fn what_was_not_made_after_all_is_given_back() {
    let mut budget = Budget::new(Params::default());
    let charges: Vec<_> = (0..3).filter_map(|n| budget.withdraw(at(n * 1000))).collect();
    assert_eq!((charges.len(), budget.allows(at(3000))), (3, false));
    budget.refund(charges[1]);
    assert_eq!(budget.snapshot(at(3000)).retries, 2);
    assert!(budget.allows(at(3000)));
    // What the window has left behind cannot be taken back a second time.
    let charge = budget.withdraw(at(3000)).expect("one");
    let before = budget.withdraw(at(60_000)).expect("all is forgotten");
    budget.refund(charge);
    assert_eq!(budget.snapshot(at(60_000)).retries, 1);
    budget.refund(before);
    assert_eq!(budget.snapshot(at(60_000)).retries, 0);
}

// [RETRY-6]
#[test]
fn each_setting_that_is_out_of_bounds_is_named() {
    let wrong = Settings {
        percent: 101,
        window: Duration::from_millis(1),
        min_per_window: 1_000_001,
    };
    let faults = Params::new(wrong).expect_err("all are wrong");
    let named: Vec<_> = faults.iter().map(|fault| fault.field).collect();
    assert_eq!(
        named,
        ["budget_percent", "budget_window_ms", "budget_min_per_window"]
    );
}

// [RETRY-6]
#[test]
fn other_settings_apply_at_once_to_what_was_counted() {
    let mut budget = Budget::new(Params::default());
    for _ in 0..10 {
        budget.on_request(at(0));
    }
    for _ in 0..3 {
        assert!(budget.withdraw(at(0)).is_some());
    }
    assert!(!budget.allows(at(0)));
    let more = Settings {
        percent: 50,
        ..*budget.params().settings()
    };
    budget.set_params(Params::new(more).expect("in bounds"));
    assert!(budget.allows(at(0)));
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Pass(u64),
    Refund(usize),
    Request,
    Withdraw,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..1500u64).prop_map(Event::Pass),
        1 => any::<usize>().prop_map(Event::Refund),
        6 => Just(Event::Request),
        4 => Just(Event::Withdraw),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // [RETRY-6]
    #[test]
    fn it_counts_as_the_plain_model_does(
        percent in 0..=100u32,
        least in 0..6u32,
        events in prop::collection::vec(event(), 1..300),
    ) {
        let params = Settings { percent, window: Duration::from_secs(10), min_per_window: least };
        let mut budget = Budget::new(Params::new(params).expect("in bounds"));
        let (mut now, mut requests, mut retries) = (0, Vec::new(), Vec::<(u64, Charge)>::new());
        let within = |then: u64, now: u64| then / 1000 + 10 > now / 1000;
        for event in events {
            let counted = |times: &[u64]| times.iter().filter(|then| within(**then, now)).count() as u64;
            let times: Vec<u64> = retries.iter().map(|(then, _)| *then).collect();
            let (asked, retried) = (counted(&requests), counted(&times));
            let allowed = (retried + 1) * 100 <= u64::from(percent) * asked || retried < u64::from(least);
            prop_assert_eq!(budget.allows(at(now)), allowed);
            match event {
                Event::Pass(milliseconds) => now += milliseconds,
                Event::Refund(n) if !retries.is_empty() => {
                    let (_, charge) = retries.swap_remove(n % retries.len());
                    budget.refund(charge);
                }
                Event::Refund(_) => {}
                Event::Request => {
                    budget.on_request(at(now));
                    requests.push(now);
                }
                Event::Withdraw => {
                    let charge = budget.withdraw(at(now));
                    prop_assert_eq!(charge.is_some(), allowed);
                    retries.extend(charge.map(|charge| (now, charge)));
                }
            }
        }
    }
}
