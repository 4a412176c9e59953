//! What a request goes over, where no connection of its own was idle.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::Client;
use crate::net::destination::Expected;
use crate::net::dial::dial;
use crate::net::http2::{Multiplexed, Slot};
use crate::net::pool::{Connection, Open, Told, Turn, Waiting};
use crate::net::{Destination, Error};

/// What a request asks of its connection.
#[derive(Clone, Copy)]
pub(super) struct Needs {
    /// None that was there before, shared or not.
    pub(super) fresh: bool,
    /// If it is for this request alone, none that was there before.
    pub(super) untouched: bool,
    pub(super) http1: bool,
}

/// What a request goes over, if not over an idle connection.
pub(super) enum Link {
    /// A connection for it alone, and since when if it was idle.
    Own(Connection, Option<Instant>),
    /// A place among others.
    Shared { slot: Slot, reused: bool },
}

/// What was waited for.
enum Free {
    Connection(Connection),
    Place(Open),
}

/// What came of waiting for a connection that others may share.
enum Joined<'a> {
    /// A place on one that is there.
    Shared(Slot),
    /// It is to make one itself; whether it had waited for that.
    Make {
        turn: Turn<'a>,
        open: Open,
        waited: bool,
    },
    /// There are none to share: the upstream speaks HTTP/1.1.
    Http1,
}

impl Client {
    /// A place on a connection of HTTP/2, or a new connection of HTTP/1.1.
    pub(super) async fn connect(
        &self,
        destination: &Arc<Destination>,
        needs: Needs,
        limit: Duration,
    ) -> Result<Link, Error> {
        let begun = Instant::now();
        if !needs.http1
            && destination.expected() != Expected::Http1
            && let Some(link) = self.join(destination, needs.fresh, begun, limit).await?
        {
            return Ok(link);
        }
        let left = limit.saturating_sub(begun.elapsed());
        let open = match self.place(destination, needs.untouched, left).await? {
            Free::Connection(connection) => return Ok(Link::Own(connection, Some(Instant::now()))),
            Free::Place(open) => open,
        };
        let left = limit.saturating_sub(begun.elapsed());
        let connection = dial(destination, self.hook.as_ref(), open, needs.http1, left).await?;
        Ok(Link::Own(connection, None))
    }

    /// As [`Self::connect`], where others may share what is made; `None` if it turns out that they may not.
    async fn join(
        &self,
        destination: &Arc<Destination>,
        fresh: bool,
        begun: Instant,
        limit: Duration,
    ) -> Result<Option<Link>, Error> {
        let pool = &destination.pool;
        let after = fresh.then_some(begun);
        let shared = |slot| Link::Shared { slot, reused: !fresh };
        if let Some(slot) = pool.take_shared(self.worker, Instant::now(), after) {
            return Ok(Some(shared(slot)));
        }
        let waiting = pool.wait(self.worker);
        let mut full = false;
        let joined = timeout(limit, self.joined(destination, after, &waiting, &mut full)).await;
        // Time that ran out says something of the upstream only if it gave nobody a connection in that time.
        let local = || pool.has_made_since(self.worker, begun);
        let (turn, open, waited) = match joined {
            Ok(Joined::Shared(slot)) => return Ok(Some(shared(slot))),
            Ok(Joined::Http1) => return Ok(None),
            Ok(Joined::Make { turn, open, waited }) => (turn, open, waited),
            Err(_elapsed) if full || local() => return Err(Error::Full),
            Err(_elapsed) => return Err(Error::ConnectTimeout),
        };
        let left = limit.saturating_sub(begun.elapsed());
        let connection = match dial(destination, self.hook.as_ref(), open, false, left).await {
            Err(Error::ConnectTimeout) if waited && local() => return Err(Error::Full),
            dialled => dialled?,
        };
        let http2 = destination.is_http2_only() || connection.stream.agreed_on_http2();
        destination.learn(http2);
        if !http2 {
            return Ok(Some(Link::Own(connection, None)));
        }
        let made = Multiplexed::start(connection, pool.max_streams(), pool.ends(self.worker)).await?;
        // Before the others, who take what is left of it.
        let slot = made.slot().ok_or(Error::Full)?;
        pool.share(self.worker, &made);
        drop(turn);
        Ok(Some(Link::Shared { slot, reused: false }))
    }

    /// Waits for a stream to come free, or for the right to make a connection.
    ///
    /// No more are made at once than those who wait can fill, so that a burst of requests does not make a connection
    /// each where one would do; before it is known whether they can be shared, one. `full` tells whether the limit on
    /// connections is what it waits at.
    async fn joined<'a>(
        &self,
        destination: &'a Destination,
        after: Option<Instant>,
        waiting: &Waiting<'a>,
        full: &mut bool,
    ) -> Joined<'a> {
        let pool = &destination.pool;
        let (mut waited, mut told) = (false, false);
        loop {
            // Before the look, so that what comes free between the look and the wait is not missed.
            let mut changed = waiting.changed(after.is_none());
            let (joined, mut freed) = self.look(destination, after, waiting);
            // A place of which it was told is somebody else's where it has no use for it.
            if told && freed.is_none() {
                pool.tell_freed();
            }
            match joined {
                Some(Joined::Make { turn, open, .. }) => return Joined::Make { turn, open, waited },
                Some(joined) => return joined,
                None => {}
            }
            *full = freed.is_some();
            waited = true;
            told = std::future::poll_fn(|cx| {
                if changed.poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                let freed = freed.as_mut().map(|freed| freed.as_mut().poll(cx));
                freed.map_or(Poll::Pending, |freed| freed.map(|()| true))
            })
            .await;
        }
    }

    /// What there is to join or make now, and where it would make one, what tells of room for that.
    fn look<'a>(
        &self,
        destination: &'a Destination,
        after: Option<Instant>,
        waiting: &Waiting<'a>,
    ) -> (Option<Joined<'a>>, Option<Told<'a>>) {
        let pool = &destination.pool;
        if let Some(slot) = pool.take_shared(self.worker, Instant::now(), after) {
            return (Some(Joined::Shared(slot)), None);
        }
        let alone = match destination.expected() {
            Expected::Http1 => return (Some(Joined::Http1), None),
            Expected::Http2 => false,
            Expected::Unknown => true,
        };
        let Some(turn) = waiting.turn(pool.streams_each(self.worker), alone) else {
            return (None, None);
        };
        let freed = pool.freed();
        let Some(open) = pool.reserve() else {
            turn.give_back();
            return (None, Some(freed));
        };
        let waited = false;
        (Some(Joined::Make { turn, open, waited }), Some(freed))
    }

    /// The right to open a connection. At the limit it is waited for, as long as connecting may take: a connection that
    /// comes free in time is as good as one that takes that long to be made, and if it is this worker's it is taken
    /// itself, unless it has to be an `untouched` one.
    async fn place(
        &self,
        destination: &Destination,
        untouched: bool,
        limit: Duration,
    ) -> Result<Free, Error> {
        if let Some(open) = destination.pool.reserve_unless_full() {
            return Ok(Free::Place(open));
        }
        let waiting = async {
            loop {
                // Before the look, so that what comes free between the look and the wait is not missed.
                let freed = destination.pool.freed();
                let idle = (!untouched).then(|| destination.pool.take(self.worker, Instant::now()));
                if let Some(connection) = idle.flatten() {
                    return Free::Connection(connection);
                }
                if let Some(open) = destination.pool.reserve() {
                    return Free::Place(open);
                }
                freed.await;
            }
        };
        timeout(limit, waiting).await.map_err(|_elapsed| Error::Full)
    }
}
