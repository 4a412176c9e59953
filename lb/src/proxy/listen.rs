//! Where connections come in: each worker accepts on descriptors of its own.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::bound::{Bound, Front};
use super::connection;
use super::headers::Peer;
use super::slots::Slot;
use super::worker::{Drain, Worker};

/// Accepts on the worker's socket until accepting is over.
pub async fn serve(worker: Arc<Worker>, bound: Arc<Bound>, socket: std::net::TcpListener) -> io::Result<()> {
    let listener = TcpListener::from_std(socket)?;
    let mut drain = bound.drain();
    let mut failing = false;
    loop {
        let next = async {
            let slot = slot(&worker, &bound).await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            // Its sender is in `bound`, so it cannot close.
            _ = drain.wait_for(|drain| *drain >= Drain::Closing) => break,
            next = next => next,
        };
        match accepted {
            Ok(accepted) => {
                failing = false;
                begin(&worker, &bound, slot, accepted);
            }
            // One that died in the queue.
            Err(error) if is_transient(&error) => {}
            // Most likely out of descriptors: what is open is served on, and accepting again at once would spin.
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
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
    let front = bound.front.load();
    let counted = match front.sources.admit(ip) {
        Ok(counted) => counted,
        Err(why) => {
            worker.shared.metrics.turned_away.inc();
            return tracing::debug!(%ip, ?why, "connection turned away");
        }
    };
    if let Err(error) = stream.set_nodelay(true) {
        // Only latency is at stake.
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let peer = peer(worker, &front, ip);
    let open = Open::new(worker);
    let (worker, terms) = (Arc::clone(worker), Arc::clone(&front.terms));
    // The listener is what tells the connection of its end.
    let (bound, drain) = (Arc::clone(bound), bound.drain());
    tokio::spawn(async move {
        connection::run(worker, &terms, peer, stream, drain).await;
        drop((slot, counted, open, bound));
    });
}

fn peer(worker: &Worker, front: &Front, ip: IpAddr) -> Peer {
    let live = worker.shared.live.load();
    let mut proxies = live.server.trusted_proxies.iter();
    let trusted = proxies.any(|range| range.contains(ip));
    Peer::new(ip, trusted, front.terms.tls.is_some())
}

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
