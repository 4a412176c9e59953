use super::{CONTINUE, Reading, Received};
use crate::wire::http1::BadRequest;

fn head(reading: &mut Reading, raw: &str) -> Option<Result<Box<Received>, BadRequest>> {
    reading.head(&mut raw.as_bytes().to_vec())
}

fn received(found: Option<Result<Box<Received>, BadRequest>>) -> (String, String, bool) {
    let received = found.expect("a whole head").expect("a good one");
    let first = String::from_utf8(received.first.to_vec()).unwrap();
    (received.head.request.uri().to_string(), first, received.more)
}

/// All requests of `raw` with their bodies, when it comes in pieces of `size`.
fn read(raw: &str, size: usize) -> Vec<(String, String)> {
    let mut reading = Reading::default();
    let mut pieces = raw.as_bytes().chunks(size);
    let mut all = Vec::new();
    'requests: loop {
        let mut next = reading.head_ahead();
        while next.is_none() {
            let Some(piece) = pieces.next() else {
                break 'requests;
            };
            next = reading.head(&mut piece.to_vec());
        }
        let (target, mut body, _) = received(next);
        while reading.end().is_none() {
            let Some(piece) = pieces.next() else {
                panic!("{target} has no end")
            };
            body += std::str::from_utf8(&reading.body(&mut piece.to_vec())).unwrap();
        }
        assert!(matches!(reading.end(), Some(Ok(_))), "{target}");
        all.push((target, body));
    }
    assert!(!reading.is_begun());
    all
}

// [HTTP-53] [HTTP-58]
#[test]
fn trailers_that_come_with_their_head_are_still_to_be_read() {
    let whole = |end: &str| {
        let mut reading = Reading::default();
        let raw = format!("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n{end}");
        let (_, _, more) = received(head(&mut reading, &raw));
        (more, reading.end())
    };
    let (more, end) = whole("x-sum: 1\r\n\r\n");
    let trailers = end.expect("an end").expect("well framed").expect("trailers");
    assert_eq!((more, trailers["x-sum"].as_bytes()), (true, &b"1"[..]));
    assert!(matches!(whole("\r\n"), (false, Some(Ok(None)))));
}

// [HTTP-58]
#[test]
fn requests_are_the_same_however_they_come() {
    let raw = "GET /a HTTP/1.1\r\nhost: h\r\n\r\nPOST /b HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello\
               POST /c HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nt: u\r\n\r\n\
               \r\nGET /d HTTP/1.1\r\n\r\n";
    let expected = [("/a", ""), ("/b", "hello"), ("/c", "abcde"), ("/d", "")];
    let expected = expected.map(|(target, body)| (target.to_owned(), body.to_owned()));
    for size in 1..=raw.len() {
        assert_eq!(read(raw, size), expected, "in pieces of {size}");
    }
}

#[test]
fn what_is_left_of_a_head_is_not_read_again_before_more_comes() {
    let mut reading = Reading::default();
    received(head(&mut reading, "GET /a HTTP/1.1\r\n\r\nGET /b"));
    assert!(reading.is_begun());
    assert!(reading.head_ahead().is_none());
    assert!(!reading.untried);
    assert!(head(&mut reading, " HTTP/1.1").is_none());
    assert_eq!(received(head(&mut reading, "\r\n\r\n")).0, "/b");
    assert!(!reading.is_begun());
}

#[test]
fn a_client_waits_only_for_a_body_that_has_not_come() {
    let waits = "POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    let mut reading = Reading::default();
    assert_eq!(received(head(&mut reading, &format!("{waits}ab"))).1, "ab");
    assert!(!reading.owes());
    assert!(received(head(&mut reading, waits)).2);
    assert_eq!(reading.next_to_say(false), None, "the body is not wanted yet");
    assert_eq!(reading.next_to_say(true), Some(CONTINUE));
    reading.finish_saying(&mut Vec::new());
    assert!(!reading.owes());
}

// [HTTP-11]
#[test]
fn what_is_said_ahead_of_an_answer_is_said_one_behind_the_other_and_to_its_end() {
    let waits = "POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    // A client takes so many bytes at a time, and an interim response comes after so many takes.
    for taken in 1..40 {
        for after in 0..40 {
            let mut reading = Reading::default();
            received(head(&mut reading, waits));
            let mut out = Vec::new();
            for turn in 0..60 {
                if turn == after {
                    reading.say(|interim| interim.extend_from_slice(b"[interim]"));
                }
                let Some(next) = reading.next_to_say(true) else {
                    continue;
                };
                let next = &next[..taken.min(next.len())];
                out.extend_from_slice(next);
                let length = next.len();
                reading.said(length);
            }
            let text = String::from_utf8(out).unwrap();
            let waited = std::str::from_utf8(CONTINUE).unwrap();
            assert!(
                text == format!("{waited}[interim]") || text == format!("[interim]{waited}"),
                "{text}"
            );
        }
    }
    // What was begun is ended ahead of the answer, and what was not is left out but for the interim response.
    for (said, left) in [(0, "[interim]"), (9, "100 Continue\r\n\r\n[interim]")] {
        let mut reading = Reading::default();
        received(head(&mut reading, waits));
        assert_eq!(reading.next_to_say(true), Some(CONTINUE));
        reading.said(said);
        reading.say(|interim| interim.extend_from_slice(b"[interim]"));
        let mut out = b"before ".to_vec();
        reading.finish_saying(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("before {left}"));
        assert_eq!(reading.next_to_say(true), None);
    }
}

// [HTTP-48]
#[test]
fn a_body_that_nobody_can_tell_the_length_of_is_never_read() {
    let mut reading = Reading::default();
    let raw = "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
    let (_, first, more) = received(head(&mut reading, raw));
    assert_eq!((first.as_str(), more), ("", true));
    assert!(matches!(reading.end(), Some(Err(_))));
    assert!(!reading.is_done() && !reading.is_begun());
}

#[test]
fn a_fault_in_a_body_comes_behind_what_was_good() {
    let mut reading = Reading::default();
    let raw = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\nx\r\n";
    assert_eq!(received(head(&mut reading, raw)).1, "ab");
    assert!(matches!(reading.end(), Some(Err(_))));
    assert!(reading.body(&mut b"1\r\nc\r\n".to_vec()).is_empty());
    assert!(!reading.is_done());
}

#[test]
fn a_head_without_an_end_has_a_limit() {
    let mut reading = Reading::default();
    assert!(head(&mut reading, "GET / HTTP/1.1\r\n").is_none());
    let line = "x".repeat(10_000);
    let found = (0..20).find_map(|_| head(&mut reading, &line));
    assert!(matches!(found, Some(Err(BadRequest::TooLarge))));
}
