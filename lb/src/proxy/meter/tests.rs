use super::*;

// [USAGE-2]
#[test]
fn the_usage_is_found_however_the_body_is_cut() {
    let body = format!(
        r#"{{"data":"{}","usage":{{"prompt_tokens":7,"total_tokens":7}},"metadata":{{}}}}"#,
        "x".repeat(3 * KEPT)
    );
    for size in [1, 7, 1000, KEPT - 1, KEPT, KEPT + 1, body.len()] {
        let mut meter = Meter::default();
        for piece in body.as_bytes().chunks(size) {
            meter.feed(&Bytes::copy_from_slice(piece));
            assert!(meter.end.len() <= KEPT);
        }
        assert_eq!(meter.usage().prompt, 7, "pieces of {size}");
    }
}
