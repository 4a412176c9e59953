//! HTTP/1.1 as upstreams and clients speak it: heads, framing, chunks and trailers, without a socket.
//!
//! Framing is a security boundary: what this module takes for the end of one response is where the next one on the
//! same connection begins. So everything that two readers could read differently is refused instead of guessed at:
//! two framings at once, a length that is not plain digits, a coding other than `chunked`, a chunk line with
//! anything but hexadecimal digits before its extension, a line end that is not CR LF. A refused response costs its
//! connection; nothing after the fault is looked at.
//!
//! The parts, in the order in which a response meets them:
//! [`HeadReader`] (bytes → [`Head`], interim responses skipped or kept) → [`Decoder`] (bytes → payload, in place) → trailers.
//! [`write_request`] is the way out, and [`strip_hop_by_hop`] what both directions drop at this hop. For a client it is
//! [`parse_request`] → [`Decoder`], and [`write_response`] back.
//!
//! Every result is independent of how the bytes were split into reads. Sources: RFC 9112 (framing, chunks),
//! RFC 9110 section 7.6.1 (hop-by-hop fields), 15.2 (interim responses), 6.5.1 (trailers).

mod body;
mod chunked;
mod framing;
mod head;
mod hop;
mod incoming;
mod names;
mod present;
mod request;
mod response;
mod spare;
mod trailers;

#[cfg(test)]
mod tests;

use std::fmt;

pub use body::{Decoded, Decoder};
pub use chunked::Chunked;
pub use framing::content_length;
pub use head::{Head, HeadReader, Interim, MAX_HEAD_BYTES, MAX_HEADERS, MAX_INTERIM};
pub use hop::{HopByHop, has, is_always_hop_by_hop, strip_hop_by_hop};
pub use incoming::{BadRequest, Incoming, MAX_REQUEST_HEAD_BYTES, MAX_TARGET_BYTES, parse_request};
pub use present::Present;
pub use request::{RequestBody, RequestHead, write_chunk_line, write_last_chunk, write_request};
pub use response::{
    ResponseBody, ResponseHead, announced_trailers, keep_announced, write_interim, write_response,
};
pub use spare::give_fields;
pub use trailers::{strip_forbidden_trailers, takes_trailers};

/// Why a response cannot be trusted. None of them says anything of the response's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Both Transfer-Encoding and Content-Length, or Transfer-Encoding in HTTP/1.0 (RFC 9112 6.1).
    Ambiguous,
    /// A chunk is longer or shorter than its size says: no CR LF behind its data.
    ChunkEnd,
    /// A chunk extension is over the limit or has a control character in it.
    ChunkExtension,
    /// A chunk size is missing, not hexadecimal, or has more digits than any body needs.
    ChunkSize,
    /// Content-Length is not plain digits, overflows, or is given twice with different values (RFC 9112 6.3).
    ContentLength,
    /// Not an HTTP/1 status line or header section.
    Head,
    /// The connection ended inside the head, or after nothing but interim responses.
    HeadCut,
    /// The head is larger than [`MAX_HEAD_BYTES`] or has more than [`MAX_HEADERS`] fields.
    HeadTooLarge,
    /// What came is no HTTP/2, or breaks its rules.
    Http2,
    /// More than [`MAX_INTERIM`] interim responses before the final one.
    Interim,
    /// The trailer section is not a header section, or over its limits.
    Trailers,
    /// A transfer coding other than exactly `chunked`, or `chunked` twice.
    TransferEncoding,
    /// Status 101, although no upgrade was asked for.
    Upgrade,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ambiguous => "both transfer-encoding and content-length, or transfer-encoding in HTTP/1.0",
            Self::ChunkEnd => "chunk data without its line end",
            Self::ChunkExtension => "bad or oversized chunk extension",
            Self::ChunkSize => "bad chunk size",
            Self::ContentLength => "bad content-length",
            Self::Head => "not an HTTP/1.1 response head",
            Self::HeadCut => "connection closed inside the response head",
            Self::HeadTooLarge => "response head over the limit",
            Self::Http2 => "not a valid HTTP/2 response",
            Self::Interim => "too many interim responses",
            Self::Trailers => "bad or oversized trailers",
            Self::TransferEncoding => "transfer-encoding other than chunked",
            Self::Upgrade => "status 101 without an upgrade",
        })
    }
}

impl std::error::Error for Malformed {}
