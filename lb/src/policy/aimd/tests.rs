//! Each line of the controller's rules, by name. [`model`] holds all of them together against a plain model.

use std::time::Duration;

use super::*;

mod conversation;
mod idle;
mod lifetime;
mod model;
mod pace;

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
