//! The event in progress: what is kept of it, and how much may be.

use super::Event;

/// An event of which the blank line has not been seen, as far as earlier chunks held it.
#[derive(Debug)]
pub(super) struct Draft {
    limit: usize,
    kind: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    opaque: bool,
    /// Belongs to the stream rather than to the event, and stays.
    id: Vec<u8>,
}

/// What the event has in the chunk at hand, not copied yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held<'c> {
    pub(super) kind: Option<&'c [u8]>,
    pub(super) data: Option<&'c [u8]>,
}

impl Draft {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            kind: Vec::new(),
            data: Vec::new(),
            has_data: false,
            opaque: false,
            id: Vec::new(),
        }
    }

    pub(super) fn is_opaque(&self) -> bool {
        self.opaque
    }

    /// Whether no line so far would show in the next event.
    pub(super) fn is_blank(&self) -> bool {
        !self.has_data && self.kind.is_empty()
    }

    pub(super) fn kept(&self) -> usize {
        self.kind.len() + self.data.len() + self.id.len()
    }

    /// Bytes allocated, used or not.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.kind.capacity() + self.data.capacity() + self.id.capacity()
    }

    /// How long an `event`, `id` or `retry` value may be; a longer line is passed over like an unknown field.
    pub(super) fn room_for_short(&self, held: &Held<'_>) -> usize {
        self.room(held).min(SHORT_BYTES)
    }

    /// Takes in a whole data line. The first one stays where it lies; a second one makes a copy of both.
    pub(super) fn data_line<'c>(&mut self, value: &'c [u8], held: &mut Held<'c>) {
        if self.has_data {
            self.spill(std::mem::take(held));
            self.begin_data_line();
            self.keep(value);
        } else {
            let room = self.room(held);
            self.has_data = true;
            self.opaque = value.len() > room;
            held.data = Some(&value[..value.len().min(room)]);
        }
    }

    /// A data line whose value will follow through [`keep`](Self::keep).
    pub(super) fn begin_data_line(&mut self) {
        if std::mem::replace(&mut self.has_data, true) {
            self.keep(b"\n");
        }
    }

    /// Adds to the data, up to the cap; what is beyond it makes the event opaque. The buffer grows by doubling, but
    /// never beyond the cap.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(self.room(&Held::default()));
        self.opaque |= kept < bytes.len();
        let needed = self.data.len() + kept;
        if needed > self.data.capacity() {
            let wanted = needed.max(self.data.capacity().saturating_mul(2)).min(self.limit);
            self.data.reserve_exact(wanted - self.data.len());
        }
        self.data.extend_from_slice(&bytes[..kept]);
    }

    /// Copies what the event has in a chunk that is about to go.
    pub(super) fn spill(&mut self, held: Held<'_>) {
        if let Some(kind) = held.kind {
            self.kind.clear();
            self.kind.extend_from_slice(kind);
        }
        if let Some(data) = held.data {
            self.keep(data);
        }
    }

    /// An id with a NUL is ignored, as the standard says.
    pub(super) fn set_id(&mut self, value: &[u8]) {
        if !value.contains(&0) {
            self.id.clear();
            self.id.extend_from_slice(value);
        }
    }

    /// A blank line: reports the event if it has a data line, and begins the next.
    pub(super) fn dispatch(&mut self, held: &mut Held<'_>, end: usize, on: &mut impl FnMut(Event<'_>)) {
        let Held { kind, data } = std::mem::take(held);
        if self.has_data {
            on(Event {
                kind: kind.unwrap_or(&self.kind),
                data: data.unwrap_or(&self.data),
                id: &self.id,
                opaque: self.opaque,
                end,
            });
        }
        self.clear();
    }

    /// The end of the stream: reports the event if it has any data.
    pub(super) fn finish(&mut self, on: impl FnOnce(Event<'_>)) {
        if !self.data.is_empty() {
            on(Event {
                kind: &self.kind,
                data: &self.data,
                id: &self.id,
                opaque: self.opaque,
                end: 0,
            });
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.kind.clear();
        self.has_data = false;
        self.opaque = false;
        if self.data.capacity() > IDLE_BYTES {
            self.data = Vec::new();
        } else {
            self.data.clear();
        }
    }

    /// How many bytes may still be kept. It depends on the event alone and not on which of its bytes had to be copied:
    /// else the same stream could be opaque in one chunking and not in another.
    fn room(&self, held: &Held<'_>) -> usize {
        let kind = held.kind.map_or(self.kind.len(), <[u8]>::len);
        let data = held.data.map_or(self.data.len(), <[u8]>::len);
        self.limit.saturating_sub(kind + data + self.id.len())
    }
}

/// The longest `event`, `id` or `retry` value that is read. The longest event name in use has some fifty bytes, and an
/// id is kept for as long as the stream lives.
const SHORT_BYTES: usize = 1024;

/// The largest buffer that is kept from one event to the next: enough for a token that falls on a chunk's edge, and
/// little enough for a hundred thousand streams.
const IDLE_BYTES: usize = 512;
