//! A body as raw bytes turn into payload.

use std::ops::Range;

use http::HeaderMap;

use super::Malformed;
use super::chunked::Chunked;

/// What is left of one body.
#[derive(Debug)]
pub enum Decoder {
    /// In chunks.
    Chunked(Chunked),
    /// So many bytes more.
    Length(u64),
    /// All until the connection ends, cleanly.
    UntilClose,
}

/// What one read brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Where the payload lies in the read, in one piece; empty if there is none.
    pub payload: Range<usize>,
    /// How many raw bytes were this body's. Fewer than came: the body is over and bytes follow it that nobody asked
    /// for, or it is broken.
    pub used: usize,
}

impl Decoder {
    /// At the start of a chunked body.
    pub fn chunked() -> Self {
        Self::Chunked(Chunked::new())
    }

    /// Takes the bytes of one read. Payload is never copied to another buffer: chunks are moved together in `raw`.
    ///
    /// With payload in front of a fault, the payload comes first and the fault at the next call or by
    /// [`Self::fault`].
    pub fn decode(&mut self, raw: &mut [u8]) -> Result<Decoded, Malformed> {
        match self {
            Self::Chunked(chunked) => chunked.decode(raw),
            Self::Length(left) => {
                let length = usize::try_from(*left).map_or(raw.len(), |left| left.min(raw.len()));
                *left -= length as u64;
                Ok(Decoded {
                    payload: 0..length,
                    used: length,
                })
            }
            Self::UntilClose => Ok(Decoded {
                payload: 0..raw.len(),
                used: raw.len(),
            }),
        }
    }

    /// True once the body's last byte has been taken. Never for a body that ends with its connection.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Chunked(chunked) => chunked.is_done(),
            Self::Length(left) => *left == 0,
            Self::UntilClose => false,
        }
    }

    /// Whether the connection's end is this body's end; else what came is not all.
    pub fn may_end(&self) -> bool {
        self.is_done() || matches!(self, Self::UntilClose)
    }

    /// What broke the body, once something has.
    pub fn fault(&self) -> Option<Malformed> {
        match self {
            Self::Chunked(chunked) => chunked.fault(),
            _ => None,
        }
    }

    /// The trailers that may be passed on, once, after the body is done. Forbidden names are dropped.
    pub fn take_trailers(&mut self) -> Option<HeaderMap> {
        match self {
            Self::Chunked(chunked) => chunked.take_trailers(),
            _ => None,
        }
    }

    /// True while [`Self::take_trailers`] has something to give.
    pub fn has_trailers(&self) -> bool {
        matches!(self, Self::Chunked(chunked) if chunked.has_trailers())
    }

    /// Payload bytes still to come, where that is known.
    pub fn remaining(&self) -> Option<u64> {
        match self {
            Self::Chunked(chunked) => chunked.is_done().then_some(0),
            Self::Length(left) => Some(*left),
            Self::UntilClose => None,
        }
    }
}
