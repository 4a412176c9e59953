//! Brings what the kernel plane finds out about a connection to whoever has it.
//!
//! ```text
//!   net:    socket() ─▶ hook ─▶ Fates::follow ─▶ Followed, with the connection in dial, exchange, body and pool
//!   plane:  Fates::phase (what is it doing?)  ─▶  Fates::apply (what is to be done) ─▶ wakes the connection's task
//! ```
//!
//! Connections are named by their socket's cookie. The plane runs on a thread of its own and holds none of them: it
//! leaves a remedy, and the connection's own task carries it out. Without a plane no connection has a fate, and none of
//! this costs anything.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use crate::policy::connection::{Phase, Remedy};

/// How long a connection that has ended is still known: the worker may see its end before the plane does.
const REMEMBERED: Duration = Duration::from_secs(1);

/// The followed connections of the process.
#[derive(Debug, Default)]
pub struct Fates(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    fates: HashMap<u64, Arc<Fate>>,
    /// Connections that have ended, and when; the oldest first.
    ended: VecDeque<(Instant, u64)>,
}

/// One connection's.
#[derive(Debug)]
struct Fate(Mutex<State>);

#[derive(Debug)]
struct State {
    phase: Phase,
    remedy: Option<Remedy>,
    /// Of the task that waits for the connection.
    waker: Option<Waker>,
}

/// Stays with a followed connection for as long as that lives.
#[derive(Debug)]
pub struct Followed {
    cookie: u64,
    fate: Arc<Fate>,
    fates: Arc<Fates>,
}

impl Fates {
    /// Knows the connection with this cookie, which is about to be made, from now on.
    #[must_use]
    pub fn follow(self: &Arc<Self>, cookie: u64) -> Followed {
        let fate = Arc::new(Fate(Mutex::new(State {
            phase: Phase::Connecting,
            remedy: None,
            waker: None,
        })));
        self.known().fates.insert(cookie, Arc::clone(&fate));
        Followed {
            cookie,
            fate,
            fates: Arc::clone(self),
        }
    }

    /// What the connection is doing, or was doing when it ended no more than a second or two ago.
    pub fn phase(&self, cookie: u64) -> Option<Phase> {
        let fate = self.get(cookie)?;
        let phase = fate.state().phase;
        Some(phase)
    }

    /// Has the remedy carried out by the connection's own task. A milder one after a stronger one changes nothing.
    pub fn apply(&self, cookie: u64, remedy: Remedy) {
        let Some(fate) = self.get(cookie) else { return };
        let waker = {
            let mut state = fate.state();
            state.remedy = state.remedy.max(Some(remedy));
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Forgets connections that ended a while ago. To be called about once a second.
    pub fn sweep(&self) {
        let now = Instant::now();
        let mut known = self.known();
        while let Some((at, cookie)) = known.ended.front().copied()
            && now.saturating_duration_since(at) >= REMEMBERED
        {
            known.ended.pop_front();
            known.fates.remove(&cookie);
        }
    }

    fn get(&self, cookie: u64) -> Option<Arc<Fate>> {
        self.known().fates.get(&cookie).cloned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none @ None => *none = Some(cx.waker().clone()),
        }
    }
}

impl Followed {
    /// From now on the connection does this.
    pub(super) fn enter(&self, phase: Phase) {
        self.fate.state().phase = phase;
    }

    /// Whether nothing speaks against using the connection again.
    pub(super) fn is_trusted(&self) -> bool {
        self.fate.state().remedy.is_none()
    }

    /// Ready once there is a remedy at least as strong as this.
    pub(super) fn poll(&self, least: Remedy, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.fate.state();
        if state.remedy >= Some(least) {
            return Poll::Ready(());
        }
        state.wait(cx);
        Poll::Pending
    }

    /// The remedy that there is by now. The task is woken whenever there is a stronger one.
    pub(super) fn remedy(&self, cx: &Context<'_>) -> Option<Remedy> {
        let mut state = self.fate.state();
        state.wait(cx);
        state.remedy
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.fate.state().waker = None;
        self.fates.known().ended.push_back((Instant::now(), self.cookie));
    }
}
