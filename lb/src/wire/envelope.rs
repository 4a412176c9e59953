//! Finds out what a JSON request body asks for, by byte spans and without building a document.
//!
//! Only `model`, `stream`, `store` and `background` at depth 1 are of interest, where it is wanted also what tells one
//! conversation from another ([`Members`]), and the rest may be megabytes of messages. So [`Scanner`] is an automaton
//! that is fed the body chunk by chunk as it arrives: it owns the member it is in, a bit for each open bracket, and
//! nothing else, and can stop between any two bytes. [ENV-1]
//!
//! It is strict on purpose. lb decides by what it reads here and the provider by what *it* reads, so a text on which two
//! parsers may differ is refused: anything that is not JSON or not UTF-8, and a second `model` or `stream`, of which
//! some parsers take the first and some the last. Parsers that ignore the case of keys exist as well, so a `Model`
//! beside a `model` is a second one. [ENV-3] [ENV-4]

mod members;
mod number;
mod scanner;
mod string;
#[cfg(test)]
mod tests;
mod utf8;

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

pub use members::Members;
pub use scanner::Scanner;

/// What a body asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The value of the top-level `model`, escapes decoded; `None` where it is missing or null.
    pub model: Option<String>,
    /// Where that value stands in the whole body, its quotes included; empty without a model.
    pub model_span: Range<usize>,
    /// Whether `stream` is exactly `true`.
    pub stream: bool,
    /// Whether `store` or `background` is exactly `true`: the provider keeps the answer, so that it may be asked for.
    pub stored: bool,
}

/// Why a body is refused. Offsets count from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeError {
    /// A second top-level `model`.
    DuplicateModel {
        /// Offset just after its key.
        at: usize,
    },
    /// A second top-level `stream`.
    DuplicateStream {
        /// Offset just after its key.
        at: usize,
    },
    /// The model is neither a string nor null.
    ModelNotString {
        /// Offset of its value.
        at: usize,
    },
    /// The model's name is longer than [`MODEL_BYTES`].
    ModelTooLong {
        /// Offset of its value.
        at: usize,
    },
    /// Not JSON, or not UTF-8.
    NotJson {
        /// Offset of the first byte that cannot stand where it stands, or the length of a body that ends too early.
        at: usize,
    },
    /// JSON, but no object.
    NotObject,
    /// Arrays and objects nested deeper than [`DEPTH`].
    TooDeep {
        /// Offset of the bracket that is one too many.
        at: usize,
    },
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateModel { at } => write!(f, "`model` is given a second time at byte {at}"),
            Self::DuplicateStream { at } => write!(f, "`stream` is given a second time at byte {at}"),
            Self::ModelNotString { at } => write!(f, "`model` is not a string at byte {at}"),
            Self::ModelTooLong { at } => write!(f, "`model` at byte {at} is longer than {MODEL_BYTES} bytes"),
            Self::NotJson { at } => write!(f, "the body is not valid JSON at byte {at}"),
            Self::NotObject => f.write_str("the body is not a JSON object"),
            Self::TooDeep { at } => write!(f, "the body is nested deeper than {DEPTH} levels at byte {at}"),
        }
    }
}

impl std::error::Error for EnvelopeError {}

/// The body with `model` in place of the value at `span`, in three pieces to be sent one after another; the first and
/// the last are views of `body`, every byte of which stays as it was. [ENV-6]
///
/// `span` is the [`model_span`](Envelope::model_span) of this very body; a span outside of it panics.
pub fn rewrite(body: &Bytes, span: Range<usize>, model: &str) -> [Bytes; 3] {
    let value = serde_json::to_vec(model).expect("a string is always JSON");
    [
        body.slice(..span.start),
        Bytes::from(value),
        body.slice(span.end..),
    ]
}

/// How deep a body may be nested. Schemas of tools are the deepest thing in use, and providers cap those at ten.
pub const DEPTH: u32 = 128;

/// The longest model name that is read, in bytes after decoding. What is longer is in no configuration.
pub const MODEL_BYTES: usize = 4096;
