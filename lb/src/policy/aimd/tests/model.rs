//! The controller against a model that keeps every sample it ever saw and counts them anew at each question.

use proptest::prelude::*;

use super::*;

/// What happens next; times in milliseconds, attempts by their place among those in flight.
#[derive(Clone, Copy, Debug)]
enum Event {
    Attempt,
    Begin,
    Complete(usize, Outcome),
    Park,
    Pass(u64),
    Resume,
}

fn event() -> impl Strategy<Value = Event> {
    let outcome = prop_oneof![
        5 => Just(Outcome::Healthy),
        3 => Just(Outcome::Breach),
        1 => Just(Outcome::Unknown),
    ];
    prop_oneof![
        3 => Just(Event::Begin),
        8 => Just(Event::Attempt),
        8 => (any::<usize>(), outcome).prop_map(|(at, outcome)| Event::Complete(at, outcome)),
        6 => (0..40u64).prop_map(Event::Pass),
        1 => (0..1_000u64).prop_map(Event::Pass),
        1 => prop_oneof![Just(Event::Park), Just(Event::Resume)],
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let counts = (2..6u32, 0..8u32);
    let rates = (0.0..0.6, 0.0..=1.0, 0.05..0.5, 0.2..0.95, 0.05..0.9);
    let times = (1..60u64, prop::option::weighted(0.8, 20..200u64));
    (counts, rates, times).prop_map(
        |((min, more), (target, part, step, decay, floor), (dwell, idle))| Settings {
            breach_rate_target: target,
            recovery_breach_rate: target * part,
            window_samples: min + more,
            min_samples: min,
            share_step: step,
            share_decay: decay,
            share_floor: floor,
            dwell: Duration::from_millis(dwell),
            idle_recovery: idle.map(Duration::from_millis),
            ..Settings::default()
        },
    )
}

/// A completed healthy or breach outcome of its then current generation.
struct Sample {
    at: u64,
    breach: bool,
}

struct Model {
    settings: Settings,
    now: u64,
    samples: Vec<Sample>,
    /// How many of `samples` lie before the window's latest clearing.
    cleared: usize,
    share: f64,
    generation: u64,
    healthy_since: Option<u64>,
    adjusted: Option<u64>,
    stepped: Option<u64>,
    parked: bool,
}

impl Model {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            now: 0,
            samples: Vec::new(),
            cleared: 0,
            share: 1.0,
            generation: 0,
            healthy_since: None,
            adjusted: None,
            stepped: None,
            parked: false,
        }
    }

    fn window(&self) -> &[Sample] {
        let fresh = &self.samples[self.cleared..];
        &fresh[fresh.len().saturating_sub(self.settings.window_samples as usize)..]
    }

    fn rate(&self) -> Option<f64> {
        let window = self.window();
        let breaches = u32::try_from(window.iter().filter(|sample| sample.breach).count()).expect("few");
        (!window.is_empty())
            .then(|| f64::from(breaches) / f64::from(u32::try_from(window.len()).expect("few")))
    }

    /// Whether enough samples completed within the period that ends at `instant`.
    fn enough(&self, instant: u64, period: u64) -> bool {
        let within = |sample: &&Sample| sample.at <= instant && instant < sample.at + period;
        self.samples.iter().filter(within).count() >= self.settings.min_samples as usize
    }

    /// Idle steps that are due, and the instant they are counted from.
    fn idle_steps(&self) -> Option<(u64, u64)> {
        let period = nanos(self.settings.idle_recovery?);
        if self.share >= 1.0 || self.enough(self.now, period) {
            return None;
        }
        // Enough samples stop being enough when one leaves the period.
        let leaves = self.samples.iter().map(|sample| sample.at + period);
        let last_enough = leaves
            .filter(|end| *end <= self.now && self.enough(end - 1, period))
            .max();
        let from = [self.adjusted, self.stepped, last_enough]
            .into_iter()
            .flatten()
            .max()
            .expect("it was lowered");
        let steps = (self.now - from) / period;
        (steps > 0).then_some((steps, from + steps * period))
    }

    fn share_now(&self) -> f64 {
        let steps = self.idle_steps().map_or(0, |(steps, _)| steps);
        (0..steps).fold(self.share, |share, _| (share + self.settings.share_step).min(1.0))
    }

    fn begin(&mut self) -> Option<(Direction, f64)> {
        let (_, due) = self.idle_steps()?;
        self.share = self.share_now();
        self.stepped = Some(due);
        self.healthy_since = self.healthy_since.and(Some(self.now));
        Some((Direction::Idle, self.share))
    }

    fn complete(&mut self, generation: u64, outcome: Outcome) -> (Counted, Option<(Direction, f64)>) {
        if self.parked || generation != self.generation {
            return (Counted::Stale, None);
        }
        let counted = match outcome {
            Outcome::Breach => Counted::Breach,
            Outcome::Healthy => Counted::Healthy,
            Outcome::Unknown => return (Counted::Unknown, None),
        };
        self.samples.push(Sample {
            at: self.now,
            breach: outcome == Outcome::Breach,
        });
        (counted, self.decide())
    }

    fn decide(&mut self) -> Option<(Direction, f64)> {
        if self.window().len() < self.settings.min_samples as usize {
            return None;
        }
        let dwell = nanos(self.settings.dwell);
        let settled = self.adjusted.is_none_or(|at| self.now - at >= dwell);
        let rate = self.rate().expect("not empty");
        if rate > self.settings.recovery_breach_rate {
            self.healthy_since = None;
            let lower = f64::max(self.share * self.settings.share_decay, self.settings.share_floor);
            if rate > self.settings.breach_rate_target && settled && lower < self.share {
                self.share = lower;
                self.adjusted = Some(self.now);
                self.restart();
                return Some((Direction::Down, lower));
            }
            return None;
        }
        let since = self.healthy_since.unwrap_or(self.now);
        self.healthy_since = Some(since);
        if self.share < 1.0 && settled && self.now - since >= dwell {
            self.share = f64::min(self.share + self.settings.share_step, 1.0);
            self.adjusted = Some(self.now);
            self.healthy_since = Some(self.now);
            return Some((Direction::Up, self.share));
        }
        None
    }

    fn restart(&mut self) {
        self.cleared = self.samples.len();
        self.generation += 1;
        self.healthy_since = None;
    }
}

fn agree(change: Option<Change>, expected: Option<(Direction, f64)>) {
    assert_eq!(
        change.map(|change| change.direction),
        expected.map(|(direction, _)| direction)
    );
    if let (Some(change), Some((_, to))) = (change, expected) {
        assert_close(change.to, to);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // [AIMD-11] [AIMD-13] [AIMD-14] [AIMD-15] [AIMD-16] [AIMD-17] [AIMD-18] [AIMD-19] [AIMD-20] [AIMD-21] [AIMD-22]
    #[test]
    fn it_does_what_the_plain_model_does(
        settings in settings(),
        origin in 0.0..1.0,
        events in prop::collection::vec(event(), 1..300),
    ) {
        let params = Params::new(settings.clone()).expect("within bounds");
        let mut share = Share::new(params, Draw::new(origin));
        let mut positions = Weyl::new(Draw::new(origin));
        let mut model = Model::new(settings);
        let mut in_flight = Vec::new();
        for event in events {
            let now = Instant::from_nanos(model.now);
            match event {
                Event::Attempt => in_flight.push((share.attempt(), model.generation)),
                Event::Begin => {
                    let (start, change) = share.begin(now);
                    agree(change, model.begin());
                    let position = positions.next().value();
                    let expected = if position < model.share { Start::Preferred } else { Start::Alternate };
                    // The two add up their steps in different orders, so they may disagree within a rounding.
                    prop_assert!(start == expected || (position - model.share).abs() < 1e-9);
                }
                Event::Complete(at, outcome) if !in_flight.is_empty() => {
                    let (token, generation) = in_flight.swap_remove(at % in_flight.len());
                    let (counted, change) = share.on_outcome(now, token, outcome);
                    let (expected, movement) = model.complete(generation, outcome);
                    prop_assert_eq!(counted, expected);
                    agree(change, movement);
                }
                Event::Complete(..) => {}
                Event::Park => {
                    share.park();
                    model.parked = true;
                }
                Event::Pass(milliseconds) => model.now += milliseconds * 1_000_000,
                Event::Resume => {
                    share.resume();
                    if std::mem::take(&mut model.parked) {
                        model.restart();
                    }
                }
            }
            let snapshot = share.snapshot(Instant::from_nanos(model.now));
            assert_close(snapshot.share, model.share_now());
            prop_assert_eq!(snapshot.generation, model.generation);
            prop_assert_eq!(snapshot.window_samples, model.window().len());
            prop_assert_eq!(snapshot.window_breach_rate, model.rate());
            prop_assert_eq!(snapshot.in_flight, in_flight.len() as u64);
            prop_assert_eq!(snapshot.parked, model.parked);
            let since = model.adjusted.map(|at| Duration::from_nanos(model.now - at));
            prop_assert_eq!(snapshot.since_adjustment, since);
        }
        // Every attempt comes back, whatever became of it.
        for (token, _) in in_flight {
            let _counted = share.on_outcome(Instant::from_nanos(model.now), token, Outcome::Unknown);
        }
        prop_assert_eq!(share.snapshot(Instant::from_nanos(model.now)).in_flight, 0);
    }
}
