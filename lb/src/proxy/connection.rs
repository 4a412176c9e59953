//! One client connection: hyper serves it, and it is ended when its client goes, stalls or stays silent.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::activity::{Activity, Expiry};
use super::body::Body;
use super::h2::Flow;
use super::headers::Peer;
use super::service::{Rules, serve};
use super::socket::{Downstream, Socket, Watched};
use super::tls::{ALPN_H2, Identity};
use super::worker::{Drain, Worker};
use super::{h2, preface};

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
        Version::Http1 => http1(served, io, drain).await,
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

async fn http1(served: Served<'_>, io: Downstream, drain: watch::Receiver<Drain>) {
    let service = service_fn(|request| served.answer(request, None));
    let mut connection = http1::Builder::new()
        // The deadlines are ours: hyper's would begin with the wait for a request.
        .header_read_timeout(None)
        .max_header_size(MAX_HEAD)
        .serve_connection(TokioIo::new(io), service);
    let over_all = drain.clone();
    let over = served
        .drive(&mut connection, http1::Connection::graceful_shutdown, drain)
        .await;
    if over == Over::Ended
        && let Some(tunnel) = served.activity.take_tunnel()
    {
        let parts = connection.into_parts();
        return Box::pin(tunnel.run(parts.io.into_inner(), parts.read_buf, over_all)).await;
    }
    let last = async {
        match over {
            // Nothing is on its way to the client: the request before, if any, was answered.
            Over::Expired(Expiry::Head) => {
                say(connection.into_parts().io.into_inner(), REQUEST_TIMEOUT).await
            }
            Over::Ended if served.activity.refused() => linger(connection.into_parts().io.into_inner()).await,
            _ => Ok(()),
        }
    };
    drop(tokio::time::timeout(LAST_WORDS, last).await);
}

/// A longer request head is answered with 431; hyper answers a target above 64 KiB with 414 before that. Bytes.
const MAX_HEAD: usize = 128 * 1024;

/// What a head that does not end in time gets; hyper itself would close without a word.
const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

async fn say(mut io: Downstream, bytes: &[u8]) -> io::Result<()> {
    io.write_all(bytes).await?;
    io.shutdown().await
}

/// Takes what a refused client is still sending, so that the answer is read before the close is seen: a close over
/// unread bytes is a reset, and that destroys what the client has not read yet (RFC 9112, 9.6).
async fn linger(mut io: Downstream) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    while io.read(&mut bytes).await? > 0 {}
    Ok(())
}

/// How long either may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How serving a connection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// lb is ending.
    Asked,
    /// It has ended by itself.
    Ended,
    /// Something took too long.
    Expired(Expiry),
    /// Its client has gone.
    Gone,
}

impl Served<'_> {
    /// Answers one request. The future is boxed, so that its room goes with the response head and not with the
    /// connection.
    pub(super) fn answer(
        &self,
        request: Request<Incoming>,
        flow: Option<Arc<Flow>>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>> {
        let busy = self.activity.begin_request(flow);
        let (worker, peer) = (Arc::clone(&self.worker), Arc::clone(&self.peer));
        Box::pin(serve(worker, self.limits.rules, peer, busy, request))
    }

    /// Drives `connection` until it has ended or has to be. Dropping it then drops the exchanges in it, and with
    /// them the upstream requests.
    pub(super) async fn drive<C, T>(
        &self,
        connection: &mut C,
        finish: fn(Pin<&mut C>),
        mut drain: watch::Receiver<Drain>,
    ) -> Over
    where
        C: Future<Output = hyper::Result<T>> + Unpin,
    {
        let over = {
            let ending = async {
                drop(drain.wait_for(|drain| *drain >= Drain::Closing).await);
                drop(tokio::time::timeout(GRACE, self.activity.begun()).await);
            };
            self.until(connection, ending).await
        };
        if over != Over::Asked {
            return over;
        }
        finish(Pin::new(&mut *connection));
        let ending = async {
            drop(drain.wait_for(|drain| *drain == Drain::Now).await);
        };
        self.until(connection, ending).await
    }

    /// Drives `connection` until it has ended, has to be, or `ending` asks for it.
    async fn until<C, T>(&self, connection: &mut C, ending: impl Future<Output = ()>) -> Over
    where
        C: Future<Output = hyper::Result<T>> + Unpin,
    {
        tokio::select! {
            biased;
            ended = connection => {
                if let Err(error) = ended {
                    tracing::debug!(client = %self.peer.ip, %error, "client connection ended");
                }
                Over::Ended
            }
            () = self.watched.gone() => Over::Gone,
            expiry = self.activity.expired(self.limits) => {
                tracing::debug!(client = %self.peer.ip, ?expiry, "client connection expired");
                Over::Expired(expiry)
            }
            () = ending => Over::Asked,
        }
    }
}

#[cfg(test)]
mod tests;
