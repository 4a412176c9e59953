//! Puts another name into the top-level `model` of a response, as it passes: of a JSON document, or of every complete
//! event of a stream.
//!
//! This is the one place where response bytes change, and only that value does. What is held back is bounded: of a
//! document the value while it is incomplete, of a stream the event while it is. What does not fit, or is not JSON,
//! passes as it is.

use bytes::{Bytes, BytesMut};

use super::envelope::{MODEL_BYTES, Scanner};

#[cfg(test)]
mod tests;

/// A document or stream in passing.
#[derive(Debug)]
pub struct Renamer {
    /// The new value, as JSON.
    value: Bytes,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Document(Box<Document>),
    Events(Events),
    /// Nothing is looked for any more.
    Through,
}

/// A document up to its `model`.
#[derive(Debug)]
struct Document {
    scanner: Scanner,
    /// Bytes that were given to the scanner before `held`.
    passed: usize,
    /// From the value's first byte on.
    held: BytesMut,
}

/// A stream's unfinished event.
#[derive(Debug)]
struct Events {
    held: BytesMut,
    /// How far `held` has been looked at.
    looked: usize,
    line: Line,
    /// Whether the event has nothing but comments so far. They belong to no event's data, so that none of them waits for
    /// the end of the event: those that lb says itself have no blank line behind them.
    untouched: bool,
    /// Whether the last byte was a CR, whose LF may follow.
    after_cr: bool,
    /// A longer event passes as it is.
    max_event_bytes: usize,
    /// Whether the event is one of those.
    oversized: bool,
}

/// The line that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// It has no byte yet.
    Empty,
    Comment,
    Field,
}

/// What can be passed on, up to this place in what is held.
enum Piece {
    Comment(usize),
    Event(usize),
}

impl Renamer {
    /// For a JSON document.
    pub fn document(model: &str) -> Self {
        let document = Document {
            scanner: Scanner::new(),
            passed: 0,
            held: BytesMut::new(),
        };
        Self::new(model, Kind::Document(Box::new(document)))
    }

    /// For an event stream, of which events up to `max_event_bytes` are changed.
    pub fn events(model: &str, max_event_bytes: usize) -> Self {
        let events = Events {
            held: BytesMut::new(),
            looked: 0,
            line: Line::Empty,
            untouched: true,
            after_cr: false,
            max_event_bytes,
            oversized: false,
        };
        Self::new(model, Kind::Events(events))
    }

    fn new(model: &str, kind: Kind) -> Self {
        let value = serde_json::to_vec(model).expect("a string is always JSON");
        Self {
            value: value.into(),
            kind,
        }
    }

    /// What can be passed on once `chunk` has come; empty where all of it is held back.
    pub fn feed(&mut self, chunk: Bytes) -> Bytes {
        match &mut self.kind {
            Kind::Through => chunk,
            Kind::Events(events) => events.feed(&chunk, &self.value),
            Kind::Document(document) => {
                let (out, done) = document.feed(chunk, &self.value);
                if done {
                    self.kind = Kind::Through;
                }
                out
            }
        }
    }

    /// What is still held when no more comes.
    pub fn finish(&mut self) -> Bytes {
        match std::mem::replace(&mut self.kind, Kind::Through) {
            Kind::Through => Bytes::new(),
            Kind::Document(document) => document.held.freeze(),
            Kind::Events(events) if events.oversized => events.held.freeze(),
            // An event that lacks its blank line is one all the same.
            Kind::Events(events) => renamed(&events.held, &self.value),
        }
    }
}

/// Of a value: its quotes, and each byte written as an escape.
const MAX_VALUE: usize = 6 * MODEL_BYTES + 2;

impl Document {
    /// Also says whether nothing more is to be changed.
    fn feed(&mut self, chunk: Bytes, value: &Bytes) -> (Bytes, bool) {
        let fed = self.scanner.feed(&chunk);
        let span = self.scanner.model_span();
        let (start, end) = (span.start, span.end);
        let offset = self.passed;
        self.passed += chunk.len();
        if end > start {
            // All before the value that this chunk holds, the value's new self, and what is behind it.
            let before = chunk.slice(..start.saturating_sub(offset).min(chunk.len()));
            let after = chunk.slice(end.saturating_sub(offset).min(chunk.len())..);
            return (join(&[&before, value, &after]), true);
        }
        if fed.is_err() {
            return (join(&[&self.held.split(), &chunk]), true);
        }
        let begun = self.scanner.is_in_model();
        if !begun {
            return (chunk, false);
        }
        let keep = start.saturating_sub(offset).min(chunk.len());
        self.held.extend_from_slice(&chunk[keep..]);
        if self.held.len() > MAX_VALUE {
            return (join(&[&chunk[..keep], &self.held.split()]), true);
        }
        (chunk.slice(..keep), false)
    }
}

impl Events {
    fn feed(&mut self, chunk: &[u8], value: &Bytes) -> Bytes {
        self.held.extend_from_slice(chunk);
        let mut out = BytesMut::new();
        while let Some(piece) = self.piece() {
            self.looked = 0;
            match piece {
                Piece::Event(end) if !std::mem::take(&mut self.oversized) => {
                    out.extend_from_slice(&renamed(&self.held.split_to(end), value));
                }
                Piece::Comment(end) | Piece::Event(end) => {
                    self.oversized = false;
                    out.extend_from_slice(&self.held.split_to(end));
                }
            }
        }
        if self.oversized || self.held.len() > self.max_event_bytes {
            self.oversized = true;
            out.extend_from_slice(&self.held.split());
            self.looked = 0;
        }
        out.freeze()
    }

    /// Where the event in `held` ends, behind its blank line, or a comment before it does. The LF of a CR that ended
    /// one of them goes with the next.
    fn piece(&mut self) -> Option<Piece> {
        for (at, &byte) in self.held.iter().enumerate().skip(self.looked) {
            match byte {
                b'\n' if std::mem::take(&mut self.after_cr) => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    let line = std::mem::replace(&mut self.line, Line::Empty);
                    if line == Line::Field || !(line == Line::Empty || self.untouched) {
                        continue;
                    }
                    // With its LF where it is there: not every client takes a CR for the end.
                    let pair = self.after_cr && self.held.get(at + 1) == Some(&b'\n');
                    self.after_cr &= !pair;
                    let end = at + 1 + usize::from(pair);
                    if line == Line::Comment {
                        return Some(Piece::Comment(end));
                    }
                    self.untouched = true;
                    return Some(Piece::Event(end));
                }
                _ => {
                    self.after_cr = false;
                    if self.line == Line::Empty {
                        self.line = if byte == b':' { Line::Comment } else { Line::Field };
                        self.untouched &= self.line == Line::Comment;
                    }
                }
            }
        }
        self.looked = self.held.len();
        None
    }
}

/// An event with the value in place of its data's top-level `model`, if it has one.
fn renamed(event: &[u8], value: &Bytes) -> Bytes {
    let mut scanner = Scanner::new();
    // Where each data line begins, in the data and in the event.
    let mut lines: Vec<(usize, usize)> = Vec::new();
    let mut length = 0;
    for (at, line) in lines_of(event) {
        let Some(data) = line.strip_prefix(b"data:") else {
            continue;
        };
        let data = data.strip_prefix(b" ").unwrap_or(data);
        let at = at + line.len() - data.len();
        if !lines.is_empty() {
            if scanner.feed(b"\n").is_err() {
                break;
            }
            length += 1;
        }
        lines.push((length, at));
        if scanner.feed(data).is_err() {
            break;
        }
        length += data.len();
    }
    let span = scanner.model_span();
    let line = lines.iter().rfind(|(start, _)| *start <= span.start);
    match line {
        Some((start, at)) if span.end > span.start => {
            let from = at + (span.start - start);
            let to = from + (span.end - span.start);
            join(&[&event[..from], value, &event[to..]])
        }
        _ => Bytes::copy_from_slice(event),
    }
}

/// The lines of an event with their places, without their ends.
fn lines_of(event: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    event
        .split(|byte| matches!(byte, b'\n' | b'\r'))
        .map(move |line| {
            let start = at;
            at += line.len() + 1;
            (start, line)
        })
}

fn join(parts: &[&[u8]]) -> Bytes {
    Bytes::from(parts.concat())
}
