//! Connections between two requests, and the counts of all of them.

mod joining;
mod shared;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::destination::Limits;
use super::fate::Followed;
use super::http2::Multiplexed;
use super::place::Peer;
use super::stream::Stream;
use crate::policy::connection::{Phase, Remedy};
use joining::Joining;
pub(super) use joining::{Ends, Told, Turn, Waiting};

/// The idle connections of one destination: for each worker a stack, newest on top, since the newest is the one that
/// the upstream is least likely to have given up.
#[derive(Debug)]
pub(super) struct Pool {
    limits: Limits,
    counts: Arc<Counts>,
    /// Raised to forbid the reuse of every connection that is busy now.
    generation: AtomicU64,
    shards: Box<[Shard]>,
}

/// A cache line pair to itself: each is one worker's.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    /// Connections of HTTP/1.1 that wait.
    idle: Mutex<Vec<Idle>>,
    /// Connections of HTTP/2, with streams or without, the newest last.
    shared: Mutex<Vec<Arc<Multiplexed>>>,
    /// Those who would have a stream on one.
    joining: Arc<Joining>,
}

#[derive(Debug, Default)]
struct Counts {
    open: AtomicUsize,
    idle: AtomicUsize,
    /// Where connections are `limited`: told of each place that comes free.
    freed: Notify,
    limited: bool,
}

impl Counts {
    fn tell(&self) {
        if self.limited {
            self.freed.notify_one();
        }
    }
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

/// A connection that is set up.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) peer: Peer,
    pub(super) born: Instant,
    pub(super) generation: u64,
    /// Where the kernel plane is told of it.
    pub(super) followed: Option<Followed>,
    pub(super) open: Open,
}

/// The right to have one connection, counted while it lives.
#[derive(Debug)]
pub(super) struct Open {
    counts: Arc<Counts>,
    generation: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
        self.counts.tell();
    }
}

impl Connection {
    pub(super) fn new(stream: Stream, peer: Peer, followed: Option<Followed>, open: Open) -> Self {
        Self {
            stream,
            peer,
            born: Instant::now(),
            generation: open.generation,
            followed,
            open,
        }
    }

    /// Notes what it does from now on.
    pub(super) fn enter(&self, phase: Phase) {
        if let Some(followed) = &self.followed {
            followed.enter(phase);
        }
    }

    /// Ready once the kernel plane asks for a remedy at least as strong as this.
    pub(super) fn poll_remedy(&self, least: Remedy, cx: &Context<'_>) -> Poll<()> {
        self.followed
            .as_ref()
            .map_or(Poll::Pending, |followed| followed.poll(least, cx))
    }

    fn is_trusted(&self) -> bool {
        self.followed.as_ref().is_none_or(Followed::is_trusted)
    }

    /// Whether nothing has come since the last response: neither an end nor bytes that no request asked for.
    ///
    /// The runtime's readiness tells, without a system call as long as nothing has come. A close that the runtime has
    /// not been told of yet is missed here; the request then fails as stale.
    fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let read = poll_fn(|cx| {
            let mut buf = ReadBuf::new(&mut byte);
            Poll::Ready(Pin::new(&mut self.stream).poll_read(cx, &mut buf).is_pending())
        });
        // Out of its budget a task is told `Pending` by every socket, and would take dead connections for live ones.
        let mut read = pin!(tokio::task::unconstrained(read));
        // No waker: an idle connection wakes nobody.
        matches!(
            read.as_mut().poll(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(true)
        )
    }
}

impl Pool {
    pub(super) fn new(limits: Limits, workers: usize) -> Self {
        let shards = std::iter::repeat_with(Shard::default)
            .take(workers.max(1))
            .collect();
        Self {
            counts: Arc::new(Counts {
                limited: limits.max_open > 0,
                ..Counts::default()
            }),
            limits,
            generation: AtomicU64::new(0),
            shards,
        }
    }

    /// An empty one with the same limits.
    pub(super) fn like(&self) -> Self {
        Self::new(self.limits, self.shards.len())
    }

    /// Takes the newest connection of `worker` that can still be used; closes those it finds dead on the way.
    pub(super) fn take(&self, worker: usize, now: Instant) -> Option<Connection> {
        loop {
            let mut idle = self.idle_of(worker).pop()?;
            self.counts.idle.fetch_sub(1, Ordering::Relaxed);
            if self.is_usable(&mut idle, now) {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection whose response has been read to its end, or closes it if a limit says so.
    pub(super) fn put(&self, worker: usize, connection: Connection) {
        let now = Instant::now();
        let mut shard = self.idle_of(worker);
        // Under the lock: a purge that raises the generation later finds the connection in the shard.
        if connection.generation != self.generation.load(Ordering::Acquire)
            || self.is_aged(&connection, now)
            || !connection.is_trusted()
        {
            return;
        }
        if self.counts.idle.fetch_add(1, Ordering::Relaxed) >= self.limits.max_idle {
            self.counts.idle.fetch_sub(1, Ordering::Relaxed);
            if shard.is_empty() {
                return;
            }
            // The oldest makes room.
            shard.remove(0);
        }
        connection.enter(Phase::Idle);
        shard.push(Idle {
            connection,
            since: now,
        });
        drop(shard);
        self.counts.tell();
    }

    pub(super) fn max_streams(&self) -> usize {
        self.limits.max_streams.max(1)
    }

    /// Ready once a connection has come free or was closed since; without a limit, never.
    pub(super) fn freed(&self) -> Told<'_> {
        joining::listen(&self.counts.freed)
    }

    /// Passes on what was told by [`Self::freed`].
    pub(super) fn tell_freed(&self) {
        self.counts.tell();
    }

    /// The right to open a connection, where there is room for one.
    pub(super) fn reserve_unless_full(&self) -> Option<Open> {
        let max = if self.limits.max_open == 0 {
            usize::MAX
        } else {
            self.limits.max_open
        };
        if self.counts.open.fetch_add(1, Ordering::Relaxed) >= max {
            self.counts.open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let generation = self.generation.load(Ordering::Acquire);
        Some(Open {
            counts: Arc::clone(&self.counts),
            generation,
        })
    }

    /// The right to open a connection. At the limit an idle one, of whatever worker, makes room.
    pub(super) fn reserve(&self) -> Option<Open> {
        loop {
            if let Some(open) = self.reserve_unless_full() {
                return Some(open);
            }
            if !self.evict() {
                return None;
            }
        }
    }

    /// Closes idle connections to other peers than `keeps` takes, and sees to it that no busy connection is kept later.
    pub(super) fn retain_peers(&self, keeps: impl Fn(&Peer) -> bool) {
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        self.retain(|idle| {
            idle.connection.generation = generation;
            keeps(&idle.connection.peer)
        });
        self.retain_shared(|shared| {
            // One that carries streams goes on being used: its peer stays.
            shared.set_generation(generation);
            keeps(shared.peer())
        });
    }

    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.retain(|idle| self.is_usable(idle, now));
        self.retain_shared(|shared| self.is_shareable(shared, now));
    }

    pub(super) fn open(&self) -> usize {
        self.counts.open.load(Ordering::Relaxed)
    }

    pub(super) fn idle(&self) -> usize {
        self.counts.idle.load(Ordering::Relaxed) + self.idle_shared()
    }

    fn retain(&self, mut keep: impl FnMut(&mut Idle) -> bool) {
        for worker in 0..self.shards.len() {
            let mut shard = self.idle_of(worker);
            let before = shard.len();
            shard.retain_mut(&mut keep);
            self.counts
                .idle
                .fetch_sub(before - shard.len(), Ordering::Relaxed);
        }
    }

    /// Closes the oldest idle connection of the first worker that has one.
    fn evict(&self) -> bool {
        (0..self.shards.len()).any(|worker| {
            let mut shard = self.idle_of(worker);
            if shard.is_empty() {
                drop(shard);
                return self.evict_shared(worker);
            }
            shard.remove(0);
            self.counts.idle.fetch_sub(1, Ordering::Relaxed);
            true
        })
    }

    fn is_usable(&self, idle: &mut Idle, now: Instant) -> bool {
        now.saturating_duration_since(idle.since) < self.limits.idle_timeout
            && !self.is_aged(&idle.connection, now)
            && idle.connection.is_trusted()
            && idle.connection.is_quiet()
    }

    fn is_aged(&self, connection: &Connection, now: Instant) -> bool {
        self.limits
            .max_age
            .is_some_and(|max| now.saturating_duration_since(connection.born) >= max)
    }

    fn idle_of(&self, worker: usize) -> MutexGuard<'_, Vec<Idle>> {
        lock(&self.shard(worker).idle)
    }

    /// A worker beyond the ones that were announced shares the shard of another.
    fn shard(&self, worker: usize) -> &Shard {
        &self.shards[worker % self.shards.len()]
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
