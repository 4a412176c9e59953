use super::{Chunked, MAX_EXTENSION_BYTES};
use crate::wire::http1::Malformed;

/// Payload, bytes used and whether the body is done.
type Decoded = (Vec<u8>, usize, bool);

/// Decodes bytes that come in pieces of `step`.
fn decode(raw: &[u8], step: usize) -> Result<Decoded, Malformed> {
    let (mut chunked, mut payload, mut used) = (Chunked::new(), Vec::new(), 0);
    for piece in raw.chunks(step) {
        let mut piece = piece.to_vec();
        match chunked.decode(&mut piece) {
            Ok(decoded) => {
                payload.extend_from_slice(&piece[decoded.payload]);
                used += decoded.used;
            }
            Err(fault) => return Err(fault),
        }
        if let Some(fault) = chunked.fault() {
            return Err(fault);
        }
    }
    Ok((payload, used, chunked.is_done()))
}

fn fault(raw: &[u8]) -> Malformed {
    let whole = decode(raw, raw.len()).unwrap_err();
    let dribbled = decode(raw, 1).unwrap_err();
    assert_eq!(whole, dribbled, "{raw:?}");
    whole
}

// [NET-8]
#[test]
fn payload_is_the_same_in_any_split() {
    let raw =
        b"5\r\nhello\r\n001;a=\"b c\"\r\n,\r\nA ; x\r\n wonderful\r\n6\r\n world\r\n0\r\nx-a: b\r\n\r\nNEXT";
    for step in 1..=raw.len() {
        let expected = (b"hello, wonderful world".to_vec(), raw.len() - 4, true);
        assert_eq!(decode(raw, step), Ok(expected), "in pieces of {step}");
    }
}

#[test]
fn the_payload_of_one_read_is_one_range() {
    let mut raw = *b"2\r\nab\r\n3\r\ncde\r\n1\r\nf\r\n";
    let decoded = Chunked::new().decode(&mut raw).unwrap();
    assert_eq!(
        (&raw[decoded.payload.clone()], decoded.payload, decoded.used),
        (&b"abcdef"[..], 3..9, raw.len())
    );
}

// [NET-3]
#[test]
fn sizes_are_hexadecimal_digits_and_nothing_else() {
    for raw in [
        "\r\n",
        "g\r\n",
        "0x5\r\n",
        "+5\r\n",
        "-5\r\n",
        " 5\r\n",
        "5 \r\n",
        "5\t\r\n",
        "5 5\r\n",
        "5\n",
        "5\rx",
        "_5\r\n",
        "5_\r\n",
        ";\r\n",
        "\u{0}\r\n",
    ] {
        assert_eq!(fault(raw.as_bytes()), Malformed::ChunkSize, "{raw:?}");
    }
}

// [NET-3] [NET-4]
#[test]
fn a_size_has_sixteen_digits_at_most() {
    assert_eq!(
        decode(b"ffffffffffffffff\r\nab", 3),
        Ok((b"ab".to_vec(), 20, false))
    );
    assert_eq!(
        decode(b"0000000000000001\r\na\r\n", 3),
        Ok((b"a".to_vec(), 21, false))
    );
    assert_eq!(fault(b"00000000000000001\r\n"), Malformed::ChunkSize);
}

// [NET-3]
#[test]
fn data_is_followed_by_its_line_end() {
    for raw in ["1\r\nab", "1\r\na\n", "1\r\na\rb", "1\r\na\r\r\n"] {
        assert_eq!(fault(raw.as_bytes()), Malformed::ChunkEnd, "{raw:?}");
    }
}

// [NET-3] [NET-4]
#[test]
fn extensions_are_ignored_up_to_a_limit() {
    let line = |length: usize| [b"1;", &vec![b'x'; length][..], b"\r\na\r\n0\r\n\r\n"].concat();
    let longest = usize::from(MAX_EXTENSION_BYTES) - 2;
    assert_eq!(decode(&line(longest), 7).unwrap().0, b"a");
    assert_eq!(fault(&line(longest + 1)), Malformed::ChunkExtension);
    assert_eq!(fault(b"1;a\nb"), Malformed::ChunkExtension);
    assert_eq!(fault(b"1;a\0"), Malformed::ChunkExtension);
    assert_eq!(fault(b"1;a\rb"), Malformed::ChunkSize);
}

// [NET-3]
#[test]
fn the_body_ends_with_an_exact_empty_line() {
    assert_eq!(fault(b"0\r\n\rx"), Malformed::Trailers);
    assert_eq!(fault(b"0\r\n\n"), Malformed::Trailers);
    assert_eq!(decode(b"0\r\n\r", 1), Ok((Vec::new(), 4, false)));
    assert_eq!(decode(b"0\r\n\r\n", 1), Ok((Vec::new(), 5, true)));
}

// [NET-12]
#[test]
fn what_came_before_a_fault_is_delivered_first() {
    let mut chunked = Chunked::new();
    let mut raw = *b"3\r\nabc\r\nzz";
    let decoded = chunked.decode(&mut raw).unwrap();
    assert_eq!((&raw[decoded.payload], decoded.used), (&b"abc"[..], 8));
    assert_eq!(chunked.fault(), Some(Malformed::ChunkSize));
    assert_eq!(
        chunked.decode(&mut b"0\r\n\r\n".to_vec()),
        Err(Malformed::ChunkSize),
        "broken is broken"
    );
    assert!(!chunked.is_done());
}
