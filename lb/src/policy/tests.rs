use super::{Bounds, OutOfBounds};

#[test]
fn what_is_out_of_bounds_reads_as_a_sentence() {
    let out = OutOfBounds {
        field: "share_decay",
        must: "lie in (0, 1)",
    };
    assert_eq!(out.to_string(), "share_decay must lie in (0, 1)");
}

#[test]
fn only_what_does_not_hold_is_noted() {
    let mut bounds = Bounds::default();
    bounds.require(true, "dwell_ms", "be a time");
    assert_eq!(bounds.finish(7), Ok(7));
    let mut bounds = Bounds::default();
    bounds.require(false, "dwell_ms", "be a time");
    bounds.require(true, "share_step", "be a number");
    assert_eq!(
        bounds.finish(7),
        Err(vec![OutOfBounds {
            field: "dwell_ms",
            must: "be a time"
        }])
    );
}
