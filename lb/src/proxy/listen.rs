//! Where connections come in: each worker accepts on descriptors of its own.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use super::bound::{Bound, Front};
use super::headers::Peer;
use super::slots::Slot;
use super::sources::Counted;
use super::worker::{Drain, Worker};
use super::{connection, proxy_protocol};
use crate::config::ProxyProtocol;

/// Accepts on the worker's socket until accepting is over.
pub async fn serve(worker: Arc<Worker>, bound: Arc<Bound>, socket: std::net::TcpListener) -> io::Result<()> {
    let listener = TcpListener::from_std(socket)?;
    let mut drain = bound.drain();
    let mut complained: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            biased;
            // Its sender is in `bound`, so it cannot close.
            _ = drain.wait_for(|drain| *drain >= Drain::Closing) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(accepted) => {
                let slot = tokio::select! {
                    biased;
                    slot = slot(&worker, &bound) => slot,
                    // It has been accepted, so it is served as those are that still wait to be.
                    _ = drain.wait_for(|drain| *drain >= Drain::Closing) => bound.slots.take_beyond(),
                };
                begin(&worker, &bound, slot, accepted);
            }
            // One that died in the queue.
            Err(error) if is_transient(&error) => {}
            // Most likely out of descriptors: what is open is served on, and accepting again at once would spin.
            Err(error) => {
                if complained.is_none_or(|at| at.elapsed() >= COMPLAINTS) {
                    complained = Some(Instant::now());
                    tracing::warn!(listener = %bound.front.load().name, %error, "accepting fails");
                }
                tokio::time::sleep(BACKOFF).await;
            }
        }
    }
    // The kernel has accepted these, and closing the socket would reset them.
    while let Poll::Ready(Ok(accepted)) = poll_fn(|cx| Poll::Ready(listener.poll_accept(cx))).await {
        begin(&worker, &bound, bound.slots.take_beyond(), accepted);
    }
    Ok(())
}

/// Gives an accepted connection a task of its own, or closes it where its source may not have it.
fn begin(worker: &Arc<Worker>, bound: &Arc<Bound>, slot: Slot, (stream, address): (TcpStream, SocketAddr)) {
    let ip = address.ip().to_canonical();
    let front = bound.front.load_full();
    if let Err(error) = stream.set_nodelay(true) {
        // Only latency is at stake.
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let open = Open::new(worker);
    // The listener is what tells the connection of its end.
    let (worker, bound, drain) = (Arc::clone(worker), Arc::clone(bound), bound.drain());
    if front.proxy_protocol != ProxyProtocol::Off && is_trusted(&worker, ip) {
        tokio::spawn(async move {
            // Boxed, so that its room goes when the client is known.
            let introduced = Box::pin(introduce(&worker, &front, stream, ip, drain.clone())).await;
            if let Some((stream, client)) = introduced
                && let Some(counted) = admit(&worker, &front, client)
            {
                run(worker, &front, stream, (client, counted), drain).await;
            }
            drop((slot, open, bound));
        });
    } else if let Some(counted) = admit(&worker, &front, ip) {
        tokio::spawn(async move {
            run(worker, &front, stream, (ip, counted), drain).await;
            drop((slot, open, bound));
        });
    }
}

/// Whom a proxy in front says that the connection is from; `None` where it does not say.
async fn introduce(
    worker: &Worker,
    front: &Front,
    mut stream: TcpStream,
    proxy: IpAddr,
    mut drain: watch::Receiver<Drain>,
) -> Option<(TcpStream, IpAddr)> {
    let limit = front.terms.limits.first_byte_timeout;
    let said = tokio::select! {
        biased;
        said = proxy_protocol::read(&mut stream, front.proxy_protocol, limit) => said,
        () = connection::closing(&mut drain) => return None,
    };
    match said {
        Ok(client) => Some((stream, client.unwrap_or(proxy))),
        Err(error) => {
            worker.shared.metrics.turned_away.inc();
            tracing::debug!(%proxy, %error, "connection turned away");
            None
        }
    }
}

/// Counts a connection among its source's, unless its source may not have it.
fn admit(worker: &Worker, front: &Front, ip: IpAddr) -> Option<Counted> {
    match front.sources.admit(ip) {
        Ok(counted) => Some(counted),
        Err(why) => {
            worker.shared.metrics.turned_away.inc();
            tracing::debug!(%ip, ?why, "connection turned away");
            None
        }
    }
}

async fn run(
    worker: Arc<Worker>,
    front: &Front,
    stream: TcpStream,
    (ip, counted): (IpAddr, Counted),
    drain: watch::Receiver<Drain>,
) {
    let peer = Arc::new(Peer::new(ip, is_trusted(&worker, ip), front.terms.tls.is_some()));
    let terms = Arc::clone(&front.terms);
    connection::run(worker, &terms, peer, stream, drain).await;
    drop(counted);
}

fn is_trusted(worker: &Worker, ip: IpAddr) -> bool {
    let live = worker.shared.live.load();
    let mut proxies = live.server.trusted_proxies.iter();
    proxies.any(|range| range.contains(ip))
}

/// A place for a connection that is there, and not before: one kept for what may come could keep it from another worker's.
async fn slot(worker: &Worker, bound: &Bound) -> Slot {
    if let Some(slot) = bound.slots.try_take() {
        return slot;
    }
    worker.shared.metrics.accept_waits.inc();
    bound.slots.take().await
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

/// How long accepting rests after it failed.
const BACKOFF: Duration = Duration::from_millis(50);

/// Once in this time it is said that accepting fails: near the limit every connection that ends lets one more in.
const COMPLAINTS: Duration = Duration::from_mins(1);

/// Counts an open connection.
struct Open(Arc<Worker>);

impl Open {
    fn new(worker: &Arc<Worker>) -> Self {
        worker.shared.metrics.connections.inc();
        Self(Arc::clone(worker))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.shared.metrics.connections.dec();
    }
}
