//! Passive health against a model that keeps every result and every permit and counts them anew at each question.

use proptest::prelude::*;

use super::*;

/// What happens next; times in milliseconds, permits by their place among those that are out.
#[derive(Clone, Copy, Debug)]
enum Event {
    Acquire,
    Cut(usize),
    End(usize),
    FailOpen,
    Pass(u64),
    Release(usize, Verdict, bool),
}

fn event() -> impl Strategy<Value = Event> {
    let verdict = prop_oneof![
        4 => Just(Verdict::Failure),
        1 => Just(Verdict::Neutral),
        4 => Just(Verdict::Success),
    ];
    let allowed = prop::bool::weighted(0.9);
    prop_oneof![
        8 => Just(Event::Acquire),
        1 => Just(Event::FailOpen),
        8 => (any::<usize>(), verdict, allowed).prop_map(|(at, verdict, allowed)| Event::Release(at, verdict, allowed)),
        2 => any::<usize>().prop_map(Event::Cut),
        3 => any::<usize>().prop_map(Event::End),
        5 => (0..400u64).prop_map(Event::Pass),
        1 => (0..4_000u64).prop_map(Event::Pass),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    (1..6u32, 0.2..=1.0, 1..12u32, 10..1_000u64, 1..4u64, 1..4u32).prop_map(
        |(run, ratio, volume, ejection, times, probes)| Settings {
            consecutive_failures: run,
            failure_ratio: ratio,
            failure_min_volume: volume,
            window: Duration::from_secs(1),
            ejection: Duration::from_millis(ejection),
            max_ejection: Duration::from_millis(ejection * times),
            half_open_probes: probes,
            max_ejection_percent: 100,
            slow_start: None,
            active: None,
        },
    )
}

/// A permit that the model gave out.
#[derive(Clone, Copy, Debug)]
struct Given {
    /// How many ejections and recoveries lay before it.
    era: usize,
    probe: bool,
    /// Holds a probe slot until it is released or lost.
    holds_slot: bool,
    released: bool,
}

struct Model {
    settings: Settings,
    now: u64,
    /// Milliseconds at which the present ejection ends.
    out_until: Option<u64>,
    row: u64,
    run: u32,
    /// Results of this era: tenth of the window they came in, and whether they failed.
    results: Vec<(u64, bool)>,
    era: usize,
    permits: Vec<Given>,
    slots_lost_at: u64,
}

impl Model {
    fn milliseconds(span: Duration) -> u64 {
        u64::try_from(span.as_millis()).expect("small")
    }

    fn slots_held(&self) -> usize {
        self.permits.iter().filter(|permit| permit.holds_slot).count()
    }

    fn standing(&self) -> Standing {
        match self.out_until {
            None => Standing::Healthy,
            Some(until) if self.now < until => Standing::Ejected {
                until: Instant::from_nanos(until * 1_000_000),
            },
            Some(_) => {
                let free = self.slots_held() < self.settings.half_open_probes as usize;
                if free || self.now >= self.slots_lost_at {
                    Standing::HalfOpen
                } else {
                    Standing::Probing
                }
            }
        }
    }

    fn acquire(&mut self) -> bool {
        let standing = self.standing();
        let probe = standing == Standing::HalfOpen;
        if probe {
            if self.slots_held() == self.settings.half_open_probes as usize {
                self.permits
                    .iter_mut()
                    .for_each(|permit| permit.holds_slot = false);
            }
            self.slots_lost_at = self.now + Self::milliseconds(self.settings.ejection);
        }
        let given = probe || standing == Standing::Healthy;
        if given {
            self.permits.push(Given {
                era: self.era,
                probe,
                holds_slot: probe,
                released: false,
            });
        }
        given
    }

    fn window(&self) -> (u32, u32) {
        let current = self.now / 100;
        let within = || self.results.iter().filter(move |(tenth, _)| tenth + 10 > current);
        let count = |n: usize| u32::try_from(n).expect("few");
        (
            count(within().count()),
            count(within().filter(|(_, failed)| *failed).count()),
        )
    }

    /// A result while healthy; what it ejects by.
    fn result(&mut self, failed: bool, allowed: bool) -> Option<Cause> {
        self.results.push((self.now / 100, failed));
        self.run += u32::from(failed);
        let (volume, failures) = self.window();
        let cause = if self.run >= self.settings.consecutive_failures {
            Cause::Consecutive
        } else if volume >= self.settings.failure_min_volume
            && f64::from(failures) / f64::from(volume) >= self.settings.failure_ratio
        {
            Cause::Ratio
        } else {
            return None;
        };
        allowed.then(|| self.eject(cause))
    }

    fn eject(&mut self, cause: Cause) -> Cause {
        self.row += 1;
        let span = Self::milliseconds(self.settings.ejection) * self.row;
        self.out_until = Some(self.now + span.min(Self::milliseconds(self.settings.max_ejection)));
        self.clear();
        cause
    }

    fn clear(&mut self) {
        self.era += 1;
        self.run = 0;
        self.results.clear();
        self.permits
            .iter_mut()
            .for_each(|permit| permit.holds_slot = false);
    }

    /// What the verdict changes.
    fn release(&mut self, at: usize, verdict: Verdict, allowed: bool) -> Option<(State, Option<Cause>)> {
        self.permits[at].released = true;
        let permit = self.permits[at];
        if permit.era != self.era {
            return None;
        }
        self.permits[at].holds_slot = false;
        match (self.out_until, verdict) {
            (None, Verdict::Failure) => self.result(true, allowed).map(ejected),
            (None, Verdict::Success) => self.result(false, allowed).map(ejected),
            (Some(_), Verdict::Failure) if permit.probe => Some(ejected(self.eject(Cause::HalfOpenFailure))),
            (Some(_), Verdict::Success) if permit.probe => {
                self.out_until = None;
                self.row = 0;
                self.clear();
                Some((State::Healthy, None))
            }
            _ => None,
        }
    }

    /// Whether the rest of that response is about the present, healthy time.
    fn is_about_now(&self, at: usize) -> bool {
        let permit = self.permits[at];
        self.out_until.is_none() && permit.era + usize::from(permit.probe) == self.era
    }
}

fn ejected(cause: Cause) -> (State, Option<Cause>) {
    (State::Ejected, Some(cause))
}

fn agree(transition: Option<Transition>, expected: Option<(State, Option<Cause>)>) {
    assert_eq!(
        transition.map(|transition| (transition.to, transition.cause)),
        expected
    );
    assert!(transition.is_none_or(|transition| transition.until.is_some() == transition.cause.is_some()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // [HEALTH-2] [HEALTH-3] [HEALTH-5] [HEALTH-6] [HEALTH-7] [HEALTH-8] [HEALTH-9] [HEALTH-10] [HEALTH-12] [HEALTH-13]
    #[test]
    fn it_does_what_the_plain_model_does(
        settings in settings(),
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut health = Health::new(Params::new(settings.clone()).expect("within bounds"));
        let mut model = Model {
            settings,
            now: 0,
            out_until: None,
            row: 0,
            run: 0,
            results: Vec::new(),
            era: 0,
            permits: Vec::new(),
            slots_lost_at: 0,
        };
        let mut permits: Vec<Permit> = Vec::new();
        for event in events {
            let now = Instant::from_nanos(model.now * 1_000_000);
            let count = permits.len();
            match event {
                Event::Acquire => {
                    let permit = health.acquire(now);
                    prop_assert_eq!(permit.is_some(), model.acquire());
                    permits.extend(permit);
                }
                Event::Cut(at) if count > 0 && model.permits[at % count].released => {
                    let transition = health.late_failure(now, permits[at % count], at_once());
                    let expected =
                        if model.is_about_now(at % count) { model.result(true, true) } else { None };
                    agree(transition, expected.map(ejected));
                }
                Event::End(at) if count > 0 && model.permits[at % count].released => {
                    health.clean_end(permits[at % count]);
                    if model.is_about_now(at % count) {
                        model.run = 0;
                    }
                }
                Event::FailOpen => {
                    permits.push(health.fail_open());
                    model.permits.push(Given { era: model.era, probe: false, holds_slot: false, released: false });
                }
                Event::Pass(milliseconds) => model.now += milliseconds,
                Event::Release(at, verdict, allowed) if count > 0 && !model.permits[at % count].released => {
                    let ejection = Ejection { allowed, jitter: Draw::new(0.0) };
                    let transition = health.release(now, permits[at % count], verdict, ejection);
                    agree(transition, model.release(at % count, verdict, allowed));
                }
                Event::Cut(_) | Event::End(_) | Event::Release(..) => {}
            }
            let snapshot = health.snapshot(Instant::from_nanos(model.now * 1_000_000));
            prop_assert_eq!(snapshot.standing, model.standing());
            prop_assert_eq!(snapshot.consecutive_failures, model.run);
            prop_assert_eq!((snapshot.window_volume, snapshot.window_failures), model.window());
            prop_assert_eq!(u64::from(snapshot.ejections), model.row);
        }
        // Every permit comes back, and with them all slots.
        let now = Instant::from_nanos((model.now + 1_000_000) * 1_000_000);
        for (permit, given) in permits.iter().zip(&model.permits) {
            if !given.released {
                let _transition = health.release(now, *permit, Verdict::Neutral, at_once());
            }
        }
        prop_assert!(matches!(health.standing(now), Standing::Healthy | Standing::HalfOpen));
    }
}
