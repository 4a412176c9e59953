//! What moves on a client connection, and since when it does not.
//!
//! A connection's phase is kept here, whichever protocol it speaks, and one timer watches over all of them.
//!
//! ```text
//!   New ──bytes──▶ Head ──request──▶ Busy ──last body gone──▶ Idle
//!                    ▲                                         │
//!                    └──────────────────bytes──────────────────┘
//! ```
//!
//! Over HTTP/2 bytes alone change nothing (pings, window updates): there a connection is New until its first request
//! and Idle between requests, however much is said in between.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::aside::Aside;
use super::connection::{Limits, Version};
use super::h2::Flow;
use super::http1::Ahead;
use super::tunnel::Tunnel;

/// One connection's movement. Written by its socket and its requests, read by its one timer. The atomics are there
/// because requests over HTTP/2 are tasks of their own; all of them run on one thread.
#[derive(Debug)]
pub(super) struct Activity {
    origin: Instant,
    phase: AtomicU8,
    /// Nanoseconds after `origin` at which the phase began.
    since: AtomicU64,
    /// The same for the write that is not taken, plus one; 0 while none waits.
    stalled: AtomicU64,
    /// Requests whose response is not over.
    open: AtomicU32,
    /// When the requests that their client gave up before their answer began will be forgiven; nanoseconds after
    /// `origin`.
    forgiven: AtomicU64,
    /// What was made of them.
    worn: AtomicU8,
    /// Whether bytes are nothing by themselves, as in HTTP/2.
    multiplexed: AtomicBool,
    /// Whether its present request is to be the last.
    finishing: AtomicBool,
    /// What the connection goes on as once its last request is answered.
    tunnel: Mutex<Option<Box<Tunnel>>>,
    /// How the client is told something ahead of its answer.
    ahead: OnceLock<Ahead>,
}

const NEW: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;
const IDLE: u8 = 3;

/// Requests that a client may give up unanswered on one connection, beyond the rate at which they are forgiven. Each has
/// cost an attempt upstream, so a client that opens and resets without end (CVE-2023-44487) is sent elsewhere, and cut
/// if it goes on with as many more. A gateway with many users gives up a few now and then for as long as it lives.
const MAX_ABANDONED: u32 = 1000;

/// How long it takes for one of them to be forgiven: 20 a second.
const FORGIVING: Duration = Duration::from_millis(50);

/// What `worn` says.
const SOUND: u8 = 0;
const WORN: u8 = 1;
const CUT: u8 = 2;

/// Why a connection is ended although its client is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Request after request was given up.
    Abandoned,
    /// Nothing came after the connection was made.
    FirstByte,
    /// A request head was begun and not ended.
    Head,
    /// Nothing came after the last response.
    Idle,
    /// The client takes nothing.
    Stalled,
}

/// Marks its connection busy while a request is on it.
#[derive(Debug)]
pub(super) struct Busy {
    activity: Arc<Activity>,
    answered: bool,
    /// Of its stream, where it has one of its own.
    flow: Option<Arc<Flow>>,
}

impl Activity {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            origin: now,
            phase: AtomicU8::new(NEW),
            since: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
            open: AtomicU32::new(0),
            forgiven: AtomicU64::new(0),
            worn: AtomicU8::new(SOUND),
            multiplexed: AtomicBool::new(false),
            finishing: AtomicBool::new(false),
            tunnel: Mutex::new(None),
            ahead: OnceLock::new(),
        }
    }

    /// What the connection goes on as once its last request is answered.
    pub(super) fn take_tunnel(&self) -> Option<Box<Tunnel>> {
        self.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The client can be told something ahead of an answer.
    pub(super) fn speaks_by(&self, ahead: Ahead) {
        self.ahead.get_or_init(|| ahead);
    }

    /// It is known what is spoken: the wait for the first byte begins here, unless it was seen on the way; over HTTP/2
    /// the wait for the first request.
    pub(super) fn opened(&self, version: Version) {
        let multiplexed = version == Version::Http2;
        self.multiplexed.store(multiplexed, Ordering::Relaxed);
        if multiplexed || self.phase.load(Ordering::Relaxed) == NEW {
            self.enter(NEW);
        }
    }

    /// A request's head is there; the connection is busy until the guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>, flow: Option<Arc<Flow>>) -> Busy {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.phase.store(BUSY, Ordering::Relaxed);
        Busy {
            activity: Arc::clone(self),
            answered: false,
            flow,
        }
    }

    /// Bytes came.
    pub(super) fn read(&self) {
        if self.multiplexed.load(Ordering::Relaxed) {
            return;
        }
        if matches!(self.phase.load(Ordering::Relaxed), NEW | IDLE) {
            self.enter(HEAD);
        }
    }

    /// The present request is to be the last. To be called by the task that drives the connection's socket.
    pub(super) fn finish(&self) {
        self.finishing.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finishing.load(Ordering::Relaxed)
    }

    /// A write was not taken.
    pub(super) fn stalled(&self, now: Instant) {
        let at = self.nanos(now) + 1;
        // Only the first of a stall sets it: progress is what clears it.
        let _already = self
            .stalled
            .compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A write was taken.
    pub(super) fn wrote(&self) {
        self.stalled.store(0, Ordering::Relaxed);
    }

    /// Resolves once a request has begun to come. Polled as [`Self::expired`] is.
    pub(super) async fn begun(&self) {
        poll_fn(|_| match self.phase.load(Ordering::Relaxed) {
            NEW => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
    }

    /// Whether so many requests were given up that the client is to take another connection. What other tasks bring
    /// about is seen as [`Self::expired`] sees it.
    pub(super) fn is_worn(&self) -> bool {
        self.worn.load(Ordering::Relaxed) != SOUND
    }

    /// A request was given up before its answer began.
    fn abandoned(&self, now: Instant) {
        let now = self.nanos(now);
        let one = nanos(FORGIVING);
        let forgiven = self.forgiven.load(Ordering::Relaxed).max(now) + one;
        self.forgiven.store(forgiven, Ordering::Relaxed);
        let most = u64::from(MAX_ABANDONED) * one;
        if forgiven - now > 2 * most {
            self.worn.store(CUT, Ordering::Relaxed);
        } else if forgiven - now > most {
            self.worn.fetch_max(WORN, Ordering::Relaxed);
        }
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Resolves when the connection has been in one state for longer than `limits` allow.
    ///
    /// To be polled by the task that drives the connection's socket: what that brings about is seen in the same poll,
    /// and the timer is moved only where the new phase ends sooner. What other tasks bring about is seen when the
    /// timer fires, which it does after `idle_timeout` at the latest.
    pub(super) async fn expired(&self, limits: &Limits) -> Expiry {
        let mut timer = pin!(sleep_until(self.horizon(limits, Instant::now())));
        let mut aside = Aside::default();
        poll_fn(|cx| {
            if self.worn.load(Ordering::Relaxed) == CUT {
                return Poll::Ready(Expiry::Abandoned);
            }
            if let Some((due, _)) = self.due(limits)
                && due < timer.deadline()
            {
                timer.as_mut().reset(due);
                aside.ring();
            }
            while aside.poll(cx, timer.as_mut()).is_ready() {
                let now = Instant::now();
                match self.due(limits) {
                    Some((due, expiry)) if due <= now => return Poll::Ready(expiry),
                    _ => timer.as_mut().reset(self.horizon(limits, now)),
                }
                aside.ring();
            }
            Poll::Pending
        })
        .await
    }

    /// When to look again.
    fn horizon(&self, limits: &Limits, now: Instant) -> Instant {
        self.due(limits)
            .map_or_else(|| now + limits.idle_timeout, |(due, _)| due)
    }

    /// When the connection has to be ended, and why. Nothing limits a request as such.
    fn due(&self, limits: &Limits) -> Option<(Instant, Expiry)> {
        let stalled = self.stalled.load(Ordering::Relaxed);
        if stalled > 0 {
            return Some((self.at(stalled - 1) + limits.write_timeout, Expiry::Stalled));
        }
        let since = self.at(self.since.load(Ordering::Relaxed));
        match self.phase.load(Ordering::Relaxed) {
            NEW => Some((since + limits.first_byte_timeout, Expiry::FirstByte)),
            HEAD => Some((since + limits.header_timeout, Expiry::Head)),
            IDLE => Some((since + limits.idle_timeout, Expiry::Idle)),
            _ => None,
        }
    }

    fn enter(&self, phase: u8) {
        self.since.store(self.nanos(Instant::now()), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    fn at(&self, nanos: u64) -> Instant {
        self.origin + Duration::from_nanos(nanos)
    }

    fn nanos(&self, now: Instant) -> u64 {
        nanos(now.duration_since(self.origin))
    }
}

fn nanos(span: Duration) -> u64 {
    // Centuries fit, with room for what is added to it.
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX / 2)
}

impl Busy {
    /// How the client is told something ahead of its answer, if it can be.
    pub(super) fn ahead(&self) -> Option<&Ahead> {
        self.activity.ahead.get()
    }

    /// The connection is to be switched to another protocol.
    pub(super) fn switch(&self, tunnel: Box<Tunnel>) {
        *self
            .activity
            .tunnel
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
    }

    /// The request's answer is ready.
    pub(super) fn answered(&mut self) {
        self.answered = true;
        self.gave();
    }

    /// Something was given for the client to take.
    pub(super) fn gave(&self) {
        if let Some(flow) = &self.flow {
            flow.gave();
        }
    }

    /// The client has taken what it was given.
    pub(super) fn asked(&self) {
        if let Some(flow) = &self.flow {
            flow.asked();
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if !self.answered {
            self.activity.abandoned(Instant::now());
        }
        if self.activity.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.activity.enter(IDLE);
        }
    }
}

#[cfg(test)]
mod tests;
