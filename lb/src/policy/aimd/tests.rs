//! Each line of the controller's rules, by name. [`model`] holds all of them together against a plain model.

use std::time::Duration;

use super::*;

mod idle;
mod lifetime;
mod model;

const DWELL: Duration = Duration::from_secs(30);
const PERIOD: Duration = Duration::from_mins(5);

/// A controller with the default settings and the clock it is driven by.
struct Rig {
    share: Share,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let params = Params::new(settings).expect("within bounds");
        Self {
            share: Share::new(params, Draw::new(0.0)),
            now: Instant::from_nanos(1_000_000_000),
        }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// One attempt that ends at once.
    fn sample(&mut self, outcome: Outcome) -> Option<Change> {
        let generation = self.share.attempt();
        self.share.on_outcome(self.now, generation, outcome).1
    }

    /// As many attempts; the last change they made.
    fn samples(&mut self, count: usize, outcome: Outcome) -> Option<Change> {
        (0..count).filter_map(|_| self.sample(outcome)).last()
    }

    /// Lowers the share once: 20 breaches, a dwell after the last change.
    fn lower(&mut self) {
        self.pass(DWELL);
        let change = self
            .samples(20, Outcome::Breach)
            .expect("a window full of breaches lowers the share");
        assert_eq!(change.direction, Direction::Down);
    }

    fn snapshot(&self) -> Snapshot {
        self.share.snapshot(self.now)
    }
}

/// The last instant before `span` is over.
fn almost(span: Duration) -> Duration {
    span.saturating_sub(Duration::from_nanos(1))
}

fn assert_close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-9, "{left} is not {right}");
}

#[test]
fn a_new_controller_has_seen_nothing_and_diverts_nothing() {
    let mut rig = Rig::new();
    let expected = Snapshot {
        share: 1.0,
        generation: 0,
        window_samples: 0,
        window_breach_rate: None,
        in_flight: 0,
        parked: false,
        since_adjustment: None,
    };
    assert_eq!(rig.snapshot(), expected);
    assert_eq!(rig.share.begin(rig.now), (Start::Preferred, None));
    assert_eq!(rig.share.params(), &Params::default());
}

// [AIMD-5]
#[test]
fn a_share_of_1_never_diverts() {
    let mut rig = Rig::new();
    assert!((0..10_000).all(|_| rig.share.begin(rig.now).0 == Start::Preferred));
}

// [AIMD-5]
#[test]
fn a_request_begins_at_the_alternate_when_its_position_is_not_below_the_share() {
    let mut rig = Rig::new();
    rig.lower();
    let mut positions = Weyl::new(Draw::new(0.0));
    for _ in 0..1_000 {
        let expected = if positions.next().value() >= 0.8 {
            Start::Alternate
        } else {
            Start::Preferred
        };
        assert_eq!(rig.share.begin(rig.now), (expected, None));
    }
}

// [AIMD-11]
#[test]
fn unknown_outcomes_are_counted_apart_and_never_block_a_decision() {
    let mut rig = Rig::new();
    let generation = rig.share.attempt();
    assert_eq!(
        rig.share.on_outcome(rig.now, generation, Outcome::Unknown),
        (Counted::Unknown, None)
    );
    rig.samples(200, Outcome::Unknown);
    assert_eq!(rig.snapshot().window_samples, 0);
    rig.samples(19, Outcome::Breach);
    assert_eq!(rig.sample(Outcome::Unknown), None);
    assert_eq!(
        rig.sample(Outcome::Breach).map(|change| change.direction),
        Some(Direction::Down)
    );
}

// [AIMD-12]
#[test]
fn attempts_in_flight_never_hold_a_decision_back() {
    let mut rig = Rig::new();
    let waiting: Vec<_> = (0..500).map(|_| rig.share.attempt()).collect();
    rig.lower();
    assert_eq!(rig.snapshot().in_flight, 500);
    for generation in waiting {
        assert_eq!(
            rig.share.on_outcome(rig.now, generation, Outcome::Healthy),
            (Counted::Stale, None)
        );
    }
    assert_eq!(rig.snapshot().in_flight, 0);
}

// [AIMD-13]
#[test]
fn fewer_samples_than_the_minimum_decide_nothing() {
    let mut rig = Rig::new();
    assert_eq!(rig.samples(19, Outcome::Breach), None);
    assert_close(rig.snapshot().share, 1.0);
    assert!(rig.sample(Outcome::Breach).is_some());
}

// [AIMD-14]
#[test]
fn a_full_window_drops_its_oldest_sample() {
    let mut rig = Rig::new();
    rig.samples(2, Outcome::Breach);
    rig.samples(98, Outcome::Healthy);
    let full = rig.snapshot();
    assert_eq!((full.window_samples, full.window_breach_rate), (100, Some(0.02)));
    rig.sample(Outcome::Healthy);
    assert_eq!(rig.snapshot().window_breach_rate, Some(0.01));
    rig.sample(Outcome::Healthy);
    let rolled = rig.snapshot();
    assert_eq!(
        (rolled.window_samples, rolled.window_breach_rate),
        (100, Some(0.0))
    );
}

// [AIMD-15]
#[test]
fn a_rate_above_the_target_lowers_the_share_by_the_decay_and_clears_the_window() {
    let mut rig = Rig::new();
    rig.samples(89, Outcome::Healthy);
    assert_eq!(
        rig.samples(9, Outcome::Breach),
        None,
        "9 of 98 is within the band"
    );
    assert_eq!(
        rig.sample(Outcome::Breach).map(|change| change.breach_rate),
        Some(Some(10.0 / 99.0))
    );
    let lowered = rig.snapshot();
    assert_close(lowered.share, 0.8);
    assert_eq!(
        (
            lowered.window_samples,
            lowered.window_breach_rate,
            lowered.generation
        ),
        (0, None, 1)
    );
}

// [AIMD-15]
#[test]
fn a_change_says_from_where_to_where_and_why() {
    let mut rig = Rig::new();
    let change = rig
        .samples(20, Outcome::Breach)
        .expect("a window full of breaches");
    assert_eq!(
        change,
        Change {
            direction: Direction::Down,
            from: 1.0,
            to: 0.8,
            breach_rate: Some(1.0)
        }
    );
}

// [AIMD-17]
#[test]
fn exactly_the_target_holds() {
    let mut rig = Rig::new();
    rig.samples(90, Outcome::Healthy);
    assert_eq!(rig.samples(10, Outcome::Breach), None);
    assert_eq!(rig.snapshot().window_breach_rate, Some(0.1));
}

// [AIMD-16]
#[test]
fn at_the_floor_nothing_changes_and_the_window_stays() {
    let mut rig = Rig::new();
    for _ in 0..14 {
        rig.lower();
    }
    let floor = rig.snapshot();
    assert_close(floor.share, 0.05);
    assert_eq!(floor.generation, 14);
    rig.pass(DWELL);
    assert_eq!(rig.samples(50, Outcome::Breach), None);
    let still = rig.snapshot();
    assert_close(still.share, 0.05);
    assert_eq!((still.generation, still.window_samples), (14, 50));
}

// [AIMD-16]
#[test]
fn the_last_decrease_goes_to_the_floor_and_not_below() {
    let mut rig = Rig::with(Settings {
        share_floor: 0.7,
        ..Settings::default()
    });
    rig.lower();
    rig.pass(DWELL);
    let change = rig
        .samples(20, Outcome::Breach)
        .expect("there is room down to the floor");
    assert_close(change.to, 0.7);
}

// [AIMD-17]
#[test]
fn a_rate_within_the_band_holds_and_the_wait_for_a_rise_begins_anew() {
    let mut rig = Rig::new();
    rig.lower();
    rig.samples(97, Outcome::Healthy);
    rig.pass(DWELL);
    // 4 of 101, of which the window drops the first: in the band, just as a rise would be due.
    assert_eq!(
        rig.samples(4, Outcome::Breach).map(|change| change.direction),
        Some(Direction::Up)
    );
    rig.pass(DWELL);
    assert_eq!(
        rig.samples(1, Outcome::Healthy),
        None,
        "4 of 100 is within the band"
    );
    // The breaches leave the window; the rate is low again, but not yet for a dwell.
    assert_eq!(rig.samples(100, Outcome::Healthy), None);
    rig.pass(almost(DWELL));
    assert_eq!(rig.sample(Outcome::Healthy), None);
    rig.pass(Duration::from_nanos(1));
    assert!(rig.sample(Outcome::Healthy).is_some());
}

// [AIMD-18]
#[test]
fn a_low_rate_for_a_dwell_raises_the_share_by_a_step_and_keeps_the_window() {
    let mut rig = Rig::new();
    rig.lower();
    rig.pass(DWELL);
    rig.samples(20, Outcome::Healthy);
    rig.pass(DWELL);
    let change = rig.sample(Outcome::Healthy).expect("healthy for a dwell");
    assert_eq!((change.direction, change.breach_rate), (Direction::Up, Some(0.0)));
    assert_close(change.to, 0.85);
    let raised = rig.snapshot();
    assert_eq!((raised.window_samples, raised.generation), (21, 1));
}

// [AIMD-18]
#[test]
fn exactly_the_recovery_rate_raises() {
    let mut rig = Rig::new();
    rig.lower();
    rig.samples(97, Outcome::Healthy);
    rig.samples(3, Outcome::Breach);
    assert_eq!(rig.snapshot().window_breach_rate, Some(0.03));
    rig.pass(DWELL);
    // A breach goes in and a healthy sample out, and the rate is above recovery: no rise. Without it: a rise.
    assert!(
        rig.share
            .clone()
            .on_outcome(rig.now, rig.share.generation, Outcome::Breach)
            .1
            .is_none()
    );
    assert!(rig.sample(Outcome::Healthy).is_some());
}

// [AIMD-18]
#[test]
fn a_rise_stops_at_1_and_there_is_none_above() {
    let mut rig = Rig::with(Settings {
        share_step: 0.15,
        ..Settings::default()
    });
    rig.lower();
    rig.samples(20, Outcome::Healthy);
    let rises: Vec<f64> = (0..4)
        .filter_map(|_| {
            rig.pass(DWELL);
            rig.sample(Outcome::Healthy).map(|change| change.to)
        })
        .collect();
    assert_eq!(rises.len(), 2);
    assert_close(rises[0], 0.95);
    assert_eq!(rises[1].to_bits(), 1f64.to_bits());
}

// [AIMD-18]
#[test]
fn steps_that_add_up_to_1_arrive_at_exactly_1() {
    let mut rig = Rig::with(Settings {
        share_floor: 0.1,
        share_decay: 0.001,
        share_step: 0.1,
        ..Settings::default()
    });
    rig.lower();
    assert_close(rig.snapshot().share, 0.1);
    rig.samples(20, Outcome::Healthy);
    for _ in 0..9 {
        rig.pass(DWELL);
        assert!(rig.sample(Outcome::Healthy).is_some());
    }
    assert_eq!(rig.snapshot().share.to_bits(), 1f64.to_bits());
}

// [AIMD-19]
#[test]
fn a_decrease_is_followed_by_a_dwell_without_another() {
    let mut rig = Rig::new();
    rig.lower();
    rig.pass(almost(DWELL));
    assert_eq!(rig.samples(20, Outcome::Breach), None);
    rig.pass(Duration::from_nanos(1));
    assert_eq!(rig.snapshot().since_adjustment, Some(DWELL));
    let change = rig.sample(Outcome::Breach).expect("settled");
    assert_close(change.to, 0.64);
}

// [AIMD-19]
#[test]
fn a_rise_is_followed_by_a_dwell_without_a_decrease() {
    let mut rig = Rig::new();
    rig.lower();
    rig.samples(20, Outcome::Healthy);
    rig.pass(DWELL);
    rig.sample(Outcome::Healthy).expect("healthy for a dwell");
    assert_eq!(rig.samples(100, Outcome::Breach), None);
    rig.pass(DWELL);
    assert_eq!(
        rig.sample(Outcome::Breach).map(|change| change.direction),
        Some(Direction::Down)
    );
}

// [AIMD-20]
#[test]
fn outcomes_of_attempts_begun_before_a_decrease_are_dropped() {
    let mut rig = Rig::new();
    let before = rig.share.attempt();
    rig.lower();
    for outcome in [Outcome::Healthy, Outcome::Breach, Outcome::Unknown] {
        assert_eq!(
            rig.share.on_outcome(rig.now, before, outcome),
            (Counted::Stale, None)
        );
    }
    assert_eq!(rig.snapshot().window_samples, 0);
    let after = rig.share.attempt();
    assert_eq!(
        rig.share.on_outcome(rig.now, after, Outcome::Healthy),
        (Counted::Healthy, None)
    );
    let breach = rig.share.attempt();
    assert_eq!(
        rig.share.on_outcome(rig.now, breach, Outcome::Breach),
        (Counted::Breach, None)
    );
}

// [AIMD-20]
#[test]
fn outcomes_of_attempts_begun_before_a_rise_still_count() {
    let mut rig = Rig::new();
    rig.lower();
    let before = rig.share.attempt();
    rig.samples(20, Outcome::Healthy);
    rig.pass(DWELL);
    rig.sample(Outcome::Healthy).expect("healthy for a dwell");
    assert_eq!(
        rig.share.on_outcome(rig.now, before, Outcome::Healthy).0,
        Counted::Healthy
    );
}
