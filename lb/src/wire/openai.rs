//! Says what one event of an LLM stream is, and writes errors the way `OpenAI` does.
//!
//! The three API families that share these streams (chat completions, responses, messages) mark a failure, an opening
//! and an end each in its own way; [`classify`], [`has_content`] and [`is_finish`] know them all, so that nothing else
//! needs to. The rules are those of the frame table. [FRAME-1]
//!
//! They are asked about every token, so ordinary data costs a substring search: JSON is read only where a telling word
//! occurs, and then only at depth 1, never into a document. What cannot be read as JSON is data like any other.

mod error;
mod members;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::value::RawValue;

use members::{has_text, members, text};

pub use error::ApiError;

/// What an event is to failover and to the share controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// No data: keep-alive, never a first frame.
    Empty,
    /// Data, of which the first in a stream is its first data frame.
    Data {
        /// It only announces an answer (`response.created`, `message_start`, `ping` …), so an error may still follow.
        preamble: bool,
    },
    /// The `[DONE]` sentinel.
    Done,
    /// A failure told inside a stream that began with 200.
    Error {
        /// The status that the provider would have answered with, 400–599; 502 where it does not say.
        status: u16,
    },
}

/// Classifies a complete event by its `event` value and its data.
///
/// Works on an event that was cut short too: what stands before the cut decides. [FRAME-2]
pub fn classify(kind: &[u8], data: &[u8]) -> Frame {
    if data.is_empty() {
        return Frame::Empty;
    }
    if kind == b"error" || kind == b"response.failed" {
        return Frame::Error {
            status: error::status(data),
        };
    }
    if data == DONE {
        return Frame::Done;
    }
    if WORDS.error.find(data).is_some() && has_error(data) {
        return Frame::Error {
            status: error::status(data),
        };
    }
    match &*kind_of(kind, data) {
        b"error" | b"response.failed" => Frame::Error {
            status: error::status(data),
        },
        kind => Frame::Data {
            preamble: PREAMBLES.contains(&kind),
        },
    }
}

/// Whether the event carries generated content: text, reasoning or a tool call. An opening, a role-only delta and an
/// empty string carry none. Decides the first frame under `first_token: content`. [FRAME-6]
pub fn has_content(kind: &[u8], data: &[u8]) -> bool {
    let kind = kind_of(kind, data);
    if kind.ends_with(b".delta") || *kind == *b"content_block_delta" {
        return true;
    }
    any_choice(data, |name, value| match name {
        "text" => has_text(value),
        "delta" => {
            let mut content = false;
            members(value.get().as_bytes(), |name, value| {
                content |= CONTENT.contains(&name) && has_text(value);
            });
            content
        }
        _ => false,
    })
}

/// Whether the event says that the answer is complete, so that a clean end after it is an end and not a cut; so
/// does [`Frame::Done`], for those who send it. [FRAME-7]
pub fn is_finish(kind: &[u8], data: &[u8]) -> bool {
    let kind = kind_of(kind, data);
    if matches!(
        &*kind,
        b"message_stop" | b"response.completed" | b"response.incomplete"
    ) {
        return true;
    }
    // The member is there in every chunk, and null in all but the last; only a text after it is worth a closer look.
    let told = WORDS.finish_reason.find_iter(data).any(|at| {
        let value = data[at + FINISH_REASON.len()..]
            .iter()
            .find(|byte| !byte.is_ascii_whitespace() && **byte != b':');
        value == Some(&b'"')
    });
    told && any_choice(data, |name, value| name == "finish_reason" && has_text(value))
}

/// The name of the event: its `event` value, or where it is the default the `type` that its data carries. The two are
/// equal wherever both are sent, and some gateways leave the first out.
fn kind_of<'a>(kind: &'a [u8], data: &'a [u8]) -> Cow<'a, [u8]> {
    let mut found = Cow::Borrowed(kind);
    if (kind.is_empty() || kind == b"message") && WORDS.kind.find(data).is_some() {
        members(data, |name, value| {
            if name == "type" {
                match text(value) {
                    Some(Cow::Borrowed(text)) => found = Cow::Borrowed(text.as_bytes()),
                    Some(Cow::Owned(text)) => found = Cow::Owned(text.into_bytes()),
                    None => {}
                }
            }
        });
    }
    found
}

/// An `error` member at the top that is an object or a string. The null of a healthy answer is none. [FRAME-3]
fn has_error(data: &[u8]) -> bool {
    let mut found = false;
    members(data, |name, value| {
        found |= name == "error" && value.get().starts_with(['{', '"']);
    });
    found
}

/// Whether a member of any of the `choices` satisfies `of`.
fn any_choice(data: &[u8], mut of: impl FnMut(&str, &RawValue) -> bool) -> bool {
    let mut found = false;
    members(data, |name, value| {
        if name == "choices" {
            let choices: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
            for choice in choices {
                members(choice.get().as_bytes(), |name, value| found |= of(name, value));
            }
        }
    });
    found
}

/// Searchers built once: building one costs as much as searching a token with it.
struct Words {
    error: Finder<'static>,
    kind: Finder<'static>,
    finish_reason: Finder<'static>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| Words {
    error: Finder::new(b"\"error\""),
    kind: Finder::new(b"\"type\""),
    finish_reason: Finder::new(FINISH_REASON),
});

const DONE: &[u8] = b"[DONE]";
const FINISH_REASON: &[u8] = b"\"finish_reason\"";

/// Members of a chat delta that hold something generated; gateways disagree on what reasoning is called.
const CONTENT: [&str; 9] = [
    "audio",
    "content",
    "function_call",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "thinking",
    "tool_calls",
];

const PREAMBLES: [&[u8]; 5] = [
    b"message_start",
    b"ping",
    b"response.created",
    b"response.in_progress",
    b"response.queued",
];
