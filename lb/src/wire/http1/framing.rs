//! Which bytes after a head are its body, and whether the connection outlives it.

use httparse::Header;

use super::hop::options;
use super::{Decoder, Malformed};

/// What the header section of a response says about its body (RFC 9112 6.3) and its connection (9.3).
#[derive(Debug)]
pub(super) struct Framing {
    /// `None`: the body, if there may be one, ends with the connection.
    pub(super) decoder: Option<Decoder>,
    /// Whether the connection may carry another request, once the body has been read.
    pub(super) keep_alive: bool,
}

/// Reads the framing of a response, and refuses what two readers could take differently.
///
/// `http11` is false for HTTP/1.0, where a connection closes unless it says `keep-alive`.
pub(super) fn framing(headers: &[Header<'_>], http11: bool) -> Result<Framing, Malformed> {
    let (mut length, mut chunked) = (None, false);
    let (mut close, mut keep_alive) = (false, http11);
    for header in headers {
        // The length decides nearly always.
        match header.name.len() {
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for option in options(header.value) {
                    close |= option.eq_ignore_ascii_case(b"close");
                    keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let value = content_length(header.value)?;
                if length.replace(value).is_some_and(|earlier| earlier != value) {
                    return Err(Malformed::ContentLength);
                }
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                if chunked || !header.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Malformed::TransferEncoding);
                }
                chunked = true;
            }
            _ => {}
        }
    }
    if chunked && (length.is_some() || !http11) {
        return Err(Malformed::Ambiguous);
    }
    let decoder = if chunked {
        Some(Decoder::chunked())
    } else {
        length.map(Decoder::Length)
    };
    Ok(Framing {
        decoder,
        keep_alive: keep_alive && !close,
    })
}

/// The number in a `content-length`: plain digits and nothing else, no sign, no list, no space, no overflow.
pub fn content_length(value: &[u8]) -> Result<u64, Malformed> {
    if value.is_empty() {
        return Err(Malformed::ContentLength);
    }
    value
        .iter()
        .try_fold(0_u64, |sum, &digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            sum.checked_mul(10)?.checked_add(digit)
        })
        .ok_or(Malformed::ContentLength)
}
