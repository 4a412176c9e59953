//! The admin listener's connections.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::answer::View;

/// Connections at a time: scrapers, probes and people, not clients.
const CONNECTIONS: usize = 128;

/// Longest time for a request's head, silence before it included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long accepting rests after it failed, most likely for want of descriptors.
const BACKOFF: Duration = Duration::from_millis(50);

/// Once in this time it is said that accepting fails.
const COMPLAINTS: Duration = Duration::from_mins(1);

/// Answers on `listener` until the task is dropped.
pub async fn serve(listener: TcpListener, view: Arc<View>) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut complained: Option<Instant> = None;
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return Ok(());
        };
        let (stream, _peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                if complained.is_none_or(|at| at.elapsed() >= COMPLAINTS) {
                    complained = Some(Instant::now());
                    tracing::warn!(%error, "admin: accepting fails");
                }
                tokio::time::sleep(BACKOFF).await;
                continue;
            }
        };
        let view = Arc::clone(&view);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let view = Arc::clone(&view);
                async move { Ok::<_, Infallible>(view.answer(&request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "admin: connection ended");
            }
            drop(slot);
        });
    }
}
