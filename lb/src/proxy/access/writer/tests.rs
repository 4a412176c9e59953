use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use http::{HeaderValue, Request, StatusCode};
use serde_json::{Value, json};

use super::*;
use crate::policy::time::Instant;
use crate::proxy::access::Ending;

fn line(path: &str, key: &str) -> Box<Line> {
    let request = Request::post(format!("http://lb.test{path}?secret=1"))
        .body(())
        .unwrap();
    let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut line = Line::new(
        Duration::from_millis(1_700_000_000_123),
        client,
        &HeaderValue::from_static("an-id"),
        &request,
    );
    if !key.is_empty() {
        line.known_as(key);
    }
    line.status = Some(StatusCode::UNAUTHORIZED);
    let ending = Ending {
        outcome: "refused",
        total: Duration::from_nanos(15_999),
        queue: None,
        first_token: None,
        bytes: 77,
    };
    line.end(&ending, Instant::default());
    Box::new(line)
}

fn counter() -> IntCounter {
    IntCounter::new("dropped", "Dropped.").unwrap()
}

fn queue(length: usize) -> (AccessLog, Receiver<Message>) {
    let (queue, lines) = sync_channel(length);
    let dropped = counter();
    (AccessLog { queue, dropped }, lines)
}

// [ACCESS-1]
#[test]
fn a_line_is_one_json_object_with_every_key_in_its_order() {
    let (log, lines) = queue(8);
    log.write(line("/v1/chat/completions", "team"));
    log.write(line("/v1/models", ""));
    drop(log);
    let mut out = Vec::new();
    write(&lines, Form::Json, &mut out);
    let text = String::from_utf8(out).unwrap();
    let (first, second) = text.trim_end().split_once('\n').unwrap();
    let expected = concat!(
        r#"{"ts":"2023-11-14T22:13:20.123Z","request_id":"an-id","trace_id":null,"key":"team","client":"127.0.0.1","#,
        r#""method":"POST","path":"/v1/chat/completions","model":null,"preset":null,"stream":false,"status":401,"#,
        r#""outcome":"refused","provider":null,"endpoint":null,"upstream_model":null,"attempts":[],"queue_ms":null,"#,
        r#""first_token_ms":null,"total_ms":0.015,"bytes_in":0,"bytes_out":77,"exempt":false,"cancelled":false}"#,
    );
    assert_eq!(first, expected);
    let second: Value = serde_json::from_str(second).unwrap();
    assert_eq!(
        (&second["key"], &second["path"]),
        (&Value::Null, &json!("/v1/models"))
    );
}

// [ACCESS-3]
#[test]
fn a_full_queue_drops_lines_and_counts_them() {
    let (log, lines) = queue(2);
    for _ in 0..5 {
        log.write(line("/", ""));
    }
    assert_eq!((log.dropped.get(), lines.try_iter().count()), (3, 2));
    log.write(line("/", ""));
    assert_eq!(log.dropped.get(), 3);
    drop(lines);
    log.write(line("/", ""));
    assert_eq!(log.dropped.get(), 4, "nobody is there to write it");
}

// [ACCESS-3]
#[test]
fn what_is_queued_is_written_before_the_end() {
    let (log, lines) = queue(1000);
    (0..900).for_each(|_| log.write(line("/", "")));
    log.queue.send(Message::Stop).unwrap();
    let mut out = Vec::new();
    write(&lines, Form::Json, &mut out);
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 900);
}
