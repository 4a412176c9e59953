//! One line of an event stream: which field it sets, and what is remembered of a line that is not complete.

/// A field that means something; all other names are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Data,
    Event,
    Id,
    Retry,
}

/// A line of which the end has not been seen.
#[derive(Debug)]
pub(super) enum Line {
    /// Too short yet to be sure of its field. Empty is the start of a line.
    Head(Head),
    /// A field whose value goes to the observer's buffers as it comes.
    Value(Field),
    /// A comment, an unknown field, or a line of an opaque event: there is nothing to keep of it.
    Skipped,
}

/// The first bytes of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    bytes: [u8; HEAD_BYTES],
    length: usize,
}

impl Line {
    pub(super) const START: Self = Self::Head(Head {
        bytes: [0; HEAD_BYTES],
        length: 0,
    });

    pub(super) fn is_start(&self) -> bool {
        matches!(self, Self::Head(Head { length: 0, .. }))
    }

    /// The start of a line of which these few bytes have been read already.
    pub(super) fn starting(bytes: &[u8]) -> Self {
        let mut head = Head {
            bytes: [0; HEAD_BYTES],
            length: 0,
        };
        head.fill(bytes);
        Self::Head(head)
    }
}

impl Head {
    /// Takes from `part` what there is room for, and returns the rest.
    pub(super) fn fill<'p>(&mut self, part: &'p [u8]) -> &'p [u8] {
        let from = self.length;
        let (taken, rest) = part.split_at(part.len().min(HEAD_BYTES - from));
        self.bytes[from..from + taken.len()].copy_from_slice(taken);
        self.length += taken.len();
        rest
    }

    pub(super) fn is_full(self) -> bool {
        self.length == HEAD_BYTES
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The field that `line` sets and its value, without the one space that may follow the colon. A line without a colon
/// is a name with an empty value. Works as well on the first [`HEAD_BYTES`] of a longer line: a name that has not
/// ended by then is none of ours. [SSE-3]
pub(super) fn split(line: &[u8]) -> Option<(Field, &[u8])> {
    for (field, name) in NAMES {
        match line.strip_prefix(name) {
            Some([]) => return Some((field, &[])),
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => return Some((field, value)),
            _ => {}
        }
    }
    None
}

/// By how often they occur.
const NAMES: [(Field, &[u8]); 4] = [
    (Field::Data, b"data"),
    (Field::Event, b"event"),
    (Field::Id, b"id"),
    (Field::Retry, b"retry"),
];

/// The longest name, its colon and the space after it.
const HEAD_BYTES: usize = "event: ".len();
