//! The breaker against a model that keeps every result and every permit and counts them anew at each question.

use proptest::prelude::*;

use super::*;

/// What happens next; times in milliseconds, permits by their place among those given out.
#[derive(Clone, Copy, Debug)]
enum Event {
    Acquire,
    Cut(usize),
    End(usize),
    Pass(u64),
    Release(usize, Verdict),
}

fn event() -> impl Strategy<Value = Event> {
    let verdict = prop_oneof![
        4 => Just(Verdict::Failure),
        1 => Just(Verdict::Neutral),
        4 => Just(Verdict::Success),
    ];
    prop_oneof![
        8 => Just(Event::Acquire),
        8 => (any::<usize>(), verdict).prop_map(|(at, verdict)| Event::Release(at, verdict)),
        2 => any::<usize>().prop_map(Event::Cut),
        3 => any::<usize>().prop_map(Event::End),
        5 => (0..400u64).prop_map(Event::Pass),
        1 => (0..4_000u64).prop_map(Event::Pass),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    (1..6u32, 0.2..=1.0, 1..12u32, 10..1_000u64, 1..5u32).prop_map(|(run, ratio, volume, open, probes)| {
        Settings {
            consecutive_failures: run,
            failure_ratio: ratio,
            failure_min_volume: volume,
            window: Duration::from_secs(1),
            open: Duration::from_millis(open),
            half_open_probes: probes,
        }
    })
}

#[derive(Clone, Copy)]
struct Given {
    era: usize,
    probe: bool,
    holds: bool,
    released: bool,
}

struct Model {
    settings: Settings,
    open_ms: u64,
    now: u64,
    open_until: Option<u64>,
    era: usize,
    run: u32,
    passed: u32,
    /// Results of this era: the tenth of the window they came in, and whether they failed.
    results: Vec<(u64, bool)>,
    permits: Vec<Given>,
    lost_at: u64,
}

impl Model {
    fn held(&self) -> usize {
        self.permits.iter().filter(|permit| permit.holds).count()
    }

    fn standing(&self) -> Standing {
        let free = self.held() < self.settings.half_open_probes as usize || self.now >= self.lost_at;
        match self.open_until {
            None => Standing::Closed,
            Some(until) if self.now < until => Standing::Open { until: at(until) },
            Some(_) if free => Standing::HalfOpen,
            Some(_) => Standing::Probing,
        }
    }

    fn acquire(&mut self) -> bool {
        let probe = match self.standing() {
            Standing::Closed => false,
            Standing::HalfOpen => true,
            Standing::Open { .. } | Standing::Probing => return false,
        };
        if probe {
            if self.held() == self.settings.half_open_probes as usize {
                self.let_go();
            }
            self.lost_at = self.now + self.open_ms;
        }
        self.permits.push(Given {
            era: self.era,
            probe,
            holds: probe,
            released: false,
        });
        true
    }

    fn let_go(&mut self) {
        self.permits.iter_mut().for_each(|permit| permit.holds = false);
    }

    fn turn(&mut self, open_until: Option<u64>) {
        self.era += 1;
        (self.run, self.passed) = (0, 0);
        self.results.clear();
        self.open_until = open_until;
        self.let_go();
    }

    fn window(&self) -> (u32, u32) {
        let within = || {
            self.results
                .iter()
                .filter(|(tenth, _)| tenth + 10 > self.now / 100)
        };
        let count = |n: usize| u32::try_from(n).expect("few");
        (
            count(within().count()),
            count(within().filter(|(_, failed)| *failed).count()),
        )
    }

    fn result(&mut self, failed: bool) -> Option<Cause> {
        self.results.push((self.now / 100, failed));
        self.run += u32::from(failed);
        let (volume, failures) = self.window();
        let ratio = f64::from(failures) / f64::from(volume);
        let cause = if self.run >= self.settings.consecutive_failures {
            Cause::Consecutive
        } else if volume >= self.settings.failure_min_volume && ratio >= self.settings.failure_ratio {
            Cause::Ratio
        } else {
            return None;
        };
        self.turn(Some(self.now + self.open_ms));
        Some(cause)
    }

    /// What the verdict changes.
    fn release(&mut self, n: usize, verdict: Verdict) -> Option<Turn> {
        self.permits[n].released = true;
        let permit = self.permits[n];
        if permit.era != self.era {
            return None;
        }
        self.permits[n].holds = false;
        match (permit.probe, verdict) {
            (_, Verdict::Neutral) => None,
            (false, Verdict::Failure) => self.result(true).map(Turn::Opened),
            (false, Verdict::Success) => self.result(false).map(Turn::Opened),
            (true, Verdict::Failure) => {
                self.turn(Some(self.now + self.open_ms));
                Some(Turn::Opened(Cause::HalfOpenFailure))
            }
            (true, Verdict::Success) => {
                self.passed += 1;
                if self.passed < self.settings.half_open_probes {
                    return None;
                }
                self.turn(None);
                Some(Turn::Closed)
            }
        }
    }

    fn is_about_now(&self, n: usize) -> bool {
        let permit = self.permits[n];
        self.open_until.is_none() && permit.era + usize::from(permit.probe) == self.era
    }
}

/// A transition without its time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Turn {
    Closed,
    Opened(Cause),
}

fn seen(transition: Option<Transition>) -> Option<Turn> {
    transition.map(|transition| match transition {
        Transition::Closed => Turn::Closed,
        Transition::Opened { cause, .. } => Turn::Opened(cause),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // [BREAKER-2] [BREAKER-3] [BREAKER-4] [BREAKER-5] [BREAKER-6]
    #[test]
    fn it_does_what_the_plain_model_does(
        settings in settings(),
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut breaker = Breaker::new(Params::new(settings.clone()).expect("within bounds"));
        let open_ms = u64::try_from(settings.open.as_millis()).expect("small");
        let mut model = Model {
            settings, open_ms, now: 0, open_until: None, era: 0, run: 0, passed: 0,
            results: Vec::new(), permits: Vec::new(), lost_at: 0,
        };
        let mut permits: Vec<Permit> = Vec::new();
        for event in events {
            let (now, count) = (at(model.now), permits.len());
            match event {
                Event::Acquire => {
                    let permit = breaker.acquire(now);
                    prop_assert_eq!(permit.is_some(), model.acquire());
                    if let (Some(permit), Some(era)) = (permit, breaker.closed_era()) {
                        prop_assert_eq!(permit, Permit::ordinary(era));
                    }
                    permits.extend(permit);
                }
                Event::Cut(n) if count > 0 && model.permits[n % count].released => {
                    let transition = breaker.late_failure(now, permits[n % count]);
                    let expected = if model.is_about_now(n % count) { model.result(true).map(Turn::Opened) } else { None };
                    prop_assert_eq!(seen(transition), expected);
                }
                Event::End(n) if count > 0 && model.permits[n % count].released => {
                    breaker.clean_end(permits[n % count]);
                    if model.is_about_now(n % count) {
                        model.run = 0;
                    }
                }
                Event::Pass(milliseconds) => model.now += milliseconds,
                Event::Release(n, verdict) if count > 0 && !model.permits[n % count].released => {
                    let transition = breaker.release(now, permits[n % count], verdict);
                    prop_assert_eq!(seen(transition), model.release(n % count, verdict));
                }
                Event::Cut(_) | Event::End(_) | Event::Release(..) => {}
            }
            let snapshot = breaker.snapshot(at(model.now));
            prop_assert_eq!(snapshot.standing, model.standing());
            prop_assert_eq!(snapshot.consecutive_failures, model.run);
            prop_assert_eq!((snapshot.window_volume, snapshot.window_failures), model.window());
            prop_assert_eq!(breaker.has_run(), model.run > 0);
        }
    }
}
