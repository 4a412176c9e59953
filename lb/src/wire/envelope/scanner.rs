//! The automaton that reads a body: JSON's grammar, with an eye on the members of the outermost object.

use super::members::{ITEM, Item, Members, Notes};
use super::number::Number;
use super::string::{self, Place, Step, Text};
use super::utf8::Utf8;
use super::{DEPTH, Envelope, EnvelopeError, MODEL_BYTES};

/// Reads one body. Memory is constant but for the model's name.
#[derive(Debug)]
pub struct Scanner {
    /// How many bytes were read in earlier chunks.
    offset: usize,
    utf8: Utf8,
    state: State,
    depth: u32,
    /// One bit for each open bracket, the innermost lowest: set for an object.
    objects: u128,
    /// Which member of the outermost object the scan is in.
    member: Member,
    /// The key or the model in progress, decoded.
    text: Text,
    seen_model: bool,
    seen_stream: bool,
    envelope: Envelope,
    /// Where it is wanted which conversation the body belongs to.
    notes: Option<Box<Notes>>,
}

/// What may stand next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The body's own value.
    Start,
    /// A key, or the end of an object that has no member yet.
    FirstKey,
    Key,
    Colon,
    /// A value, or the end of an array that has none yet.
    FirstItem,
    Value,
    /// A comma or the closing bracket.
    Next,
    /// The remainder of `true`, `false` or `null`.
    Literal(&'static [u8]),
    Number(Number),
    String(Role, Place),
    /// Nothing but white space.
    End,
}

/// What a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A key of the outermost object.
    Member,
    Model,
    /// A key further in.
    Key,
    /// A value whose place is noted.
    Noted,
    /// A key of a message, and its `role`.
    Inner,
    Speaker,
    Value,
}

/// The members of the outermost object that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    CacheKey,
    Messages,
    Model,
    Other,
    Stored,
    Stream,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// Starts at the first byte of a body.
    pub fn new() -> Self {
        Self {
            offset: 0,
            utf8: Utf8::default(),
            state: State::Start,
            depth: 0,
            objects: 0,
            member: Member::Other,
            text: Text::new(MODEL_BYTES),
            seen_model: false,
            seen_stream: false,
            envelope: Envelope::default(),
            notes: None,
        }
    }

    /// The same, and notes where the body says which conversation it belongs to.
    pub fn noting() -> Self {
        Self {
            notes: Some(Box::default()),
            ..Self::new()
        }
    }

    /// Reads the next bytes. After an error the body is refused and the scanner is of no more use.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), EnvelopeError> {
        let valid = self.utf8.feed(chunk);
        // What stands before a wrong character is read all the same, so that the same error is found in any chunks.
        let text = &chunk[..valid.err().unwrap_or(chunk.len())];
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match (self.state, byte) {
                (State::String(role, place), _) => {
                    at += self.string(role, place, &text[at..], self.offset + at)?;
                    continue;
                }
                // What is between most strings, ahead of all else.
                (State::Colon, b':') => self.state = State::Value,
                (State::Next, b',') => self.comma(),
                _ => self.byte(byte, self.offset + at)?,
            }
            at += 1;
        }
        valid.map_err(|at| EnvelopeError::NotJson { at: self.offset + at })?;
        self.offset += chunk.len();
        Ok(())
    }

    /// What has been found so far; a member that is in progress is not found yet.
    pub fn so_far(&self) -> &Envelope {
        &self.envelope
    }

    /// What has been noted so far, if anything is.
    pub fn members(&self) -> Option<&Members> {
        self.notes.as_deref().map(|notes| &notes.members)
    }

    /// Where the value of `model` stands; empty while it is in progress, with its start, and without one.
    pub fn model_span(&self) -> std::ops::Range<usize> {
        self.envelope.model_span.clone()
    }

    /// Whether there is a member that some take for the model, but no model: in another case, or null.
    pub fn hides_model(&self) -> bool {
        self.seen_model && self.envelope.model.is_none()
    }

    /// Whether the last byte was within the value of `model`.
    pub fn is_in_model(&self) -> bool {
        matches!(self.state, State::String(Role::Model, _))
    }

    /// Says that the body has ended.
    pub fn finish(self) -> Result<Envelope, EnvelopeError> {
        if self.state == State::End {
            Ok(self.envelope)
        } else {
            Err(EnvelopeError::NotJson { at: self.offset })
        }
    }

    /// Goes through a string, and returns how many bytes of it there were.
    fn string(
        &mut self,
        role: Role,
        mut place: Place,
        bytes: &[u8],
        at: usize,
    ) -> Result<usize, EnvelopeError> {
        let text = match role {
            Role::Member | Role::Model => Some(&mut self.text),
            Role::Inner | Role::Speaker => self.notes.as_deref_mut().map(|notes| notes.item.text()),
            Role::Key | Role::Noted | Role::Value => None,
        };
        match string::step(&mut place, bytes, text) {
            Step::Open => {
                self.state = State::String(role, place);
                Ok(bytes.len())
            }
            Step::Closed(quote) => {
                self.close_string(role, at + quote + 1)?;
                Ok(quote + 1)
            }
            Step::Wrong(wrong) => Err(EnvelopeError::NotJson { at: at + wrong }),
        }
    }

    fn close_string(&mut self, role: Role, end: usize) -> Result<(), EnvelopeError> {
        self.state = State::Next;
        match role {
            Role::Value => {}
            Role::Key => self.state = State::Colon,
            Role::Noted => {
                if let Some(noted) = self.noted(self.member) {
                    noted.end = end;
                }
            }
            Role::Inner => {
                self.state = State::Colon;
                if let Some(notes) = &mut self.notes {
                    notes.item.key();
                }
            }
            Role::Speaker => {
                if let Some(notes) = &mut self.notes {
                    notes.item.role();
                }
            }
            Role::Member => {
                self.state = State::Colon;
                self.member(end)?;
            }
            Role::Model => {
                let start = self.envelope.model_span.start;
                let name = self.text.take();
                let name = name.ok_or(EnvelopeError::ModelTooLong { at: start })?;
                // Cannot fail: `utf8` has passed every byte up to here.
                self.envelope.model = Some(String::from_utf8(name).unwrap_or_default());
                self.envelope.model_span = start..end;
            }
        }
        Ok(())
    }

    /// A key of the outermost object has been read. [ENV-3]
    fn member(&mut self, end: usize) -> Result<(), EnvelopeError> {
        let name = self.text.bytes().unwrap_or_default();
        self.member = match name {
            b"messages" | b"input" => Member::Messages,
            b"model" => Member::Model,
            b"prompt_cache_key" => Member::CacheKey,
            b"stream" => Member::Stream,
            b"store" | b"background" => Member::Stored,
            _ => Member::Other,
        };
        if name.eq_ignore_ascii_case(b"model") && std::mem::replace(&mut self.seen_model, true) {
            return Err(EnvelopeError::DuplicateModel { at: end });
        }
        if name.eq_ignore_ascii_case(b"stream") && std::mem::replace(&mut self.seen_stream, true) {
            return Err(EnvelopeError::DuplicateStream { at: end });
        }
        Ok(())
    }

    /// Any byte outside of a string.
    fn byte(&mut self, byte: u8, at: usize) -> Result<(), EnvelopeError> {
        match self.state {
            State::Literal([expected, rest @ ..]) if *expected == byte => {
                self.state = if rest.is_empty() {
                    State::Next
                } else {
                    State::Literal(rest)
                };
                return Ok(());
            }
            State::Literal(_) => return Err(EnvelopeError::NotJson { at }),
            State::Number(number) => {
                if let Some(next) = number.next(byte) {
                    self.state = State::Number(next);
                    return Ok(());
                }
                if !number.is_complete() {
                    return Err(EnvelopeError::NotJson { at });
                }
                self.state = State::Next;
            }
            _ => {}
        }
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return Ok(());
        }
        match (self.state, byte) {
            (State::Start, b'{') => self.open(true, at)?,
            (State::Start, b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                return Err(EnvelopeError::NotObject);
            }
            (State::FirstKey | State::Key, b'"') => {
                let role = match self.depth {
                    1 => Role::Member,
                    ITEM if self.is_item(Item::is_sought) => Role::Inner,
                    _ => Role::Key,
                };
                self.state = State::String(role, Place::Plain);
                self.text.clear();
                if let (Role::Inner, Some(notes)) = (role, &mut self.notes) {
                    notes.item.text().clear();
                }
            }
            (State::FirstKey, b'}') | (State::FirstItem, b']') => self.close(at),
            (State::FirstItem | State::Value, _) => self.value(byte, at)?,
            (State::Next, b',') => self.comma(),
            (State::Next, b'}') if self.in_object() => self.close(at),
            (State::Next, b']') if !self.in_object() => self.close(at),
            _ => return Err(EnvelopeError::NotJson { at }),
        }
        Ok(())
    }

    /// The first byte of a value.
    fn value(&mut self, byte: u8, at: usize) -> Result<(), EnvelopeError> {
        let member = if self.depth == 1 {
            self.member
        } else {
            Member::Other
        };
        if member == Member::Model && !matches!(byte, b'"' | b'n') {
            return Err(EnvelopeError::ModelNotString { at });
        }
        if let (Member::Messages, b'[', Some(notes)) = (member, byte, &mut self.notes) {
            notes.members.opening = at..at;
            notes.item.seek();
        }
        self.state = match byte {
            b'{' | b'[' => return self.open(byte == b'{', at),
            b'"' if member == Member::Model => {
                self.text.clear();
                self.envelope.model_span = at..at;
                State::String(Role::Model, Place::Plain)
            }
            b'"' if self.depth == ITEM && self.is_item(Item::is_role) => {
                State::String(Role::Speaker, Place::Plain)
            }
            b'"' if self.note(member, at) => State::String(Role::Noted, Place::Plain),
            b'"' => State::String(Role::Value, Place::Plain),
            b't' => {
                // Whether `rue` follows is checked as for every literal, and without it there is no envelope.
                self.envelope.stream |= member == Member::Stream;
                self.envelope.stored |= member == Member::Stored;
                State::Literal(b"rue")
            }
            b'f' => State::Literal(b"alse"),
            b'n' => State::Literal(b"ull"),
            _ => State::Number(Number::begin(byte).ok_or(EnvelopeError::NotJson { at })?),
        };
        Ok(())
    }

    /// Another member or item follows.
    fn comma(&mut self) {
        self.state = if self.in_object() {
            State::Key
        } else {
            State::Value
        };
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    /// Goes one level in. [ENV-5]
    fn open(&mut self, object: bool, at: usize) -> Result<(), EnvelopeError> {
        if self.depth == DEPTH {
            return Err(EnvelopeError::TooDeep { at });
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(object);
        self.state = if object { State::FirstKey } else { State::FirstItem };
        Ok(())
    }

    /// Begins to note where the value of `member` stands, if that is of interest.
    fn note(&mut self, member: Member, at: usize) -> bool {
        self.noted(member).map(|noted| *noted = at..at).is_some()
    }

    fn is_item(&self, is: fn(&Item) -> bool) -> bool {
        self.notes.as_ref().is_some_and(|notes| is(&notes.item))
    }

    /// What is further in than the outermost object is no member of it, and comes as [`Member::Other`].
    fn noted(&mut self, member: Member) -> Option<&mut std::ops::Range<usize>> {
        let members = &mut self.notes.as_mut()?.members;
        match member {
            Member::CacheKey => Some(&mut members.cache_key),
            Member::Messages => Some(&mut members.opening),
            Member::Model | Member::Other | Member::Stored | Member::Stream => None,
        }
    }

    /// Goes one level out.
    fn close(&mut self, at: usize) {
        if let Some(notes) = &mut self.notes
            && notes.item.is_sought()
            && notes.item.closes(self.depth)
        {
            notes.members.opening.end = at + 1;
        }
        self.depth -= 1;
        self.objects >>= 1;
        self.state = if self.depth == 0 { State::End } else { State::Next };
    }
}
