use proptest::prelude::*;

use super::*;

const BASE: Duration = Duration::from_millis(25);
const CAP: Duration = Duration::from_millis(250);

// [RETRY-7]
#[test]
fn the_longest_wait_doubles_up_to_the_cap() {
    let halves: Vec<u128> = (1..=6)
        .map(|retry| full_jitter(BASE, CAP, retry, Draw::new(0.5)).as_micros())
        .collect();
    assert_eq!(halves, [12_500, 25_000, 50_000, 100_000, 125_000, 125_000]);
    assert_eq!(full_jitter(BASE, CAP, 3, Draw::new(0.0)), Duration::ZERO);
}

proptest! {
    // [RETRY-7]
    #[test]
    fn no_wait_is_above_the_cap_however_many_came_before(
        base in 1..60_000u64,
        cap in 1..60_000u64,
        retry in any::<u32>(),
        draw in 0.0..1.0,
    ) {
        let (base, cap) = (Duration::from_millis(base), Duration::from_millis(cap));
        let wait = full_jitter(base, cap, retry, Draw::new(draw));
        prop_assert!(wait <= cap);
        prop_assert!(retry > 1 || wait <= base);
    }
}
