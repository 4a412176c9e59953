//! The inside of a JSON string: where it ends, and what it says once its escapes are read.

/// Where in a string the scan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Plain,
    /// After a backslash.
    Escape,
    /// In the four digits of a `\u` escape.
    Hex {
        left: u8,
        value: u16,
    },
}

/// What a step through a string came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The bytes are used up and the string goes on.
    Open,
    /// The closing quote is at this offset of the bytes.
    Closed(usize),
    /// The byte at this offset cannot stand in a string.
    Wrong(usize),
}

/// Goes through `bytes`, which begin inside a string, until its end or theirs. What the string says is added to `text`
/// where someone wants to know; else only its form is checked.
pub(super) fn step(place: &mut Place, bytes: &[u8], mut text: Option<&mut Text>) -> Step {
    let mut at = 0;
    while at < bytes.len() {
        if *place == Place::Plain {
            let length = plain(&bytes[at..]);
            if let Some(text) = &mut text
                && !text.push(&bytes[at..at + length])
            {
                return Step::Wrong(at);
            }
            at += length;
        }
        let Some(&byte) = bytes.get(at) else { break };
        let next = match *place {
            Place::Plain => match byte {
                b'"' if text.as_ref().is_none_or(|text| text.is_whole()) => return Step::Closed(at),
                b'\\' => Some(Place::Escape),
                _ => None,
            },
            Place::Escape => escape(byte, text.as_deref_mut()),
            Place::Hex { left, value } => hex(left, value, byte, text.as_deref_mut()),
        };
        let Some(next) = next else { return Step::Wrong(at) };
        *place = next;
        at += 1;
    }
    Step::Open
}

/// The byte after a backslash.
fn escape(byte: u8, text: Option<&mut Text>) -> Option<Place> {
    let meant = match byte {
        b'"' | b'\\' | b'/' => byte,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return Some(Place::Hex { left: 4, value: 0 }),
        _ => return None,
    };
    text.is_none_or(|text| text.push(&[meant]))
        .then_some(Place::Plain)
}

/// One of four hexadecimal digits.
fn hex(left: u8, value: u16, byte: u8, text: Option<&mut Text>) -> Option<Place> {
    let digit = char::from(byte)
        .to_digit(16)
        .and_then(|digit| u16::try_from(digit).ok())?;
    let value = value << 4 | digit;
    if left > 1 {
        return Some(Place::Hex {
            left: left - 1,
            value,
        });
    }
    text.is_none_or(|text| text.push_unit(value))
        .then_some(Place::Plain)
}

/// How many bytes from the start mean themselves: no quote, no backslash, no control character.
///
/// Begins by words, since keys are short, and goes on by blocks without a branch inside, which compiles to vector
/// instructions: nearly all of a body is the inside of long strings.
fn plain(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return at + (special.trailing_zeros() / 8) as usize;
        }
        at += word.len();
        if at % BLOCK == 0 {
            let blocks = bytes[at..].chunks_exact(BLOCK);
            at += blocks.take_while(|block| is_plain(block)).count() * BLOCK;
        }
    }
    let tail = &bytes[at..];
    at + tail
        .iter()
        .position(|byte| is_special(*byte))
        .unwrap_or(tail.len())
}

fn is_plain(block: &[u8]) -> bool {
    let specials = block
        .iter()
        .fold(0, |hit, byte| hit | u8::from(is_special(*byte)));
    specials == 0
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Sets the highest bit of each of eight bytes that is special. A borrow may set that of a byte above one that is, which
/// leaves the lowest right.
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let equals = |byte: u8| {
        let differs = word ^ (ONES * u64::from(byte));
        differs.wrapping_sub(ONES) & !differs
    };
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | equals(b'"') | equals(b'\\')) & HIGHS
}

const BLOCK: usize = 32;

/// Keys and models are no longer, as a rule. Bytes.
const USUAL: usize = 32;

/// A decoded string, kept up to a limit.
#[derive(Debug)]
pub(super) struct Text {
    bytes: Vec<u8>,
    limit: usize,
    over: bool,
    /// The first half of a surrogate pair, whose second must follow at once.
    high: Option<u16>,
    /// Whether a half that is left alone is only no text, as it is where nobody reads it.
    lenient: bool,
}

impl Text {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            over: false,
            high: None,
            lenient: false,
        }
    }

    /// One in which a lone half of a surrogate pair is nothing wrong.
    pub(super) fn lenient(limit: usize) -> Self {
        Self {
            lenient: true,
            ..Self::new(limit)
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.over = false;
        self.high = None;
    }

    /// The bytes, taken out, or `None` if there were more than the limit.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        (!self.over).then(|| std::mem::take(&mut self.bytes))
    }

    /// The bytes, or `None` if there were more than the limit.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        (!self.over).then_some(&*self.bytes)
    }

    /// Whether no half of a pair is left alone.
    fn is_whole(&self) -> bool {
        self.high.is_none() || self.lenient
    }

    /// Adds bytes; `false` if they leave half of a surrogate pair alone.
    fn push(&mut self, bytes: &[u8]) -> bool {
        if self.bytes.len() + bytes.len() > self.limit {
            self.over = true;
        } else {
            if self.bytes.is_empty() {
                // Once, instead of for a key of five bytes, then for one of nine.
                self.bytes.reserve(bytes.len().max(USUAL));
            }
            self.bytes.extend_from_slice(bytes);
        }
        bytes.is_empty() || self.is_whole()
    }

    /// Adds a UTF-16 unit; `false` if it breaks a surrogate pair. [ENV-2]
    fn push_unit(&mut self, unit: u16) -> bool {
        let decoded = match (self.high.take(), unit) {
            (None, 0xD800..=0xDBFF) => {
                self.high = Some(unit);
                return true;
            }
            (None, _) => char::decode_utf16([unit]).next(),
            (Some(high), _) => char::decode_utf16([high, unit]).next(),
        };
        if let Some(Ok(character)) = decoded {
            return self.push(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.over |= self.lenient;
        self.lenient
    }
}

#[cfg(test)]
mod tests;
