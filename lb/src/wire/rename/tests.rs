use super::*;

/// What comes out of `text` in pieces of `cut` bytes.
fn passed(mut renamer: Renamer, text: &[u8], cut: usize) -> String {
    let mut out = Vec::new();
    for chunk in text.chunks(cut.max(1)) {
        out.extend_from_slice(&renamer.feed(Bytes::copy_from_slice(chunk)));
    }
    out.extend_from_slice(&renamer.finish());
    String::from_utf8(out).expect("text in, text out")
}

// [NAME-1]
#[test]
fn only_the_top_level_model_of_a_document_changes_however_it_is_cut() {
    let cases = [
        (
            r#"{"id":1,"model":"up/stream","choices":[{"model":"x"}]}"#,
            r#"{"id":1,"model":"mine","choices":[{"model":"x"}]}"#,
        ),
        (
            r#"{ "a":{"model":"x"}, "model" : "\u0075p" }"#,
            r#"{ "a":{"model":"x"}, "model" : "mine" }"#,
        ),
        (r#"{"model":""}"#, r#"{"model":"mine"}"#),
        (r#"{"model":null}"#, r#"{"model":null}"#),
        (r#"{"error":{"message":"no"}}"#, r#"{"error":{"message":"no"}}"#),
        (r#"[{"model":"x"}]"#, r#"[{"model":"x"}]"#),
        (r#"{"model":"cut of"#, r#"{"model":"cut of"#),
        (
            r#"{"model":"up","model":"up"}"#,
            r#"{"model":"mine","model":"up"}"#,
        ),
        ("no JSON", "no JSON"),
        ("", ""),
    ];
    for (text, changed) in cases {
        for cut in 1..=text.len().max(1) {
            assert_eq!(
                passed(Renamer::document("mine"), text.as_bytes(), cut),
                changed,
                "cut at {cut}"
            );
        }
    }
}

// [NAME-1]
#[test]
fn a_value_that_has_no_end_is_not_held_for_ever() {
    let text = format!("{{\"model\":\"{}", "x".repeat(10 * MAX_VALUE));
    let mut renamer = Renamer::document("mine");
    let mut passed = 0;
    for chunk in text.as_bytes().chunks(1000) {
        passed += renamer.feed(Bytes::copy_from_slice(chunk)).len();
    }
    assert!(text.len() - passed <= MAX_VALUE + 1000);
    assert_eq!(passed + renamer.finish().len(), text.len());
}

// [NAME-2]
#[test]
fn the_model_of_every_complete_event_changes_alike_however_the_stream_is_cut() {
    for end in ["\n", "\r\n", "\r"] {
        let events = [
            r#"data: {"id":"1","model":"up","choices":[]}"#,
            ": x\n: y\ndata: {\"id\":\"1\",\"model\":\"up\"}\n: \"model\":\"up\"",
            r#": a comment with "model":"up""#,
            "event: message\ndata:{\"model\":\"up\",\ndata: \"x\":{\"model\":\"up\"}}",
            "data: {\"x\":1,\ndata: \"model\":\"up\"}\nid: 7",
            "data: [DONE]",
        ];
        let stream = events.map(|event| event.to_owned() + "\n\n").concat();
        let wanted = stream
            .replace(r#""id":"1","model":"up""#, r#""id":"1","model":"mine""#)
            .replace("data:{\"model\":\"up\"", "data:{\"model\":\"mine\"")
            .replace("data: \"model\":\"up\"}", "data: \"model\":\"mine\"}");
        let (stream, wanted) = (stream.replace('\n', end), wanted.replace('\n', end));
        for cut in 1..=stream.len() {
            let out = passed(Renamer::events("mine", 1024), stream.as_bytes(), cut);
            assert_eq!(out, wanted, "cut at {cut} with {end:?}");
        }
    }
}

// [NAME-2]
#[test]
fn an_event_is_passed_on_as_soon_as_it_is_complete() {
    let mut renamer = Renamer::events("mine", 1024);
    assert!(
        renamer
            .feed(Bytes::from_static(b"data: {\"model\":\"up\"}\r\n"))
            .is_empty()
    );
    assert_eq!(
        renamer.feed(Bytes::from_static(b"\r\n")),
        "data: {\"model\":\"mine\"}\r\n\r\n"
    );
    assert!(
        renamer
            .feed(Bytes::from_static(b"data: {\"model\":\"up\"}"))
            .is_empty()
    );
    assert_eq!(renamer.finish(), "data: {\"model\":\"mine\"}");
}

// [NAME-2]
#[test]
fn a_comment_between_events_waits_for_no_event() {
    for end in ["\n", "\r\n", "\r"] {
        let mut renamer = Renamer::events("mine", 1024);
        let mut pass = |text: &str| {
            let out = renamer.feed(Bytes::from(text.replace('\n', end)));
            String::from_utf8(out.to_vec()).unwrap().replace(end, "\n")
        };
        assert_eq!(pass(": x\n"), ": x\n", "{end:?}");
        assert_eq!(pass(": x\n: y\n: half"), ": x\n: y\n", "{end:?}");
        assert_eq!(pass(" of it\n"), ": half of it\n", "{end:?}");
        assert_eq!(pass("\n"), "\n", "{end:?}");
        assert_eq!(
            pass("data: {\"model\":\"up\"}\n: within\n"),
            "",
            "{end:?}: one within an event does"
        );
        assert_eq!(
            pass("\n: x\n"),
            "data: {\"model\":\"mine\"}\n: within\n\n: x\n",
            "{end:?}"
        );
        let long = format!(": {}\n", "y".repeat(2000));
        assert_eq!(pass(&long), long, "{end:?}");
        assert_eq!(
            pass("data: {\"model\":\"up\"}\n\n"),
            "data: {\"model\":\"mine\"}\n\n",
            "{end:?}"
        );
    }
}

// [NAME-2]
#[test]
fn an_event_that_is_too_long_passes_as_it_is_and_the_next_one_is_changed_again() {
    let long = format!("data: {{\"model\":\"up\",\"x\":\"{}\"}}\n\n", "y".repeat(2000));
    let next = "data: {\"model\":\"up\"}\n\n";
    let stream = format!("{long}{next}{long}{next}");
    let wanted = stream.replace(next, "data: {\"model\":\"mine\"}\n\n");
    for cut in [1, 10, 100, 1000] {
        let mut renamer = Renamer::events("mine", 1024);
        let mut out = Vec::new();
        for chunk in stream.as_bytes().chunks(cut) {
            out.extend_from_slice(&renamer.feed(Bytes::copy_from_slice(chunk)));
            let Kind::Events(events) = &renamer.kind else {
                panic!("events")
            };
            assert!(events.held.len() <= 1024, "memory is bounded");
        }
        assert!(out == wanted.as_bytes(), "cut at {cut}");
    }
}

// [NAME-1]
#[test]
fn a_name_is_written_as_json() {
    let out = passed(Renamer::document("a\"b\\c"), br#"{"model":"x"}"#, 100);
    assert_eq!(out, r#"{"model":"a\"b\\c"}"#);
}

// [NAME-1]
#[test]
fn an_event_that_is_no_json_or_has_no_end_passes_as_it_is() {
    let lines = "data: {\"model\":\ndata: }\n\n";
    assert_eq!(passed(Renamer::events("mine", 100), lines.as_bytes(), 5), lines);
    let wrong = "data: {]\ndata: \"model\":\"up\"}\n\n";
    assert_eq!(passed(Renamer::events("mine", 100), wrong.as_bytes(), 5), wrong);
    // A string cannot go on in another line; what came before it broke is what it is.
    let broken = |name| format!("data: {{\"model\":\"{name}\",\"x\":\"a\ndata: b\"}}\n\n");
    let out = passed(Renamer::events("mine", 100), broken("up").as_bytes(), 5);
    assert_eq!(out, broken("mine"));
    let unnamed = "data: {\"x\":\"a\ndata: b\",\"model\":\"up\"}\n\n";
    assert_eq!(
        passed(Renamer::events("mine", 100), unnamed.as_bytes(), 5),
        unnamed
    );
    let endless = format!("data: {{\"model\":\"{}", "x".repeat(200));
    assert_eq!(
        passed(Renamer::events("mine", 100), endless.as_bytes(), 5),
        endless
    );
}
