//! Watches a server-sent event stream as its bytes pass, and never touches them.
//!
//! The framing is that of the WHATWG `EventSource` standard, section "Parsing an event stream", on bytes: a line ends
//! in LF, CRLF or CR in any mix, a blank line ends an event, and nothing here needs the text to be UTF-8. How the
//! stream is cut into chunks never shows in the events. [SSE-1]
//!
//! An event with one data line that lies inside one chunk is handed over as slices of that chunk. Only what a chunk
//! leaves unfinished is copied, and no byte is searched twice: a line that goes on in the next chunk is a state
//! ([`Line`]) and not a buffer to be scanned again.
//!
//! ```text
//!  line:   Head ──7 bytes, a known name──▶ Value(field) ──┐
//!           │ └───7 bytes, no known name─▶ Skipped ───────┤ line end
//!           └──────────── line end ───────────────────────┴──▶ Head, empty
//! ```
//!
//! Of an unfinished event at most `max_event_bytes` are kept. What is longer becomes *opaque*: its remainder is passed
//! over up to the blank line, and it is reported with the bytes that were kept. [SSE-6]

mod line;
#[cfg(test)]
mod tests;

use memchr::memchr2;

use line::{Field, Line};

/// An event that has just been completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The value of its last `event` line; empty where there was none, which the standard calls `message`.
    pub kind: &'a [u8],
    /// Its data lines, joined by LF; the first bytes only if the event is [opaque](Self::opaque).
    pub data: &'a [u8],
    /// The last event id of the stream so far, which outlives the event that set it.
    pub id: &'a [u8],
    /// Whether the event was longer than the observer may keep, so that `data` is cut short.
    pub opaque: bool,
    /// Offset in the fed chunk of the first byte after the event and its blank line; 0 from [`Observer::finish`].
    pub end: usize,
}

/// Follows one stream. Idle between two events it owns no memory worth naming; see [`Observer::buffered`].
#[derive(Debug)]
pub struct Observer {
    limit: usize,
    /// How many bytes of a leading byte order mark were seen; all of them also when there is none to come.
    bom: usize,
    /// The last chunk ended in a CR that has ended its line already; a LF that follows belongs to it.
    swallow_lf: bool,
    line: Line,
    kind: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    opaque: bool,
    /// Value so far of an unfinished `event`, `id` or `retry` line.
    short: Vec<u8>,
    id: Vec<u8>,
    retry: Option<u64>,
}

/// What the event in progress has in the chunk at hand, not copied yet.
#[derive(Debug, Default)]
struct Held<'c> {
    kind: Option<&'c [u8]>,
    data: Option<&'c [u8]>,
}

impl Observer {
    /// Starts at the first byte of a response body. Of an event that is not complete at most `max_event_bytes` are
    /// kept, names and id included.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            limit: max_event_bytes,
            bom: 0,
            swallow_lf: false,
            line: Line::START,
            kind: Vec::new(),
            data: Vec::new(),
            has_data: false,
            opaque: false,
            short: Vec::new(),
            id: Vec::new(),
            retry: None,
        }
    }

    /// Reads the next bytes of the stream and calls `on` for each event that they complete, in order.
    ///
    /// An event that ends in CR is reported at once, although a LF may follow in the next chunk: waiting would hold a
    /// token back until the next one. An event without a data line is none. [SSE-2] [SSE-4]
    pub fn feed(&mut self, chunk: &[u8], mut on: impl FnMut(Event<'_>)) {
        let mut at = self.enter(chunk);
        let mut held = Held::default();
        while let Some(&first) = chunk.get(at) {
            let rest = &chunk[at..];
            // Every second line of a token stream is the blank one, and that needs no search.
            let found = if is_line_end(first) {
                Some(0)
            } else {
                memchr2(b'\n', b'\r', rest)
            };
            let Some(length) = found else {
                self.spill(held);
                self.go_on(rest);
                return;
            };
            at += length + self.line_end(&rest[length..]);
            if !self.line.is_start() {
                self.go_on(&rest[..length]);
                self.end_line();
            } else if length > 0 {
                self.whole_line(&rest[..length], &mut held);
            } else {
                self.dispatch(&mut held, at, &mut on);
            }
        }
        self.spill(held);
    }

    /// Says that the stream has ended, and reports an unterminated event with data as if it had been complete: some
    /// servers leave out the last blank line. The observer is then as new, but for id and retry. [SSE-5]
    pub fn finish(&mut self, on: impl FnOnce(Event<'_>)) {
        self.end_line();
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
        self.bom = 0;
        self.swallow_lf = false;
    }

    /// Whether bytes put in here would be read as an event of their own: no line and no event is in progress.
    pub fn at_boundary(&self) -> bool {
        let mid_mark = self.bom > 0 && self.bom < BOM.len();
        self.line.is_start() && !mid_mark && !self.has_data && self.kind.is_empty()
    }

    /// The reconnection time the stream last asked for, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Bytes kept of the stream right now: never more than `max_event_bytes`. [SSE-6]
    pub fn buffered(&self) -> usize {
        self.data.len() + self.kind.len() + self.id.len() + self.short.len()
    }

    /// Deals with what can stand only at the start of a chunk: the LF of a CR before it, and a byte order mark.
    fn enter(&mut self, chunk: &[u8]) -> usize {
        let mut at = 0;
        if self.swallow_lf
            && let Some(&first) = chunk.first()
        {
            self.swallow_lf = false;
            at = usize::from(first == b'\n');
        }
        while self.bom < BOM.len()
            && let Some(&byte) = chunk.get(at)
        {
            if byte == BOM[self.bom] {
                self.bom += 1;
                at += 1;
            } else {
                // The mark broke off, so what there was of it is the beginning of the first line.
                self.line.push(&BOM[..self.bom]);
                self.bom = BOM.len();
            }
        }
        at
    }

    /// The length of the line end that `bytes` begins with.
    fn line_end(&mut self, bytes: &[u8]) -> usize {
        match bytes {
            [b'\r', b'\n', ..] => 2,
            [b'\r'] => {
                self.swallow_lf = true;
                1
            }
            _ => 1,
        }
    }

    /// Takes in a line that lies in one piece, without copying what may still be handed over as it lies.
    fn whole_line<'c>(&mut self, line: &'c [u8], held: &mut Held<'c>) {
        if self.opaque {
            return;
        }
        let room = self.room(held);
        match line::split(line) {
            Some((Field::Data, value)) if !self.has_data => {
                self.has_data = true;
                self.opaque = value.len() > room;
                held.data = Some(&value[..value.len().min(room)]);
            }
            Some((Field::Data, value)) => {
                self.spill(std::mem::take(held));
                self.keep(b"\n");
                self.keep(value);
            }
            Some((_, value)) if value.len() > room.min(SHORT_FIELD_BYTES) => {}
            Some((Field::Event, value)) => held.kind = Some(value),
            Some((Field::Id, value)) => self.set_id(value),
            Some((Field::Retry, value)) => self.set_retry(value),
            None => {}
        }
    }

    /// Takes in a part of a line that began in an earlier chunk, or will end in a later one.
    fn go_on(&mut self, mut part: &[u8]) {
        if self.opaque {
            self.line = Line::Skipped;
        }
        if let Line::Head(head) = &mut self.line {
            part = head.fill(part);
            if !head.is_full() {
                return;
            }
            let head = *head;
            let Some((field, value)) = line::split(head.bytes()) else {
                self.line = Line::Skipped;
                return;
            };
            self.line = Line::Value(field);
            if field == Field::Data && std::mem::replace(&mut self.has_data, true) {
                self.keep(b"\n");
            }
            self.append(field, value);
        }
        if let Line::Value(field) = self.line {
            self.append(field, part);
        }
    }

    fn append(&mut self, field: Field, part: &[u8]) {
        if field == Field::Data {
            self.keep(part);
        } else if self.short.len() + part.len() > self.room(&Held::default()).min(SHORT_FIELD_BYTES) {
            self.short.clear();
            self.line = Line::Skipped;
        } else {
            self.short.extend_from_slice(part);
        }
    }

    /// Ends a line that did not lie in one piece.
    fn end_line(&mut self) {
        match std::mem::replace(&mut self.line, Line::START) {
            Line::Head(head) => {
                let mut held = Held::default();
                self.whole_line(head.bytes(), &mut held);
                self.spill(held);
            }
            Line::Value(Field::Event) => std::mem::swap(&mut self.kind, &mut self.short),
            Line::Value(Field::Id) => {
                let value = std::mem::take(&mut self.short);
                self.set_id(&value);
            }
            Line::Value(Field::Retry) => {
                let value = std::mem::take(&mut self.short);
                self.set_retry(&value);
            }
            Line::Value(Field::Data) | Line::Skipped => {}
        }
        self.short.clear();
    }

    /// A blank line: reports the event in progress if it has a data line, and begins the next.
    fn dispatch(&mut self, held: &mut Held<'_>, end: usize, on: &mut impl FnMut(Event<'_>)) {
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

    /// An id with a NUL is ignored, as the standard says.
    fn set_id(&mut self, value: &[u8]) {
        if !value.contains(&0) {
            self.id.clear();
            self.id.extend_from_slice(value);
        }
    }

    /// Anything but ASCII digits is ignored, as is a number that no clock could wait for.
    fn set_retry(&mut self, value: &[u8]) {
        if value.iter().all(u8::is_ascii_digit)
            && let Some(milliseconds) = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok())
        {
            self.retry = Some(milliseconds);
        }
    }

    /// How many bytes may still be kept. It depends on the event alone and not on which of its bytes had to be copied:
    /// else the same stream could be opaque in one chunking and not in another.
    fn room(&self, held: &Held<'_>) -> usize {
        let kind = held.kind.map_or(self.kind.len(), <[u8]>::len);
        let data = held.data.map_or(self.data.len(), <[u8]>::len);
        self.limit.saturating_sub(kind + data + self.id.len())
    }

    /// Adds to the data of the event, up to the cap. It grows by doubling but never beyond the cap.
    fn keep(&mut self, bytes: &[u8]) {
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
    fn spill(&mut self, held: Held<'_>) {
        if let Some(kind) = held.kind {
            self.kind.clear();
            self.kind.extend_from_slice(kind);
        }
        if let Some(data) = held.data {
            self.keep(data);
        }
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

const BOM: [u8; 3] = *b"\xEF\xBB\xBF";

/// The longest `event`, `id` or `retry` value that is read; a longer line is passed over like an unknown field. The
/// longest event name in use has some fifty bytes, and an id is kept for as long as the stream lives.
const SHORT_FIELD_BYTES: usize = 1024;

/// The largest buffer that is kept from one event to the next: enough for a token that falls on a chunk's edge, and
/// little enough for a hundred thousand streams.
const IDLE_BYTES: usize = 512;
