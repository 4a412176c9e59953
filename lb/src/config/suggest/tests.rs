use super::*;

#[test]
fn a_slip_of_the_finger_is_understood() {
    assert_eq!(
        did_you_mean("wieght", ["url", "weight", "name"]),
        Some("did you mean `weight`?".to_owned())
    );
    assert_eq!(
        did_you_mean("upstream-model", ["upstream_model"]),
        Some("did you mean `upstream_model`?".to_owned())
    );
}

#[test]
fn an_unlike_word_is_not_offered() {
    assert_eq!(did_you_mean("colour", ["url", "weight", "name"]), None);
    assert_eq!(did_you_mean("x", []), None);
}
