//! The chunked coding (RFC 9112 7.1), byte by byte where it is framing and in whole slices where it is data.

use http::HeaderMap;

use super::trailers::{Progress, Section};
use super::{Decoded, Malformed};

#[cfg(test)]
mod tests;

/// Hexadecimal digits of a chunk size: what a `u64` holds, leading zeros included.
const MAX_SIZE_DIGITS: u8 = 16;

/// Bytes of one chunk's extension. Nobody we know sends any; what is refused here can only be meant to cost time.
const MAX_EXTENSION_BYTES: u16 = 4096;

/// Decoder of one chunked body.
///
/// ```text
///  SizeStart → Size ─┬─ CR ──────────────────────────┐
///                    └─ blanks → ; → Extension → CR ─┴→ SizeEnd ─┬→ Data → DataCr → DataEnd → SizeStart
///                                                                └→ (size 0) Trailers → End → Done
/// ```
#[derive(Debug)]
pub struct Chunked {
    state: State,
    /// What is left of the chunk; while its size is read, the size so far.
    left: u64,
    /// Digits of the size so far, and then bytes of the extension on top of them.
    count: u16,
    /// Only where there are any.
    trailers: Option<Box<Section>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Broken(Malformed),
    Data,
    DataCr,
    DataEnd,
    Done,
    /// The CR of the last line, where there are no trailers.
    End,
    Extension,
    Size,
    /// Blanks behind the size, which only an extension may follow.
    SizeBlank,
    SizeEnd,
    SizeStart,
    Trailers,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Self {
            state: State::SizeStart,
            left: 0,
            count: 0,
            trailers: None,
        }
    }

    /// Decodes in place: the payload of all chunks is moved together, at most a read's worth of bytes.
    ///
    /// A fault behind payload is kept for the next call, so that what was good is delivered first.
    pub(super) fn decode(&mut self, raw: &mut [u8]) -> Result<Decoded, Malformed> {
        let (mut at, mut payload) = (0, 0..0);
        while at < raw.len() && self.state != State::Done {
            if self.state == State::Data {
                let length =
                    usize::try_from(self.left).map_or(raw.len() - at, |left| left.min(raw.len() - at));
                if payload.is_empty() {
                    payload = at..at + length;
                } else {
                    raw.copy_within(at..at + length, payload.end);
                    payload.end += length;
                }
                at += length;
                self.left -= length as u64;
                if self.left == 0 {
                    self.state = State::DataCr;
                }
                continue;
            }
            match self.step(raw[at]) {
                Ok(next) => self.state = next,
                Err(fault) => {
                    self.state = State::Broken(fault);
                    if payload.is_empty() {
                        return Err(fault);
                    }
                    break;
                }
            }
            at += 1;
        }
        Ok(Decoded { payload, used: at })
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    pub(super) fn fault(&self) -> Option<Malformed> {
        match self.state {
            State::Broken(fault) => Some(fault),
            _ => None,
        }
    }

    pub(super) fn has_trailers(&self) -> bool {
        self.is_done() && self.trailers.as_ref().is_some_and(|section| section.has_fields())
    }

    pub(super) fn take_trailers(&mut self) -> Option<HeaderMap> {
        if self.is_done() {
            self.trailers.take()?.into_fields()
        } else {
            None
        }
    }

    /// What one byte of framing does.
    fn step(&mut self, byte: u8) -> Result<State, Malformed> {
        match (self.state, byte) {
            (State::SizeStart | State::Size, _) if byte.is_ascii_hexdigit() => self.digit(byte),
            (State::Size | State::Extension, b'\r') => Ok(State::SizeEnd),
            (State::Size | State::SizeBlank, b' ' | b'\t') => self.extend(State::SizeBlank),
            (State::Size | State::SizeBlank, b';') | (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => {
                self.extend(State::Extension)
            }
            (State::SizeEnd, b'\n') if self.left == 0 => Ok(State::Trailers),
            (State::SizeEnd, b'\n') => Ok(State::Data),
            (State::DataCr, b'\r') => Ok(State::DataEnd),
            (State::DataEnd, b'\n') => {
                (self.left, self.count) = (0, 0);
                Ok(State::SizeStart)
            }
            (State::Trailers, b'\r') if self.trailers.is_none() => Ok(State::End),
            (State::Trailers, _) => match self.trailers.get_or_insert_default().push(byte)? {
                Progress::Ended => Ok(State::Done),
                Progress::More => Ok(State::Trailers),
            },
            (State::End, b'\n') => Ok(State::Done),
            (State::End, _) => Err(Malformed::Trailers),
            (State::Broken(fault), _) => Err(fault),
            (State::DataCr | State::DataEnd, _) => Err(Malformed::ChunkEnd),
            (State::Extension, _) => Err(Malformed::ChunkExtension),
            // `Data` and `Done` never come here; any fault is the safe answer if they did.
            _ => Err(Malformed::ChunkSize),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<State, Malformed> {
        let digit = char::from(byte).to_digit(16).ok_or(Malformed::ChunkSize)?;
        if self.count == u16::from(MAX_SIZE_DIGITS) {
            return Err(Malformed::ChunkSize);
        }
        self.count += 1;
        self.left = self.left << 4 | u64::from(digit);
        Ok(State::Size)
    }

    fn extend(&mut self, next: State) -> Result<State, Malformed> {
        self.count += 1;
        if self.count > MAX_EXTENSION_BYTES {
            Err(Malformed::ChunkExtension)
        } else {
            Ok(next)
        }
    }
}
