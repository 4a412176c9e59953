use proptest::prelude::*;

use super::{Draw, Weyl};

/// (√5−1)/2.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

#[test]
fn a_draw_lies_in_its_range_whatever_it_is_made_of() {
    let largest = 1.0 - f64::EPSILON / 2.0;
    let cases = [
        (0.0, 0.0),
        (0.25, 0.25),
        (largest, largest),
        (1.0, largest),
        (f64::INFINITY, largest),
        (-0.5, 0.0),
        (f64::NEG_INFINITY, 0.0),
        (f64::NAN, 0.0),
    ];
    for (given, expected) in cases {
        assert_eq!(
            Draw::new(given).value().to_bits(),
            f64::to_bits(expected),
            "of {given}"
        );
    }
}

#[test]
fn the_sequence_begins_at_its_origin_and_goes_on_by_the_golden_ratio() {
    let mut sequence = Weyl::new(Draw::new(0.25));
    for n in 0..1_000 {
        let expected = (0.25 + f64::from(n) * GOLDEN).fract();
        let distance = (sequence.next().value() - expected).abs();
        assert!(
            !(1e-9..1.0 - 1e-9).contains(&distance),
            "term {n} is off by {distance}"
        );
    }
}

/// How far the draws below `f` stray from their part, at worst, over every run of 200 among the first 2000.
fn worst_split(origin: f64, f: f64) -> f64 {
    let mut sequence = Weyl::new(Draw::new(origin));
    let mut below = vec![0u32];
    for n in 0..2_000 {
        below.push(below[n] + u32::from(sequence.next().value() < f));
    }
    let stray = |run: &[u32]| (f64::from(run[200] - run[0]) - 200.0 * f).abs();
    below.windows(201).map(stray).fold(0.0, f64::max)
}

// [AIMD-6]
#[test]
fn every_share_in_steps_of_a_hundredth_splits_200_draws_within_3() {
    for hundredth in 0..=100 {
        let worst = worst_split(0.0, f64::from(hundredth) / 100.0);
        assert!(worst <= 3.0, "{worst} at {hundredth} hundredths");
    }
}

proptest! {
    // [AIMD-6]
    #[test]
    fn any_200_draws_in_a_row_split_within_3(origin in 0.0..1.0, f in 0.0..=1.0) {
        prop_assert!(worst_split(origin, f) <= 3.0);
    }
}
