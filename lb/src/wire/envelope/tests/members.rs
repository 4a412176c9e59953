//! Where a body says which conversation it belongs to.

use super::*;

/// What stands at each place that was found.
fn found(body: &str) -> [String; 2] {
    let mut all: Vec<[String; 2]> = Vec::new();
    for size in [1, 2, 3, 7, body.len()] {
        let mut scanner = Scanner::noting();
        for chunk in body.as_bytes().chunks(size) {
            scanner.feed(chunk).expect("valid");
        }
        let members = scanner.members().expect("noted").clone();
        scanner.finish().expect("whole");
        let text = |span: Range<usize>| body[span].to_owned();
        all.push([text(members.cache_key), text(members.opening)]);
    }
    let first = all.remove(0);
    assert!(all.iter().all(|other| *other == first), "{first:?} {all:?}");
    first
}

fn opening(body: &str) -> String {
    let [_, opening] = found(body);
    opening
}

// [AFFINITY-2]
#[test]
fn a_key_is_found_in_the_outermost_object_alone() {
    let body = r#"{"prompt_cache_key":"a\"b","metadata":{"prompt_cache_key":"y"}}"#;
    assert_eq!(found(body), [r#""a\"b""#, ""]);
    assert_eq!(found(r#"{"prompt_cache_key":1,"messages":3}"#), ["", ""]);
    let twice = r#"{"prompt_cache_key":"a","x":{"y":"z"},"prompt_cache_key":"b"}"#;
    assert_eq!(found(twice)[0], r#""b""#);
}

// [AFFINITY-2]
#[test]
fn nothing_is_noted_that_nobody_wants() {
    let mut scanner = Scanner::new();
    let body = br#"{"model":"m","prompt_cache_key":"a","messages":[{"role":"user"}]}"#;
    scanner.feed(body).expect("valid");
    assert_eq!(scanner.members(), None);
    assert_eq!(scanner.finish().expect("whole").model.as_deref(), Some("m"));
}

// [AFFINITY-2]
#[test]
fn a_conversation_begins_with_what_stands_before_its_first_answer_and_goes_on_without_changing_that() {
    let system = r#"{"role":"system","content":"be brief"}"#;
    let user = r#"{"content":[{"type":"text","role":"assistant"}],"role":"user"}"#;
    let first = format!("[{system}, {user}");
    for rest in [
        "]",
        r#",{"role":"assistant","content":"x"}]"#,
        r#",{"role":"user"},{}]"#,
    ] {
        let body = format!(r#"{{"model":"m","messages":{first}{rest},"stream":true}}"#);
        assert_eq!(opening(&body), first);
    }
    let input = format!(r#"{{"input":[{user},{system}]}}"#);
    assert_eq!(opening(&input), format!("[{user}"));
}

// [AFFINITY-2]
#[test]
fn where_no_user_speaks_all_of_it_is_the_beginning() {
    assert_eq!(opening(r#"{"input":"a \" text","x":"y"}"#), r#""a \" text""#);
    assert_eq!(
        opening(r#"{"messages":[{"role":"system"}],"a":["b"]}"#),
        r#"[{"role":"system"}]"#
    );
    assert_eq!(opening(r#"{"messages":[],"a":{"b":{"role":"user"}}}"#), "[]");
    assert_eq!(
        opening(r#"{"messages":["user",["role"]]}"#),
        r#"["user",["role"]]"#
    );
    // A role is a string of the message itself.
    let nested = r#"[{"a":{"role":"user"},"role":{"role":"user"}},[{"role":"user"}]]"#;
    assert_eq!(opening(&format!(r#"{{"messages":{nested}}}"#)), nested);
}

// [AFFINITY-2]
#[test]
fn it_is_found_whatever_escapes_a_role_is_written_with_and_refuses_nothing() {
    let written = r#"[{"r\u006fle":"us\u0065r"}"#;
    assert_eq!(opening(&format!(r#"{{"messages":{written},{{}}]}}"#)), written);
    let alone = r#"[{"\ud800":"x","role":"\udc00"},{"\ud800x":1}]"#;
    assert_eq!(opening(&format!(r#"{{"messages":{alone}}}"#)), alone);
}

/// A message of one of the kinds that clients send, and some that none does.
fn message(random: &mut fastrand::Rng) -> serde_json::Value {
    let content = || serde_json::json!([{"type": "text", "role": "user", "text": "\"}]{[\\"}]);
    match random.u8(0..7) {
        0 => serde_json::json!({"role": "user", "content": "x"}),
        1 => serde_json::json!({"content": content(), "role": "user"}),
        2 => serde_json::json!({"role": "system", "content": content()}),
        3 => serde_json::json!({"role": ["user"], "user": "role"}),
        4 => serde_json::json!({"role": "users"}),
        5 => serde_json::json!({}),
        _ => serde_json::json!([{"role": "user"}]),
    }
}

// [AFFINITY-2]
#[test]
fn the_beginning_is_what_a_reader_of_the_whole_document_says_it_is() {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..500 {
        let count = random.usize(0..6);
        let messages: Vec<_> = std::iter::repeat_with(|| message(&mut random))
            .take(count)
            .collect();
        let body = serde_json::json!({"id": "a", "messages": messages, "z": [{"role": "user"}]});
        let user = messages
            .iter()
            .position(|message| message.get("role").and_then(|role| role.as_str()) == Some("user"));
        let found = opening(&body.to_string());
        let read: Vec<serde_json::Value> = match user {
            Some(_) => serde_json::from_str(&format!("{found}]")).expect("whole messages"),
            None => serde_json::from_str(&found).expect("all messages"),
        };
        assert_eq!(read, messages[..user.map_or(count, |user| user + 1)]);
    }
}
