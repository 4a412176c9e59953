//! One client connection: what is spoken on it, and that it is ended when its client goes, stalls or stays silent.

use std::fmt::Display;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::Request;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::activity::{Activity, Expiry};
use super::answering::Answering;
use super::aside::Aside;
use super::h2::Flow;
use super::headers::Peer;
use super::incoming::Incoming;
use super::service::{Job, Rules};
use super::socket::{Downstream, Socket, Watched};
use super::tls::{ALPN_H2, Identity};
use super::worker::{Drain, Worker};
use super::{h2, http1, preface};
use crate::wire::http1::Present;

/// The deadlines of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) rules: Rules,
    /// First byte of a request to the end of its head.
    pub(super) header_timeout: Duration,
    /// Accept to the end of the handshake, and that to the first byte.
    pub(super) first_byte_timeout: Duration,
    /// Between two requests.
    pub(super) idle_timeout: Duration,
    /// Without progress in writing.
    pub(super) write_timeout: Duration,
}

/// What a listener speaks.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) limits: Limits,
    pub(super) http2: bool,
    pub(super) tls: Option<Arc<Identity>>,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// A connection as far as its requests are concerned.
pub(super) struct Served<'a> {
    pub(super) worker: Arc<Worker>,
    pub(super) limits: &'a Limits,
    pub(super) peer: Arc<Peer>,
    pub(super) activity: Arc<Activity>,
    pub(super) watched: Watched,
}

/// Serves `stream` until it ends; `drain` is its listener's, which the caller holds.
pub(super) async fn run(
    worker: Arc<Worker>,
    terms: &Terms,
    peer: Arc<Peer>,
    stream: TcpStream,
    mut drain: watch::Receiver<Drain>,
) {
    let activity = Arc::new(Activity::new(Instant::now()));
    // Boxed, so that a handshake's state goes when it is over.
    let opening = Box::pin(open(terms, stream, &activity));
    let opened = tokio::select! {
        biased;
        opened = opening => opened,
        () = closing(&mut drain) => return,
    };
    let (io, watched, version) = match opened {
        Ok(opened) => opened,
        Err(error) => return tracing::debug!(client = %peer.ip, %error, "client connection not opened"),
    };
    activity.opened(version);
    let served = Served {
        worker,
        limits: &terms.limits,
        peer,
        activity,
        watched,
    };
    match version {
        Version::Http1 => http1::serve(served, io, drain).await,
        // Boxed, so that connections of HTTP/1 are no larger for it.
        Version::Http2 => Box::pin(h2::serve(served, io, drain)).await,
    }
}

/// Finds out what is spoken: TLS by its handshake, else by the first bytes where there is a choice.
async fn open(
    terms: &Terms,
    stream: TcpStream,
    activity: &Arc<Activity>,
) -> io::Result<(Downstream, Watched, Version)> {
    let Some(identity) = &terms.tls else {
        let version = if terms.http2 {
            preface::spoken(&stream, activity, &terms.limits).await?
        } else {
            Version::Http1
        };
        let (socket, watched) = Socket::new(stream, activity);
        return Ok((Downstream::Plain(socket), watched, version));
    };
    let (socket, watched) = Socket::new(stream, activity);
    let handshake = identity.acceptor().accept(socket);
    let stream = tokio::time::timeout(terms.limits.first_byte_timeout, handshake).await??;
    let version = match stream.get_ref().1.alpn_protocol() {
        Some(ALPN_H2) => Version::Http2,
        _ => Version::Http1,
    };
    Ok((Downstream::Tls(Box::new(stream)), watched, version))
}

/// Resolves [`GRACE`] after the end of accepting, or when all is being cut.
pub(super) async fn closing(drain: &mut watch::Receiver<Drain>) {
    // The sender is in the listener, which the caller holds.
    drop(drain.wait_for(|drain| *drain >= Drain::Closing).await);
    let now = drain.wait_for(|drain| *drain == Drain::Now);
    drop(tokio::time::timeout(GRACE, now).await);
}

/// How long a connection that was made just before the end of accepting may take to send its first request: it was
/// promised an answer when it was accepted.
const GRACE: Duration = Duration::from_secs(1);

/// Why a connection is ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// lb is ending, or wants its client to take another one.
    Asked,
    /// Something took too long.
    Expired(Expiry),
    /// Its client has gone.
    Gone,
}

impl Served<'_> {
    /// Answers one request.
    pub(super) fn answer(
        &self,
        (request, present): (Request<Incoming>, Present),
        flow: Option<Arc<Flow>>,
    ) -> Answering {
        Answering::new(Job {
            worker: Arc::clone(&self.worker),
            rules: self.limits.rules,
            peer: Arc::clone(&self.peer),
            busy: self.activity.begin_request(flow),
            request: request.map(Some),
            present,
        })
    }

    /// Drives `connection` until it has ended or has to be; `finish` tells it that its present requests are the last.
    /// Dropping it then drops the exchanges in it, and with them the upstream requests.
    pub(super) async fn drive<C, T, E>(
        &self,
        mut connection: Pin<&mut C>,
        finish: impl FnOnce(Pin<&mut C>),
        mut drain: watch::Receiver<Drain>,
    ) -> Result<C::Output, Over>
    where
        C: Future<Output = Result<T, E>>,
        E: Display,
    {
        let closing = async {
            drop(drain.wait_for(|drain| *drain >= Drain::Closing).await);
        };
        // Its client is to take another connection.
        let worn = poll_fn(|_| {
            if self.activity.is_worn() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        let mut over = self.until(connection.as_mut(), pin!(closing), worn).await;
        if matches!(over, Err(Over::Asked)) && !self.activity.is_worn() {
            let promised = async {
                drop(tokio::time::timeout(GRACE, self.activity.begun()).await);
            };
            over = self.until(connection.as_mut(), pin!(pending()), promised).await;
        }
        if !matches!(over, Err(Over::Asked)) {
            return over;
        }
        finish(connection.as_mut());
        let now = async {
            drop(drain.wait_for(|drain| *drain == Drain::Now).await);
        };
        self.until(connection, pin!(now), pending()).await
    }

    /// Drives `connection` until it has ended or has to be, or until lb is ending: either because `told` wakes it, or
    /// by `seen`, which is looked at each time.
    async fn until<C, T, E>(
        &self,
        mut connection: Pin<&mut C>,
        mut told: Pin<&mut impl Future<Output = ()>>,
        seen: impl Future<Output = ()>,
    ) -> Result<C::Output, Over>
    where
        C: Future<Output = Result<T, E>>,
        E: Display,
    {
        let mut gone = pin!(self.watched.gone());
        let outside = poll_fn(|cx| match gone.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Over::Gone),
            Poll::Pending => told.as_mut().poll(cx).map(|()| Over::Asked),
        });
        let (mut outside, mut aside) = (pin!(outside), Aside::default());
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = &ended {
                    tracing::debug!(client = %self.peer.ip, %error, "client connection ended");
                }
                Ok(ended)
            }
            over = poll_fn(|cx| aside.poll(cx, outside.as_mut())) => Err(over),
            expiry = self.activity.expired(self.limits) => {
                tracing::debug!(client = %self.peer.ip, ?expiry, "client connection expired");
                Err(Over::Expired(expiry))
            }
            () = seen => Err(Over::Asked),
        }
    }
}

#[cfg(test)]
mod tests;
