//! A body in memory, as pieces in their order.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{BufMut as _, Bytes, BytesMut};

/// Bytes of a body. The first chunk is kept as it came; what follows is gathered in segments, so that a body of many
/// megabytes is never moved as a whole and no segment is larger than a copy that nobody notices.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    first: Bytes,
    more: Vec<Bytes>,
    /// The segment that is being filled.
    open: BytesMut,
    length: usize,
}

/// The first segment, whatever length a body claims. Bytes.
const FIRST_SEGMENT: usize = 64 * 1024;

/// The largest.
const MAX_SEGMENT: usize = 1024 * 1024;

impl Pieces {
    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Puts `chunk` behind the others.
    pub(super) fn push(&mut self, mut chunk: Bytes) {
        self.length += chunk.len();
        if self.first.is_empty() {
            self.first = chunk;
            return;
        }
        while !chunk.is_empty() {
            let room = self.open.capacity() - self.open.len();
            if room == 0 {
                self.seal();
                let size = (FIRST_SEGMENT << self.more.len().min(4)).min(MAX_SEGMENT);
                self.open = BytesMut::with_capacity(size);
                continue;
            }
            self.open.put(chunk.split_to(room.min(chunk.len())));
        }
    }

    fn seal(&mut self) {
        let full = std::mem::take(&mut self.open);
        if !full.is_empty() {
            self.more.push(full.freeze());
        }
    }

    /// No more will come.
    pub(super) fn sealed(mut self) -> Self {
        self.seal();
        self
    }

    /// The only piece, if there is but one.
    pub(super) fn single(&self) -> Option<&Bytes> {
        self.more.is_empty().then_some(&self.first)
    }

    /// These bytes of a sealed body, which are copied only where they stand in more than one piece.
    pub(super) fn span(&self, span: Range<usize>) -> Cow<'_, [u8]> {
        if let Some(bytes) = self.first.get(span.clone()) {
            return bytes.into();
        }
        let mut bytes = Vec::with_capacity(span.len());
        let mut at = 0;
        for piece in std::iter::once(&self.first).chain(&self.more) {
            let from = span.start.saturating_sub(at).min(piece.len());
            let to = span.end.saturating_sub(at).min(piece.len());
            bytes.extend_from_slice(&piece[from..to]);
            at += piece.len();
        }
        bytes.into()
    }

    /// All pieces of a sealed body; they are views, not copies.
    pub(super) fn all(&self) -> Vec<Bytes> {
        std::iter::once(&self.first).chain(&self.more).cloned().collect()
    }

    /// The same with `value` in place of the bytes at `span`; panics where there are no such bytes.
    pub(super) fn spliced(&self, span: Range<usize>, value: Bytes) -> Vec<Bytes> {
        let mut out = Vec::with_capacity(self.more.len() + 3);
        let mut at = 0;
        let mut value = Some(value);
        for piece in std::iter::once(&self.first).chain(&self.more) {
            let end = at + piece.len();
            let local = |place: usize| place.clamp(at, end) - at;
            let (before, after) = (local(span.start), local(span.end));
            if before > 0 {
                out.push(piece.slice(..before));
            }
            if span.start < end
                && let Some(value) = value.take()
            {
                out.push(value);
            }
            if after < piece.len() {
                out.push(piece.slice(after..));
            }
            at = end;
        }
        assert!(value.is_none() && span.end <= at, "a span within the body");
        out
    }
}

#[cfg(test)]
mod tests;
