use std::time::Duration;

use super::{Instant, millis};

#[test]
fn a_span_is_what_lies_between_two_instants() {
    let earlier = Instant::from_nanos(2_000);
    let later = earlier + Duration::from_nanos(500);
    assert_eq!(later.as_nanos(), 2_500);
    assert_eq!(later.since(earlier), Duration::from_nanos(500));
}

#[test]
fn a_clock_that_goes_backwards_makes_no_span() {
    assert_eq!(Instant::default().since(Instant::from_nanos(1)), Duration::ZERO);
}

#[test]
fn an_instant_past_the_end_of_the_clock_is_its_end() {
    let end = Instant::from_nanos(u64::MAX);
    assert_eq!(end + Duration::from_nanos(1), end);
    assert_eq!(Instant::default() + Duration::MAX, end);
}

#[test]
fn milliseconds_are_written_without_noise() {
    for (micros, written) in [
        (0, "0"),
        (15, "0.015"),
        (1_001, "1.001"),
        (70_000, "70"),
        (123_456_789, "123456.789"),
    ] {
        let span = Duration::from_micros(micros) + Duration::from_nanos(999);
        assert_eq!(millis(span).to_string(), written);
    }
}
