//! Finds the parts of a form that say what it asks for: `multipart/form-data` (RFC 7578), as uploads of audio and images
//! come.
//!
//! [`Form`] is fed the body chunk by chunk and keeps what may still be the beginning of a delimiter, the head of the
//! part it is in, or the value it looks for; never a file. As with JSON ([`super::envelope`]) what two readers may read
//! in two ways is refused: a second `model`, a form without its end.

use std::fmt;
use std::ops::Range;

use memchr::memmem;

mod disposition;
#[cfg(test)]
mod tests;

/// What a form asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The value of the part `model`.
    pub model: Option<String>,
    /// Where that value stands in the whole body; empty without one.
    pub model_span: Range<usize>,
    /// Whether the part `stream` is exactly `true`.
    pub stream: bool,
}

/// Why a form is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormError {
    /// A second part of this name.
    Duplicate(&'static str),
    /// The content type names no boundary, or none that is allowed.
    NoBoundary,
    /// No form, at this byte, or one that ends too early.
    NotForm {
        /// Offset of the fault.
        at: usize,
    },
    /// The model's name is longer than [`MODEL_BYTES`], or no UTF-8.
    NotModel,
    /// A part that others may read under another name than is read here.
    TwoNames {
        /// Offset behind what has come.
        at: usize,
    },
    /// The head of a part is longer than [`HEAD_BYTES`].
    LongHead,
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(name) => write!(f, "the form has a second part `{name}`"),
            Self::LongHead => write!(
                f,
                "the head of a part of the form is longer than {HEAD_BYTES} bytes"
            ),
            Self::NoBoundary => f.write_str("the form's content-type names no boundary"),
            Self::NotForm { at } => write!(f, "the body is not a valid form at byte {at}"),
            Self::TwoNames { at } => write!(f, "a part of the form before byte {at} has no clear `name`"),
            Self::NotModel => write!(
                f,
                "the form's part `model` is no name of at most {MODEL_BYTES} bytes"
            ),
        }
    }
}

impl std::error::Error for FormError {}

/// The longest model name that is read. Bytes.
pub const MODEL_BYTES: usize = super::envelope::MODEL_BYTES;

/// The longest head of a part. Bytes.
pub const HEAD_BYTES: usize = 8 * 1024;

/// Fields in the head of a part.
const PART_FIELDS: usize = 16;

/// The boundary that a content type names, if it is that of a form.
pub fn boundary(content_type: &[u8]) -> Option<Result<&[u8], FormError>> {
    let mut parts = content_type.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    if !parts.next()?.eq_ignore_ascii_case(b"multipart/form-data") {
        return None;
    }
    let mut named = parts.filter_map(|part| {
        let (name, value) = part.split_at_checked(8)?;
        name.eq_ignore_ascii_case(b"boundary").then_some(value)
    });
    // A second one, or one in pieces or with a charset (RFC 2231), is what another reader may go by.
    let (named, second) = (named.next(), named.next());
    let named = named
        .filter(|_| second.is_none())
        .and_then(|value| value.strip_prefix(b"="));
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(byte);
    let found = named.map(|value| {
        let quoted = value
            .strip_prefix(b"\"")
            .and_then(|value| value.strip_suffix(b"\""));
        quoted.unwrap_or(value)
    });
    // RFC 2046, 5.1.1.
    let found = found.filter(|name| (1..=70).contains(&name.len()) && name.iter().all(allowed));
    Some(found.ok_or(FormError::NoBoundary))
}

/// Which value is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Model,
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first delimiter, or in a part that nobody asks for.
    Skip,
    /// Just behind a delimiter.
    Delimiter,
    Head,
    Value(Wanted),
    /// Behind the last delimiter: whatever follows is no part.
    End,
}

/// Reads a form as it comes.
#[derive(Debug)]
pub struct Form {
    /// Without the line end that comes before it.
    delimiter: memmem::Finder<'static>,
    state: State,
    /// What has come and is not decided.
    held: Vec<u8>,
    /// Offset of its first byte in the body.
    offset: usize,
    /// Whether no byte was taken yet: the first delimiter needs no line end before it.
    first: bool,
    seen_model: bool,
    seen_stream: bool,
    fields: Fields,
}

impl Form {
    /// For a form with this boundary.
    pub fn new(boundary: &[u8]) -> Self {
        let delimiter = [b"--", boundary].concat();
        Self {
            delimiter: memmem::Finder::new(&delimiter).into_owned(),
            state: State::Skip,
            held: Vec::new(),
            offset: 0,
            first: true,
            seen_model: false,
            seen_stream: false,
            fields: Fields::default(),
        }
    }

    /// What has been found so far.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Reads the next bytes. After an error the form is of no more use.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), FormError> {
        self.held.extend_from_slice(chunk);
        if std::mem::take(&mut self.first) {
            // A delimiter begins with the line end before it, and the body's first line has none.
            self.held.splice(..0, *b"\r\n");
        }
        while self.step()? {}
        Ok(())
    }

    /// Says that the body has ended.
    pub fn finish(self) -> Result<Fields, FormError> {
        if self.state == State::End {
            Ok(self.fields)
        } else {
            Err(FormError::NotForm { at: self.end() })
        }
    }

    /// The offset in the body of what follows what has come; the made-up line end counts for nothing.
    fn end(&self) -> usize {
        (self.offset + self.held.len()).saturating_sub(2)
    }

    fn take(&mut self, length: usize) {
        self.held.drain(..length);
        self.offset += length;
    }

    /// One step on; false where more bytes are needed.
    fn step(&mut self) -> Result<bool, FormError> {
        match self.state {
            State::Skip => {
                let length = self.delimiter.needle().len() + 2;
                if let Some(at) = self.delimiter()? {
                    self.take(at + length);
                    self.state = State::Delimiter;
                    return Ok(true);
                }
                let done = self.held.len().saturating_sub(length - 1);
                self.take(done);
                Ok(false)
            }
            State::End => {
                self.held = Vec::new();
                Ok(false)
            }
            State::Delimiter => self.behind_delimiter(),
            State::Head => self.head(),
            State::Value(wanted) => self.value(wanted),
        }
    }

    fn behind_delimiter(&mut self) -> Result<bool, FormError> {
        if self.held.starts_with(b"--") {
            self.state = State::End;
            return Ok(true);
        }
        let padding = self
            .held
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        match self.held[padding..] {
            [b'\r', b'\n', ..] => {
                // The line end stays: a head without fields is an empty line right behind it.
                self.take(padding);
                self.state = State::Head;
                Ok(true)
            }
            [] | [b'\r' | b'-'] if padding <= HEAD_BYTES => Ok(false),
            _ => Err(FormError::NotForm { at: self.end() }),
        }
    }

    fn head(&mut self) -> Result<bool, FormError> {
        let Some(end) = memmem::find(&self.held, b"\r\n\r\n") else {
            return if self.held.len() > HEAD_BYTES {
                Err(FormError::LongHead)
            } else {
                Ok(false)
            };
        };
        if end > HEAD_BYTES {
            return Err(FormError::LongHead);
        }
        let wanted = wanted(&self.held[2..end + 4]).map_err(|unclear| match unclear {
            Unclear::Head => FormError::NotForm { at: self.end() },
            Unclear::Name => FormError::TwoNames { at: self.end() },
        })?;
        let seen = match wanted {
            Some(Wanted::Model) => std::mem::replace(&mut self.seen_model, true).then_some("model"),
            Some(Wanted::Stream) => std::mem::replace(&mut self.seen_stream, true).then_some("stream"),
            None => None,
        };
        if let Some(name) = seen {
            return Err(FormError::Duplicate(name));
        }
        if let Some(wanted) = wanted {
            self.take(end + 4);
            self.state = State::Value(wanted);
        } else {
            // An empty part's delimiter begins with the line end that ends its head.
            self.take(end + 2);
            self.state = State::Skip;
        }
        Ok(true)
    }

    /// Where the next delimiter is, with the line end before it. One behind another line end is none here, but to
    /// some readers it is.
    fn delimiter(&self) -> Result<Option<usize>, FormError> {
        for at in self.delimiter.find_iter(&self.held) {
            match self.held[..at] {
                [.., b'\r', b'\n'] => return Ok(Some(at - 2)),
                [.., b'\r' | b'\n'] => {
                    return Err(FormError::NotForm {
                        at: (self.offset + at).saturating_sub(2),
                    });
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn value(&mut self, wanted: Wanted) -> Result<bool, FormError> {
        let found = self.delimiter()?;
        let unfinished = self.held.len().saturating_sub(self.delimiter.needle().len() + 2);
        let length = found.unwrap_or(unfinished);
        if length > MODEL_BYTES {
            return Err(FormError::NotModel);
        }
        let Some(end) = found else { return Ok(false) };
        let value = &self.held[..end];
        match wanted {
            Wanted::Model => {
                let model = std::str::from_utf8(value).map_err(|_invalid| FormError::NotModel)?;
                let start = self.offset.saturating_sub(2);
                self.fields.model_span = start..start + end;
                self.fields.model = Some(model.to_owned());
            }
            Wanted::Stream => self.fields.stream = value == b"true",
        }
        self.take(end);
        self.state = State::Skip;
        Ok(true)
    }
}

/// Which part a head begins, if it is one that is looked for.
fn wanted(head: &[u8]) -> Result<Option<Wanted>, Unclear> {
    let mut fields = [httparse::EMPTY_HEADER; PART_FIELDS];
    let (_, fields) = match httparse::parse_headers(head, &mut fields) {
        Ok(httparse::Status::Complete(parsed)) => parsed,
        Ok(httparse::Status::Partial) | Err(_) => return Err(Unclear::Head),
    };
    let mut dispositions = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("content-disposition"));
    let disposition = dispositions.next();
    if dispositions.next().is_some() {
        return Err(Unclear::Name);
    }
    let Some(disposition) = disposition else {
        return Ok(None);
    };
    let name = disposition::name(disposition.value).map_err(|()| Unclear::Name)?;
    Ok(match name {
        Some(b"model") => Some(Wanted::Model),
        Some(b"stream") => Some(Wanted::Stream),
        _ => None,
    })
}

/// What is wrong with the head of a part.
enum Unclear {
    /// It is no head.
    Head,
    /// It can be read to have another name.
    Name,
}
