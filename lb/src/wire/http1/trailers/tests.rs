use http::header::TE;
use http::{HeaderMap, HeaderValue};

use crate::wire::http1::head::{MAX_HEAD_BYTES, MAX_HEADERS};
use crate::wire::http1::{Decoder, Malformed, takes_trailers};

/// The trailers of a body with nothing but these lines behind its last chunk.
fn trailers(lines: &str) -> Result<Option<HeaderMap>, Malformed> {
    let mut body = Decoder::chunked();
    let mut raw = format!("0\r\n{lines}\r\n").into_bytes();
    let decoded = body.decode(&mut raw)?;
    assert_eq!(
        (decoded.payload.len(), decoded.used, body.is_done()),
        (0, raw.len(), true)
    );
    assert_eq!(body.remaining(), Some(0));
    let has = body.has_trailers();
    let taken = body.take_trailers();
    assert_eq!(has, taken.is_some());
    assert_eq!(body.take_trailers(), None, "they are given once");
    Ok(taken)
}

// [NET-7]
#[test]
fn trailers_are_fields() {
    let fields = trailers("X-Sum: abc\r\nx-sum: def\r\nServer-Timing: a;dur=1\r\n")
        .unwrap()
        .unwrap();
    assert_eq!(fields.get_all("x-sum").iter().collect::<Vec<_>>(), ["abc", "def"]);
    assert_eq!(fields["server-timing"], "a;dur=1");
    assert_eq!(trailers("").unwrap(), None);
}

// [NET-7]
#[test]
fn fields_that_have_no_business_behind_a_body_are_dropped() {
    let forbidden = "Transfer-Encoding: chunked\r\nContent-Length: 3\r\nHost: a\r\nAuthorization: b\r\n\
        Set-Cookie: a=b\r\nContent-Type: text/plain\r\nTrailer: x\r\nConnection: close\r\nX-Lb-Degraded: 1\r\n";
    assert_eq!(trailers(forbidden).unwrap(), None);
    let fields = trailers(&format!("{forbidden}X-Sum: abc\r\n")).unwrap().unwrap();
    assert_eq!(fields.len(), 1);
}

// [NET-7]
#[test]
fn lines_that_are_no_fields_are_refused() {
    for lines in [
        "no colon\r\n",
        "X-A : b\r\n",
        "X-A: b\n",
        "X-A: \rb\r\n",
        "X-A: b\r\n folded\r\n",
        "X-A: \0\r\n",
    ] {
        assert_eq!(trailers(lines), Err(Malformed::Trailers), "{lines:?}");
    }
    assert_eq!(trailers("X-A: b\r\n\rx"), Err(Malformed::Trailers));
}

// [NET-4]
#[test]
fn trailers_over_the_limits_are_refused() {
    let fields = "x-a: b\r\n".repeat(MAX_HEADERS);
    assert_eq!(trailers(&fields).unwrap().unwrap().len(), MAX_HEADERS);
    assert_eq!(trailers(&format!("{fields}x-a: b\r\n")), Err(Malformed::Trailers));
    let value = "a".repeat(MAX_HEAD_BYTES - "x-a: \r\n".len());
    assert!(trailers(&format!("x-a: {value}\r\n")).unwrap().is_some());
    assert_eq!(trailers(&format!("x-a: {value}a\r\n")), Err(Malformed::Trailers));
}

#[test]
fn trailers_are_not_given_before_the_end() {
    let mut body = Decoder::chunked();
    body.decode(&mut b"0\r\nx-a: b\r\n".to_vec()).unwrap();
    assert_eq!((body.has_trailers(), body.take_trailers()), (false, None));
    body.decode(&mut b"\r\n".to_vec()).unwrap();
    assert_eq!(body.take_trailers().unwrap()["x-a"], "b");
}

#[test]
fn trailers_are_taken_by_who_says_so() {
    let says = |values: &[&'static str]| {
        let mut fields = HeaderMap::new();
        for value in values {
            fields.append(TE, HeaderValue::from_static(value));
        }
        takes_trailers(&fields)
    };
    for values in [
        &["trailers"][..],
        &["gzip;q=0.5, Trailers"],
        &["gzip", "trailers"],
    ] {
        assert!(says(values), "{values:?}");
    }
    for values in [&[][..], &[""], &["trailer"], &["trailers;q=1"], &["x-trailers"]] {
        assert!(!says(values), "{values:?}");
    }
}
