use super::StatusSet;

#[test]
fn a_set_holds_what_was_put_in_and_nothing_else() {
    let mut set: StatusSet = [429, 599, 100].into_iter().collect();
    set.insert(503);
    assert_eq!(set.iter().collect::<Vec<_>>(), [100, 429, 503, 599]);
    assert!(set.contains(429));
    assert!(!set.contains(430));
}

#[test]
fn what_is_no_status_is_never_in_it() {
    let set: StatusSet = [0, 99, 600, 999, u16::MAX].into_iter().collect();
    assert_eq!(set, StatusSet::default());
    assert!(!set.contains(600));
    assert!(!set.contains(0));
}

#[test]
fn a_class_is_all_statuses_that_begin_with_it() {
    let mut class = StatusSet::default();
    class.insert_class(4);
    assert_eq!(class, StatusSet::from_ranges([400..=499]));
    let mut half = StatusSet::default();
    half.insert_class(50);
    assert_eq!(half, StatusSet::from_ranges([500..=509]));
}

#[test]
fn what_is_no_class_adds_nothing() {
    let mut set = StatusSet::default();
    for digits in [0, 6, 9, 99, 600, u16::MAX] {
        set.insert_class(digits);
    }
    assert_eq!(set, StatusSet::default());
}

#[test]
fn it_shows_as_the_statuses_in_it() {
    assert_eq!(
        format!("{:?}", StatusSet::from_ranges([429..=429, 503..=504])),
        "{429, 503, 504}"
    );
}
