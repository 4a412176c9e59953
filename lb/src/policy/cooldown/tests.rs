use proptest::prelude::*;

use super::*;

fn at(milliseconds: u64) -> Instant {
    Instant::from_nanos(milliseconds * 1_000_000)
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

// [COOL-1]
#[test]
fn it_cools_for_the_longer_of_what_was_decided_and_what_is() {
    let mut entry = Cooldown::default();
    assert_eq!(entry.standing(at(0)), Standing::Clear);
    assert_eq!(entry.cool(at(0), ms(100)), at(100));
    assert_eq!(entry.cool(at(50), ms(20)), at(100));
    assert_eq!(entry.cool(at(50), ms(90)), at(140));
    assert_eq!(entry.standing(at(139)), Standing::Cooling { until: at(140) });
    assert_eq!(entry.until(), Some(at(140)));
}

// [COOL-2]
#[test]
fn one_request_at_a_time_finds_out_whether_it_is_over() {
    let mut entry = Cooldown::new();
    entry.cool(at(0), ms(100));
    assert_eq!(entry.acquire(at(99)), None);
    assert_eq!(entry.standing(at(100)), Standing::HalfOpen);
    let probe = entry.acquire(at(100)).expect("it has cooled");
    assert_eq!(
        (entry.standing(at(150)), entry.acquire(at(150))),
        (Standing::Probing, None)
    );
    entry.give_back(probe);
    assert_eq!(entry.standing(at(150)), Standing::HalfOpen);
    // A probe that never ends makes room after as long as it cooled.
    assert!(entry.acquire(at(150)).is_some());
    assert_eq!(entry.standing(at(249)), Standing::Probing);
    assert_eq!(entry.standing(at(250)), Standing::HalfOpen);
}

// [COOL-3]
#[test]
fn only_what_was_begun_after_it_cooled_clears_it() {
    let mut entry = Cooldown::new();
    entry.cool(at(10), ms(100));
    assert!(!entry.succeed(at(9)));
    assert!(entry.succeed(at(10)));
    assert_eq!(entry.standing(at(10)), Standing::Clear);
    assert!(!entry.succeed(at(11)), "there is nothing to clear");
}

// [COOL-2]
#[test]
fn a_probe_that_fails_cools_it_again() {
    let mut entry = Cooldown::new();
    entry.cool(at(0), ms(100));
    let probe = entry.acquire(at(100)).expect("it has cooled");
    assert_eq!(entry.cool(at(120), ms(100)), at(220));
    entry.give_back(probe);
    assert_eq!(entry.standing(at(200)), Standing::Cooling { until: at(220) });
    assert_eq!(entry.standing(at(220)), Standing::HalfOpen);
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Acquire,
    Cool(u64),
    GiveBack,
    Pass(u64),
    Succeed(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => Just(Event::Acquire),
        1 => (1..200u64).prop_map(Event::Cool),
        2 => Just(Event::GiveBack),
        4 => (0..120u64).prop_map(Event::Pass),
        1 => (0..200u64).prop_map(Event::Succeed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // [COOL-1] [COOL-2] [COOL-3]
    #[test]
    fn it_stands_as_the_whole_of_its_history_says(events in prop::collection::vec(event(), 1..120)) {
        let (mut entry, mut now) = (Cooldown::new(), 0u64);
        // Coolings since the last clearing, as (when, until, span); the probe that holds the slot, and since when.
        let (mut coolings, mut held) = (Vec::<(u64, u64, u64)>::new(), None::<(Probe, u64)>);
        for event in events {
            match event {
                Event::Acquire => {
                    if let Some(probe) = entry.acquire(at(now)) {
                        held = Some((probe, now));
                    }
                }
                Event::Cool(span) => {
                    entry.cool(at(now), ms(span));
                    coolings.push((now, now + span, span));
                    held = None;
                }
                Event::GiveBack => {
                    if let Some((probe, _)) = held.take() {
                        entry.give_back(probe);
                    }
                }
                Event::Pass(milliseconds) => now += milliseconds,
                Event::Succeed(ago) => {
                    let begun = now.saturating_sub(ago);
                    let clears = coolings.last().is_some_and(|(when, ..)| begun >= *when);
                    prop_assert_eq!(entry.succeed(at(begun)), clears);
                    if clears {
                        coolings.clear();
                        held = None;
                    }
                }
            }
            let until = coolings.iter().map(|(_, until, _)| *until).max();
            let span = coolings.last().map_or(0, |(.., span)| *span);
            let expected = match until {
                None => Standing::Clear,
                Some(until) if now < until => Standing::Cooling { until: at(until) },
                Some(_) if held.is_none_or(|(_, since)| now >= since + span) => Standing::HalfOpen,
                Some(_) => Standing::Probing,
            };
            prop_assert_eq!(entry.standing(at(now)), expected);
            prop_assert_eq!(entry.until(), until.map(at));
        }
    }
}
