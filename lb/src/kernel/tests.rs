use super::*;

fn settings(mode: Mode) -> Settings {
    Settings {
        mode,
        ..Settings::default()
    }
}

// [KERNEL-17]
#[test]
fn a_plane_that_is_not_wanted_needs_no_reason() {
    assert!(matches!(
        start(&settings(Mode::Off), None, &[]),
        Ok(Started::Off(None))
    ));
}

// [KERNEL-17]
#[test]
fn without_programs_auto_goes_on_and_required_does_not() {
    let started = start(&settings(Mode::Auto), None, &[]).expect("auto never refuses for what is missing");
    let Started::Off(Some(reason)) = started else {
        panic!("started without programs")
    };
    assert_eq!(
        reason.to_string(),
        "this build has no kernel programs (`cargo xtask build-ebpf` makes them)"
    );
    assert!(matches!(
        start(&settings(Mode::Required), None, &[]),
        Err(Missing::Programs)
    ));
}

#[test]
fn what_is_no_object_is_a_reason_in_one_line() {
    let started = start(&settings(Mode::Auto), Some(b"not an object"), &[]).expect("auto");
    let Started::Off(Some(reason)) = started else {
        panic!("started from nonsense")
    };
    let line = reason.to_string();
    assert!(line.starts_with("creating the maps: "), "{line}");
    assert_eq!(line.lines().count(), 1);
}
