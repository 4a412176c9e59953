use super::*;

#[test]
fn debug_output_never_holds_the_value() {
    let key = ApiKey::Inline(Secret::new("sk-123"));
    assert_eq!(format!("{key:?}"), "Inline(Secret(set))");
}

#[test]
fn secrets_are_equal_when_their_values_are() {
    assert_eq!(Secret::new("a"), Secret::new("a"));
    assert_ne!(Secret::new("a"), Secret::new("b"));
    assert_ne!(Secret::new("a"), Secret::new("ab"));
}
