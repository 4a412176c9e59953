//! A request on its way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::task::Wake;
use std::time::Duration;

use lb::policy::time::Instant;
use lb::upstream::{Attempt, Chain, Run, Table, Tail, Waiting};

use super::server::{End, Rest};
use super::story::Asked;

/// One request and where it stands.
pub(super) struct Flight {
    pub(super) asked: Asked,
    pub(super) table: Arc<Table>,
    pub(super) chain: Arc<Chain>,
    pub(super) run: Run,
    pub(super) phase: Phase,
    /// Counts phases; an event of an earlier one has nobody to meet.
    pub(super) turn: u64,
    /// When the whole cascade has to have answered.
    pub(super) deadline: Option<Instant>,
    pub(super) way: Way,
}

/// What a request has been through, as the ledger needs it.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one request")]
pub(super) struct Way {
    /// The targets visited in this pass.
    pub(super) visited: BTreeSet<usize>,
    pub(super) visits: u32,
    pub(super) passes: u32,
    /// Tries within the visit, and where that is.
    pub(super) tries: u32,
    pub(super) at: Option<usize>,
    /// A retry has been paid for.
    pub(super) charged: Option<u64>,
    /// Whether it is waited for.
    pub(super) pauses: bool,
    /// When the provider's visit has to have answered, and how long the provider asks to be left alone.
    pub(super) visit_deadline: Option<Instant>,
    pub(super) wish: Option<Duration>,
    /// Whether the request has a slot that it waited for.
    pub(super) granted: bool,
    /// Whether it has been woken in a queue, and so has a slot.
    pub(super) rung: bool,
    /// Whether a second attempt beside this one was asked for.
    pub(super) hedged: bool,
    pub(super) committed: bool,
    /// The model that it is in.
    pub(super) model: Option<String>,
    /// Whether it takes part in the share.
    pub(super) steered: bool,
    /// The first provider that was tried.
    pub(super) began_at: Option<Box<str>>,
    pub(super) attempts: u32,
    pub(super) switches: u32,
    pub(super) latest: Option<Box<str>>,
    pub(super) first_token: Option<Duration>,
    pub(super) answered_by: Option<Box<str>>,
}

impl Way {
    /// Counts an attempt at `provider`.
    pub(super) fn count(&mut self, provider: &str) {
        self.attempts += 1;
        self.began_at.get_or_insert_with(|| provider.into());
        if self.latest.as_deref().is_some_and(|latest| latest != provider) {
            self.switches += 1;
        }
        self.latest = Some(provider.into());
    }
}

/// What a request waits for.
pub(super) enum Phase {
    /// Nothing yet.
    New,
    /// A slot.
    Queued(Waiting),
    /// A time.
    Pausing,
    /// The decisive event of an attempt, or of the first of two that run side by side.
    Trying(Vec<Trying>),
    /// The end of an answer.
    Answering(Box<Answering>),
}

pub(super) struct Trying {
    pub(super) attempt: Attempt,
    pub(super) held: Held,
    pub(super) first_data: Option<Duration>,
    /// What the server has still to say if this is committed.
    pub(super) after: Option<After>,
    /// Whether it is the second of two.
    pub(super) is_hedge: bool,
}

pub(super) struct Answering {
    pub(super) tail: Tail,
    pub(super) held: Held,
    pub(super) end: Option<End>,
}

/// What follows a commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct After {
    /// When the first event comes, if it has not.
    pub(super) first: Option<Duration>,
    pub(super) over: Duration,
    pub(super) rest: Rest,
}

/// What an open attempt has of provider and endpoint, by the ledger's own count.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Held {
    pub(super) provider: Box<str>,
    pub(super) port: u16,
    /// How often the endpoint has come to be.
    pub(super) birth: u32,
    /// Its place among the attempts of the whole run.
    pub(super) number: u64,
}

/// What became of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Fate {
    /// When it came.
    pub at: Duration,
    /// The provider at which it was begun, if it was begun at all.
    pub began_at: Option<Box<str>>,
    /// The provider whose answer it got, if it got one.
    pub answered_by: Option<Box<str>>,
    /// From its coming to the first token, if it got one.
    pub first_token: Option<Duration>,
    /// Attempts, and how many of them were on another provider than the one before.
    pub attempts: u32,
    /// Changes of provider between two attempts.
    pub switches: u32,
    /// Whether its client left before it was answered.
    pub left: bool,
}

/// Notes which requests lb has woken.
#[derive(Debug)]
pub(super) struct Bell {
    pub(super) request: u64,
    pub(super) rung: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.request);
    }
}
