//! Finds the usage at the end of a JSON answer as it passes.

use bytes::Bytes;

use crate::wire::usage::Usage;

/// The last bytes of a body.
#[derive(Debug, Default)]
pub(super) struct Meter {
    end: Vec<u8>,
}

impl Meter {
    /// Looks at the next piece of the body.
    pub(super) fn feed(&mut self, piece: &Bytes) {
        let new = &piece[piece.len().saturating_sub(KEPT)..];
        let over = (self.end.len() + new.len()).saturating_sub(KEPT);
        self.end.drain(..over);
        self.end.extend_from_slice(new);
    }

    /// What the answer said, once it is whole.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        usage.tail(&self.end);
        usage
    }
}

/// How far before the end a usage may stand: behind it come at most the client's own sixteen pieces of metadata, of
/// 576 bytes each. Bytes.
const KEPT: usize = 16 * 1024;

#[cfg(test)]
mod tests;
