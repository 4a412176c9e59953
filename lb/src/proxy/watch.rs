//! What a stream's events say, kept from chunk to chunk.

use bytes::Bytes;

use crate::config::{FirstToken, Model};
use crate::wire::openai::{self, Frame};
use crate::wire::sse::{Event, Observer};
use crate::wire::usage::Usage;

/// Follows one response's events, before its commit and after.
#[derive(Debug)]
pub(super) struct Watch {
    observer: Observer,
    rules: Rules,
    seen: Seen,
    /// Where tokens are counted.
    usage: Option<Box<Usage>>,
}

/// What counts, by the model's configuration.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Only generated content is a first frame.
    content: bool,
    /// A preamble is waited past.
    past_preamble: bool,
}

/// What was seen so far.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "five independent facts about one stream"
)]
struct Seen {
    committed: bool,
    first_data: bool,
    preamble: bool,
    finished: bool,
    done: bool,
    decision: Option<Decision>,
    late_error: Option<u16>,
}

/// What the first decisive event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Data, or `[DONE]`: the stream is the answer.
    Commit,
    /// An error event, with the status it stands for and its data.
    Error { status: u16, data: Bytes },
}

impl Watch {
    /// For a stream of `model`; `peeked` where its head is withheld until a [`Decision`], `counted` where note is taken
    /// of what events say about tokens.
    pub(super) fn new(model: &Model, peeked: bool, counted: bool) -> Self {
        let rules = Rules {
            content: model.first_token == FirstToken::Content,
            past_preamble: model.peek.past_preamble,
        };
        let seen = Seen {
            committed: !peeked,
            ..Seen::default()
        };
        Self {
            observer: Observer::new(model.max_event_bytes),
            rules,
            seen,
            usage: counted.then(Box::default),
        }
    }

    /// What events said about tokens, where that was asked for.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage.as_deref().copied()
    }

    /// Looks at the next chunk. Returns whether the stream's first data frame was in it.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> bool {
        let before = self.seen.first_data;
        let Self {
            observer,
            rules,
            seen,
            usage,
        } = self;
        observer.feed(chunk, |event| {
            if let Some(usage) = usage {
                usage.event(event.data);
            }
            seen.take(*rules, &event);
        });
        self.seen.first_data && !before
    }

    /// Looks at what is left at the end of the body. Returns whether the first data frame was in it.
    pub(super) fn finish(&mut self) -> bool {
        let before = self.seen.first_data;
        let Self {
            observer,
            rules,
            seen,
            usage,
        } = self;
        observer.finish(|event| {
            if let Some(usage) = usage {
                usage.event(event.data);
            }
            seen.take(*rules, &event);
        });
        self.seen.first_data && !before
    }

    /// The decision, once there is one.
    pub(super) fn take_decision(&mut self) -> Option<Decision> {
        self.seen.decision.take()
    }

    /// From now on the response is the client's, whatever is still undecided.
    pub(super) fn commit(&mut self) {
        self.seen.committed = true;
    }

    /// Whether an event that only announces a response has come.
    pub(super) fn saw_preamble(&self) -> bool {
        self.seen.preamble
    }

    /// Whether a finish event or `[DONE]` has come.
    pub(super) fn is_finished(&self) -> bool {
        self.seen.finished
    }

    /// Whether `[DONE]` has come: nothing that follows is read by anybody.
    pub(super) fn is_done(&self) -> bool {
        self.seen.done
    }

    /// Whether the stream stands between two events.
    pub(super) fn is_at_boundary(&self) -> bool {
        self.observer.at_boundary()
    }

    /// The status of an error event that came after the commit, once.
    pub(super) fn take_late_error(&mut self) -> Option<u16> {
        self.seen.late_error.take()
    }
}

impl Seen {
    fn take(&mut self, rules: Rules, event: &Event<'_>) {
        let frame = openai::classify(event.kind, event.data);
        self.finished |= frame == Frame::Done || openai::is_finish(event.kind, event.data);
        let counts = match frame {
            Frame::Empty => return,
            Frame::Done => {
                self.done = true;
                self.decide(Decision::Commit);
                return;
            }
            Frame::Error { status } => {
                self.error(status, event.data);
                return;
            }
            Frame::Data { .. } => !rules.content || openai::has_content(event.kind, event.data),
        };
        self.first_data |= counts;
        if matches!(frame, Frame::Data { preamble: true }) && rules.past_preamble && !self.committed {
            self.preamble = true;
        } else if counts {
            self.decide(Decision::Commit);
        }
    }

    fn error(&mut self, status: u16, data: &[u8]) {
        // An error is an end of its own; that nothing finishes after it is no second fault.
        self.finished = true;
        if self.committed {
            self.late_error.get_or_insert(status);
        } else {
            self.decide(Decision::Error {
                status,
                data: Bytes::copy_from_slice(data),
            });
        }
    }

    fn decide(&mut self, decision: Decision) {
        if !self.committed {
            // A commit is final from this event on, also for what follows it in the same chunk.
            self.committed = true;
            self.decision = Some(decision);
        }
    }
}

#[cfg(test)]
mod tests;
