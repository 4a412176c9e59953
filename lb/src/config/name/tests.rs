use super::*;

#[test]
fn a_name_is_lower_case_letters_digits_dots_underscores_and_dashes() {
    for good in ["a", "gpu-a.1_x", &"x".repeat(64)] {
        assert_eq!(Name::new(good).map(|n| n.to_string()), Some(good.to_owned()));
    }
    for bad in ["", "GPU", "a b", "ä", "a/b", &"x".repeat(65)] {
        assert_eq!(Name::new(bad), None, "{bad}");
    }
}

#[test]
fn a_model_name_may_be_nearly_anything_a_client_sends() {
    assert_eq!(model_name_fault("meta-llama/Llama-3.3-70B-Instruct"), None);
    assert_eq!(model_name_fault(&"x".repeat(256)), None);
    assert_eq!(model_name_fault(""), Some("is empty"));
    assert_eq!(
        model_name_fault(&"x".repeat(257)),
        Some("is longer than 256 bytes")
    );
    assert_eq!(model_name_fault("a\tb"), Some("holds a control character"));
}
