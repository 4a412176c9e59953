//! Probes beside requests, and the weight of what is back.

use proptest::prelude::*;

use super::*;

fn rig(healthy_after: u32, unhealthy_after: u32) -> Rig {
    Rig::with(Settings {
        slow_start: Some(Duration::from_secs(10)),
        active: Some(Active {
            healthy_after,
            unhealthy_after,
            interval: Duration::from_secs(5),
        }),
        ..Settings::default()
    })
}

impl Rig {
    fn probe(&mut self, probed: Probed) -> Option<State> {
        let transition = self.health.on_probe(self.now, probed, at_once())?;
        Some(transition.to)
    }
}

// [PROBE-1]
#[test]
fn a_row_of_bad_probes_ejects_and_a_row_of_good_ones_readmits_before_the_time_is_up() {
    let mut rig = rig(2, 3);
    for probed in [
        Probed::Bad,
        Probed::TimedOut,
        Probed::Good,
        Probed::Bad,
        Probed::Bad,
    ] {
        assert_eq!(rig.probe(probed), None);
    }
    assert_eq!(rig.probe(Probed::Bad), Some(State::Ejected));
    assert_eq!(rig.health.snapshot(rig.now).cause, Some(Cause::Probe));
    assert_eq!(rig.probe(Probed::Good), None);
    assert_eq!(rig.probe(Probed::Good), Some(State::Healthy));
}

// [PROBE-1]
#[test]
fn when_its_time_is_up_a_bad_probe_ejects_it_again_for_longer() {
    let mut rig = rig(2, 1);
    assert_eq!(rig.probe(Probed::Bad), Some(State::Ejected));
    assert_eq!(rig.probe(Probed::Bad), None, "it is out already");
    rig.pass(EJECTION);
    assert_eq!(rig.health.standing(rig.now), Standing::HalfOpen);
    let permit = rig.acquire();
    assert_eq!(rig.probe(Probed::Bad), Some(State::Ejected));
    assert_eq!(
        rig.release(permit, Verdict::Success),
        None,
        "its verdict comes too late"
    );
    rig.pass(EJECTION);
    assert!(matches!(rig.health.standing(rig.now), Standing::Ejected { .. }));
}

// [PROBE-2]
#[test]
fn what_requests_met_outweighs_what_probes_find() {
    let mut rig = rig(1, 1);
    for _ in 0..5 {
        let permit = rig.acquire();
        let _ = rig.release(permit, Verdict::Failure);
    }
    assert_eq!(rig.probe(Probed::Good), None, "it is out for its failures");
    rig.pass(EJECTION);
    assert_eq!(rig.probe(Probed::Good), Some(State::Healthy), "its time is up");
    // Answered within the interval, so that a probe that gets no answer shows nothing but load.
    let permit = rig.acquire();
    assert_eq!(rig.release(permit, Verdict::Success), None);
    rig.pass(Duration::from_millis(4_999));
    assert_eq!(rig.probe(Probed::TimedOut), None);
    rig.pass(Duration::from_millis(1));
    assert_eq!(rig.probe(Probed::TimedOut), Some(State::Ejected));
}

// [PROBE-2]
#[test]
fn probes_never_count_in_the_ratio() {
    let mut rig = rig(1, 100);
    for _ in 0..50 {
        assert_eq!(rig.probe(Probed::Bad), None);
    }
    let seen = rig.health.snapshot(rig.now);
    assert_eq!((seen.window_volume, seen.consecutive_failures), (0, 0));
}

// [PROBE-3]
#[test]
fn a_probe_that_is_not_let_in_changes_nothing_but_what_is_said_of_it() {
    let mut rig = rig(1, 2);
    assert_eq!(rig.probe(Probed::Bad), None);
    assert_eq!(rig.probe(Probed::Misconfigured), None);
    assert!(rig.health.is_misconfigured());
    assert_eq!(rig.probe(Probed::Bad), Some(State::Ejected));
    assert!(!rig.health.is_misconfigured());
}

// [HEALTH-11]
#[test]
fn an_endpoint_that_cannot_be_spared_stays_in_whatever_probes_say() {
    let mut rig = rig(1, 1);
    let kept = Ejection {
        allowed: false,
        ..at_once()
    };
    assert_eq!(rig.health.on_probe(rig.now, Probed::Bad, kept), None);
    assert_eq!(rig.probe(Probed::Bad), Some(State::Ejected));
}

// [HEALTH-18]
#[test]
fn what_is_back_or_new_gets_its_weight_by_and_by() {
    let mut rig = rig(1, 1);
    assert!(
        (rig.health.ramp(rig.now) - 1.0).abs() < 1e-9,
        "what was there from the start has it all"
    );
    assert_eq!(rig.probe(Probed::Bad), Some(State::Ejected));
    assert_eq!(rig.probe(Probed::Good), Some(State::Healthy));
    assert!((rig.health.ramp(rig.now) - 0.01).abs() < 1e-9);
    rig.pass(Duration::from_secs(5));
    assert!((rig.health.ramp(rig.now) - 0.5).abs() < 1e-9);
    rig.pass(Duration::from_secs(6));
    assert!((rig.health.ramp(rig.now) - 1.0).abs() < 1e-9);
    let new = Health::new(rig.health.params().clone()).joined(rig.now);
    assert!((new.ramp(rig.now) - 0.01).abs() < 1e-9);
}

proptest! {
    // [PROBE-1] [PROBE-2] [PROBE-3]
    #[test]
    fn a_plain_model_of_rows_says_the_same(
        good in 1..4u32,
        bad in 1..4u32,
        probes in prop::collection::vec((0..8u64, 0..5u8), 1..60),
    ) {
        let mut rig = rig(good, bad);
        // Rows, seconds of the last answer, and until when it is out.
        let (mut goods, mut bads, mut answered) = (0, 0, None::<u64>);
        let (mut out, mut row, mut second) = (None::<u64>, 0, 0);
        for (pass, what) in probes {
            second += pass;
            rig.pass(Duration::from_secs(pass));
            let probed = match what {
                0 => Probed::Good,
                1 => Probed::Bad,
                2 => Probed::TimedOut,
                3 => Probed::Misconfigured,
                _ => {
                    if out.is_none() {
                        let permit = rig.acquire();
                        prop_assert_eq!(rig.release(permit, Verdict::Success), None);
                        answered = Some(second);
                    }
                    continue;
                }
            };
            let excused = probed == Probed::TimedOut && answered.is_some_and(|at| second - at < 5);
            let expected = match probed {
                Probed::Good => {
                    (goods, bads) = (goods + 1, 0);
                    (goods >= good && out.is_some()).then_some(State::Healthy)
                }
                Probed::Misconfigured => None,
                _ if excused => None,
                _ => {
                    (goods, bads) = (0, bads + 1);
                    (bads >= bad && out.is_none_or(|until| second >= until)).then_some(State::Ejected)
                }
            };
            match expected {
                Some(State::Healthy) => (out, row) = (None, 0),
                Some(_) => {
                    row += 1;
                    goods = 0;
                    out = Some(second + (30 * row).min(300));
                }
                None => {}
            }
            prop_assert_eq!(rig.probe(probed), expected);
        }
    }
}
