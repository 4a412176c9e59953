//! Watches a server-sent event stream as its bytes pass, and never touches them.
//!
//! The framing is that of the WHATWG `EventSource` standard, section "Parsing an event stream", on bytes: a line ends
//! in LF, CRLF or CR in any mix, a blank line ends an event, and nothing here needs the text to be UTF-8. How the
//! stream is cut into chunks never shows in the events. [SSE-1]
//!
//! An event with one data line that lies inside one chunk is handed over as slices of that chunk. Only what a chunk
//! leaves unfinished is copied, and no byte is searched twice: a line that goes on in the next chunk is a state
//! (`Line`) and not a buffer to be scanned again.
//!
//! ```text
//!  line:   Head ──7 bytes, a known name──▶ Value(field) ──┐
//!           │ └───7 bytes, no known name─▶ Skipped ───────┤ line end
//!           └──────────── line end ───────────────────────┴──▶ Head, empty
//! ```
//!
//! Of an unfinished event at most `max_event_bytes` are kept. What is longer becomes *opaque*: its remainder is passed
//! over up to the blank line, and it is reported with the bytes that were kept. [SSE-6]

mod draft;
mod line;
#[cfg(test)]
mod tests;

use memchr::memchr2;

use draft::{Draft, Held};
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

/// Follows one stream. Between two events it owns no memory worth naming; see [`Observer::buffered`].
#[derive(Debug)]
pub struct Observer {
    /// How many bytes of a leading byte order mark were seen; all of them also when there is none to come.
    bom: usize,
    /// The last chunk ended in a CR that has ended its line already; a LF that follows belongs to it.
    swallow_lf: bool,
    line: Line,
    /// Value so far of an unfinished `event`, `id` or `retry` line.
    short: Vec<u8>,
    draft: Draft,
    retry: Option<u64>,
}

impl Observer {
    /// Starts at the first byte of a response body. Of an event that is not complete at most `max_event_bytes` are
    /// kept, names and id included.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            bom: 0,
            swallow_lf: false,
            line: Line::START,
            short: Vec::new(),
            draft: Draft::new(max_event_bytes),
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
                self.draft.spill(held);
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
                self.draft.dispatch(&mut held, at, &mut on);
            }
        }
        self.draft.spill(held);
    }

    /// Says that the stream has ended, and reports an unterminated event with data as if it had been complete: some
    /// servers leave out the last blank line. The observer is then as new, but for id and retry. [SSE-5]
    pub fn finish(&mut self, on: impl FnOnce(Event<'_>)) {
        self.end_line();
        self.draft.finish(on);
        self.bom = 0;
        self.swallow_lf = false;
    }

    /// Whether bytes put in here would be read as an event of their own: no line and no event is in progress. [SSE-7]
    pub fn at_boundary(&self) -> bool {
        let mid_mark = self.bom > 0 && self.bom < BOM.len();
        self.line.is_start() && !mid_mark && self.draft.is_blank()
    }

    /// The reconnection time the stream last asked for, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Bytes kept of the stream right now: never more than `max_event_bytes`. [SSE-6]
    pub fn buffered(&self) -> usize {
        self.draft.kept() + self.short.len()
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
                self.line = Line::starting(&BOM[..self.bom]);
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
        if self.draft.is_opaque() {
            return;
        }
        match line::split(line) {
            Some((Field::Data, value)) => self.draft.data_line(value, held),
            Some((field, value)) if value.len() <= self.draft.room_for_short(held) => match field {
                Field::Event => held.kind = Some(value),
                _ => self.set(field, value),
            },
            _ => {}
        }
    }

    /// Takes in a part of a line that began in an earlier chunk, or will end in a later one.
    fn go_on(&mut self, mut part: &[u8]) {
        if self.draft.is_opaque() {
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
            if field == Field::Data {
                self.draft.begin_data_line();
            }
            self.append(field, value);
        }
        if let Line::Value(field) = self.line {
            self.append(field, part);
        }
    }

    /// Adds to the value of an unfinished line.
    fn append(&mut self, field: Field, part: &[u8]) {
        if field == Field::Data {
            self.draft.keep(part);
        } else if self.short.len() + part.len() <= self.draft.room_for_short(&Held::default()) {
            self.short.extend_from_slice(part);
        } else {
            self.short.clear();
            self.line = Line::Skipped;
        }
    }

    /// Ends a line that did not lie in one piece.
    fn end_line(&mut self) {
        match std::mem::replace(&mut self.line, Line::START) {
            Line::Head(head) => {
                let mut held = Held::default();
                self.whole_line(head.bytes(), &mut held);
                self.draft.spill(held);
            }
            Line::Value(Field::Data) | Line::Skipped => {}
            Line::Value(field) => {
                let value = std::mem::take(&mut self.short);
                self.set(field, &value);
            }
        }
    }

    /// Sets a field whose value is short enough.
    fn set(&mut self, field: Field, value: &[u8]) {
        match field {
            Field::Id => self.draft.set_id(value),
            Field::Retry => self.retry = milliseconds(value).or(self.retry),
            Field::Data | Field::Event => self.draft.spill(Held {
                kind: Some(value),
                data: None,
            }),
        }
    }
}

/// Reads a `retry` value. Anything but ASCII digits is ignored, and so is a number that no clock could wait for.
fn milliseconds(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

const BOM: [u8; 3] = *b"\xEF\xBB\xBF";
