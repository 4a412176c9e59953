use super::*;

const DATA: Frame = Frame::Data { preamble: false };
const PREAMBLE: Frame = Frame::Data { preamble: true };

fn frame(kind: &str, data: &str) -> Frame {
    classify(kind.as_bytes(), data.as_bytes())
}

fn status(kind: &str, data: &str) -> u16 {
    match frame(kind, data) {
        Frame::Error { status } => status,
        other => panic!("{data} is {other:?}"),
    }
}

// [FRAME-1]
#[test]
fn ordinary_data_is_data_and_its_absence_is_nothing() {
    assert_eq!(frame("", ""), Frame::Empty);
    assert_eq!(frame("error", ""), Frame::Empty);
    assert_eq!(frame("", r#"{"choices":[{"delta":{"content":"Hi"}}]}"#), DATA);
    assert_eq!(frame("completion.chunk", "{}"), DATA);
    assert_eq!(frame("", "not JSON"), DATA);
    assert_eq!(frame("", " "), DATA);
}

// [FRAME-1]
#[test]
fn the_sentinel_is_exactly_done() {
    assert_eq!(frame("", "[DONE]"), Frame::Done);
    for data in [" [DONE]", "[DONE] ", "[done]", "[DONE]\n", "\"[DONE]\"", "[DONE"] {
        assert_eq!(frame("", data), DATA, "{data:?}");
    }
    assert_eq!(frame("error", "[DONE]"), Frame::Error { status: 502 });
}

// [FRAME-1]
#[test]
fn announcements_are_preambles_by_name_or_by_type() {
    for kind in [
        "message_start",
        "ping",
        "response.created",
        "response.in_progress",
        "response.queued",
    ] {
        assert_eq!(frame(kind, "{}"), PREAMBLE, "{kind}");
        let data = format!(r#"{{"sequence_number":0,"type":"{kind}","response":{{"error":null}}}}"#);
        assert_eq!(frame("", &data), PREAMBLE, "{data}");
        assert_eq!(frame("message", &data), PREAMBLE, "{data}");
        assert_eq!(frame("other", &data), DATA, "its name goes before its type");
    }
    assert_eq!(frame("", r#"{"type":"p\u0069ng"}"#), PREAMBLE);
    assert_eq!(frame("", r#"{"type":7}"#), DATA);
    assert_eq!(frame("", r#"{"tool":{"type":"ping"}}"#), DATA);
    assert_eq!(frame("response.output_text.delta", r#"{"type":"ping"}"#), DATA);
}

// [FRAME-3]
#[test]
fn an_error_member_at_the_top_is_an_error_whatever_stands_beside_it() {
    for data in [
        r#"{"error":{}}"#,
        r#"{"error":""}"#,
        r#"{"choices":[{"delta":{"content":"x"}}],"error":"boom"}"#,
        "{\n \"error\" : { \"message\" : \"x\" } }",
        r#"{"type":"error","error":{"message":"x"}}"#,
    ] {
        assert_eq!(frame("", data), Frame::Error { status: 502 }, "{data}");
    }
    for data in [
        r#"{"error":null}"#,
        r#"{"error":false}"#,
        r#"{"error":5}"#,
        r#"{"choices":[{"error":{"code":500}}]}"#,
        r#"{"choices":[{"delta":{"content":"{\"error\":{}}"}}]}"#,
        r#"["error"]"#,
        r#""error""#,
        r#"{"x":"y" "error":{}}"#,
    ] {
        assert_eq!(frame("", data), DATA, "{data}");
    }
}

// [FRAME-3]
#[test]
fn an_error_event_is_an_error_whatever_its_data() {
    assert_eq!(status("error", "out of memory"), 502);
    assert_eq!(status("error", "{}"), 502);
    assert_eq!(
        status("error", r#"{"code":"server_is_overloaded","message":"busy"}"#),
        529
    );
    assert_eq!(
        status(
            "",
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down"}"#
        ),
        429
    );
    let failed =
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded"}}}"#;
    assert_eq!(status("response.failed", failed), 429);
    assert_eq!(status("", failed), 429);
    assert_eq!(status("response.failed", r#"{"response":{"error":null}}"#), 502);
}

// [FRAME-2]
#[test]
fn an_event_cut_short_is_what_it_was_up_to_the_cut() {
    let long = "x".repeat(100);
    assert_eq!(
        status("", &format!(r#"{{"error":{{"code":503}},"detail":"{long}"#)),
        503
    );
    assert_eq!(
        frame("", &format!(r#"{{"type":"message_start","message":"{long}"#)),
        PREAMBLE
    );
    assert_eq!(
        frame("", &format!(r#"{{"choices":[{{"delta":{{"content":"{long}"#)),
        DATA
    );
    assert_eq!(
        frame("", r#"{"error":{"code":503,"mess"#),
        DATA,
        "an error that is cut itself is not seen"
    );
    assert_eq!(status("error", r#"{"error":{"code":503,"mess"#), 502);
}

// [FRAME-4]
#[test]
fn a_number_is_the_status_wherever_providers_put_it() {
    for (data, expected) in [
        (
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            503,
        ),
        (r#"{"error":{"code":"429"}}"#, 429),
        (r#"{"error":{"status":529}}"#, 529),
        (r#"{"error":{"status_code":"500"}}"#, 500),
        (r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#, 429),
        (r#"{"error":{"type":"overloaded_error"},"status":503}"#, 503),
        (r#"{"error":"boom","status":"400"}"#, 400),
        (r#"{"error":{"code":1305,"status":504}}"#, 504),
        (r#"{"error":{"code":200}}"#, 502),
        (r#"{"error":{"code":600}}"#, 502),
        (r#"{"error":{"code":-429}}"#, 502),
        (r#"{"error":{"code":[429]}}"#, 502),
    ] {
        assert_eq!(status("", data), expected, "{data}");
    }
}

// [FRAME-5]
#[test]
fn words_stand_for_a_status_where_there_is_no_number() {
    for (word, expected) in [
        ("rate_limit_error", 429),
        ("rate_limit_exceeded", 429),
        ("insufficient_quota", 429),
        ("resource_exhausted", 429),
        ("RESOURCE_EXHAUSTED", 429),
        ("overloaded_error", 529),
        ("overloaded", 529),
        ("server_is_overloaded", 529),
        ("unavailable", 503),
        ("service_unavailable", 503),
        ("timeout", 504),
        ("timeout_error", 504),
        ("deadline_exceeded", 504),
        ("authentication_error", 401),
        ("unauthenticated", 401),
        ("invalid_api_key", 401),
        ("permission_error", 403),
        ("not_found_error", 404),
        ("model_not_found", 404),
        ("invalid_request_error", 400),
        ("context_length_exceeded", 400),
        ("server_error", 500),
        ("api_error", 500),
        ("internal_server_error", 500),
        ("something_else", 502),
    ] {
        assert_eq!(
            status("", &format!(r#"{{"error":{{"type":"{word}"}}}}"#)),
            expected,
            "type {word}"
        );
        assert_eq!(
            status("", &format!(r#"{{"error":{{"code":"{word}"}}}}"#)),
            expected,
            "code {word}"
        );
        assert_eq!(
            status("", &format!(r#"{{"error":"{word}"}}"#)),
            expected,
            "error {word}"
        );
    }
    // The narrower word wins.
    assert_eq!(
        status(
            "",
            r#"{"error":{"type":"invalid_request_error","code":"model_not_found"}}"#
        ),
        404
    );
    assert_eq!(
        status("", r#"{"error":{"type":"server_error","code":"something_else"}}"#),
        500
    );
    assert_eq!(status("", r#"{"error":{"type":null,"code":null}}"#), 502);
}

// [FRAME-6]
#[test]
fn content_is_text_reasoning_or_a_tool_call() {
    let content = |kind: &str, data: &str| has_content(kind.as_bytes(), data.as_bytes());
    for delta in [
        r#"{"content":"Hi"}"#,
        r#"{"role":"assistant","content":" "}"#,
        r#"{"content":null,"reasoning":"hm"}"#,
        r#"{"reasoning_content":"hm"}"#,
        r#"{"refusal":"no"}"#,
        r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function"}]}"#,
        r#"{"function_call":{"name":"f"}}"#,
    ] {
        let data =
            format!(r#"{{"choices":[{{"index":0}},{{"index":1,"delta":{delta},"finish_reason":null}}]}}"#);
        assert!(content("", &data), "{data}");
    }
    for delta in [
        "{}",
        "null",
        r#"{"role":"assistant"}"#,
        r#"{"role":"assistant","content":"","refusal":null}"#,
        r#"{"content":null,"tool_calls":[]}"#,
        r#"{"role":"assistant","provider_note":"x"}"#,
    ] {
        let data = format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
        assert!(!content("", &data), "{data}");
    }
    assert!(content(
        "",
        r#"{"object":"text_completion","choices":[{"text":"Hi"}]}"#
    ));
    assert!(!content(
        "",
        r#"{"object":"text_completion","choices":[{"text":""}]}"#
    ));
    assert!(content("response.output_text.delta", r#"{"delta":"Hi"}"#));
    assert!(content(
        "",
        r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#
    ));
    assert!(content(
        "content_block_delta",
        r#"{"delta":{"type":"text_delta","text":"Hi"}}"#
    ));
    for (kind, data) in [
        ("message_start", r#"{"message":{"content":[]}}"#),
        ("content_block_start", "{}"),
        ("response.created", "{}"),
        ("", r#"{"choices":[],"usage":{"prompt_tokens":1}}"#),
        ("", r#"{"choices":null}"#),
        ("", "[DONE]"),
    ] {
        assert!(!content(kind, data), "{kind} {data}");
    }
}

// [FRAME-7]
#[test]
fn an_answer_is_finished_when_it_says_so() {
    let finish = |kind: &str, data: &str| is_finish(kind.as_bytes(), data.as_bytes());
    for (kind, data) in [
        ("", r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#),
        (
            "",
            r#"{"choices":[{"finish_reason":null},{"delta":{},"finish_reason" : "length"}]}"#,
        ),
        ("message_stop", r#"{"type":"message_stop"}"#),
        ("", r#"{"type":"message_stop"}"#),
        ("response.completed", "{}"),
        ("response.incomplete", "{}"),
        ("", r#"{"type":"response.completed","response":{}}"#),
    ] {
        assert!(finish(kind, data), "{kind} {data}");
    }
    for (kind, data) in [
        (
            "",
            r#"{"choices":[{"delta":{"content":"x"},"finish_reason":null}]}"#,
        ),
        (
            "",
            r#"{"choices":[{"delta":{"content":"x"},"finish_reason":""}]}"#,
        ),
        (
            "",
            r#"{"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""}}]}"#,
        ),
        ("", r#"{"choices":[{"delta":{"x":{"finish_reason":"stop"}}}]}"#),
        ("", r#"{"finish_reason":"stop"}"#),
        ("", r#"{"choices":[{"finish_reason"#),
        ("message_delta", r#"{"delta":{"stop_reason":"end_turn"}}"#),
        ("response.output_text.done", "{}"),
        ("", "[DONE]"),
    ] {
        assert!(!finish(kind, data), "{kind} {data}");
    }
}

// [FRAME-8]
#[test]
fn an_error_of_our_own_has_the_form_that_clients_expect() {
    let error = ApiError {
        message: "no model is called \"gpt\u{1}\"",
        kind: "invalid_request_error",
        code: "model_not_found",
        param: Some("model"),
    };
    assert_eq!(
        error.to_bytes(),
        concat!(
            r#"{"error":{"message":"no model is called \"gpt\u0001\"","type":"invalid_request_error","#,
            r#""param":"model","code":"model_not_found"}}"#
        )
    );
    let bare = ApiError {
        message: "",
        param: None,
        ..error
    };
    assert!(
        bare.to_bytes()
            .starts_with(br#"{"error":{"message":"","type":"invalid_request_error","param":null,"#)
    );
}
