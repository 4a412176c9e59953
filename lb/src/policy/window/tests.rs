use std::time::Duration;

use proptest::prelude::*;

use super::{Counts, Window};
use crate::policy::time::Instant;

const SECOND: u64 = 1_000_000_000;

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * SECOND)
}

#[test]
fn a_result_counts_until_its_bucket_leaves_the_window() {
    let mut window = Window::new(Duration::from_secs(10));
    window.record(at(100), true);
    window.record(at(105), false);
    assert_eq!(
        window.counts(at(105)),
        Counts {
            volume: 2,
            failures: 1
        }
    );
    assert_eq!(
        window.counts(at(109)),
        Counts {
            volume: 2,
            failures: 1
        }
    );
    assert_eq!(
        window.counts(at(110)),
        Counts {
            volume: 1,
            failures: 0
        }
    );
    assert_eq!(window.counts(at(115)), Counts::default());
}

#[test]
fn a_window_that_was_cleared_is_empty() {
    let mut window = Window::new(Duration::from_secs(10));
    window.record(at(100), true);
    window.clear();
    assert_eq!(window.counts(at(100)), Counts::default());
}

#[test]
fn a_clock_that_goes_backwards_counts_into_the_bucket_in_progress() {
    let mut window = Window::new(Duration::from_secs(10));
    window.record(at(100), true);
    window.record(at(50), true);
    assert_eq!(
        window.counts(at(50)),
        Counts {
            volume: 2,
            failures: 2
        }
    );
    assert_eq!(
        window.counts(at(109)),
        Counts {
            volume: 2,
            failures: 2
        }
    );
}

proptest! {
    #[test]
    fn it_counts_what_a_list_of_all_results_says(steps in prop::collection::vec((0..40u64, any::<bool>()), 1..60)) {
        let mut window = Window::new(Duration::from_secs(10));
        let mut results = Vec::new();
        let mut now = 0;
        for (wait, failed) in steps {
            now += wait * SECOND / 10;
            window.record(Instant::from_nanos(now), failed);
            results.push((now / SECOND, failed));
            for ahead in [0, 3, 12] {
                let later = now + ahead * SECOND;
                let within = |&&(bucket, _): &&(u64, bool)| bucket + 10 > later / SECOND;
                let expected = Counts {
                    volume: u32::try_from(results.iter().filter(within).count()).expect("at most 60"),
                    failures: u32::try_from(results.iter().filter(within).filter(|result| result.1).count())
                        .expect("at most 60"),
                };
                prop_assert_eq!(window.counts(Instant::from_nanos(later)), expected);
            }
        }
    }
}

// [RELOAD-14]
#[test]
fn another_span_keeps_what_it_is_long_enough_for() {
    let counts = |volume, failures| Counts { volume, failures };
    let mut window = Window::new(Duration::from_secs(10));
    for second in 100..110 {
        window.record(at(second), second % 2 == 0);
    }
    let before = window.clone();
    window.resize(Duration::from_secs(10));
    assert_eq!(window.counts(at(109)), before.counts(at(109)));
    window.resize(Duration::from_secs(100));
    assert_eq!(window.counts(at(109)), counts(10, 5));
    assert_eq!(window.counts(at(190)), counts(10, 5));
    assert_eq!(window.counts(at(200)), Counts::default());
    let mut shorter = before;
    shorter.resize(Duration::from_secs(5));
    assert_eq!(shorter.counts(at(109)), counts(5, 2));
    shorter.record(at(110), true);
    assert_eq!(shorter.counts(at(110)).failures, 3);
}
