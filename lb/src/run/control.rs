//! The control thread: what must go on however busy the workers are.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::kernel::Kernel;
use super::{StartError, certificates, dns};
use crate::admin::{self, View};
use crate::config::Config;
use crate::proxy::{Drain, Identity, Shared};

/// How often idle upstream connections are looked at: a model server's close is noticed within this time.
const SWEEP: Duration = Duration::from_secs(1);

/// Binds the admin address.
pub(super) fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map_err(|source| StartError::bind("admin", address, source))
}

/// Starts the thread; it ends when the drain is over.
pub(super) fn start(
    shared: Arc<Shared>,
    config: &Config,
    listener: TcpListener,
    view: Arc<View>,
    identities: Vec<(String, Arc<Identity>)>,
    kernel: Arc<Kernel>,
) -> Result<JoinHandle<()>, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Thread)?;
    let config = config.clone();
    let body = move || {
        runtime.block_on(async move {
            dns::start(&shared, &config, &kernel);
            tokio::spawn(sweep(Arc::clone(&shared)));
            tokio::spawn(certificates::keep_fresh(identities));
            let serving = tokio::spawn(async move { serve(listener, view).await });
            // Whoever asks is answered until the very end: that is when operators look.
            let mut drain = shared.drain.subscribe();
            // Its sender is in `shared`, so it cannot close.
            drop(drain.wait_for(|drain| *drain == Drain::Now).await);
            serving.abort();
        });
    };
    std::thread::Builder::new()
        .name("lb-control".to_owned())
        .spawn(body)
        .map_err(StartError::Thread)
}

async fn serve(listener: TcpListener, view: Arc<View>) {
    let served: io::Result<()> =
        async { admin::serve(tokio::net::TcpListener::from_std(listener)?, view).await }.await;
    if let Err(error) = served {
        tracing::error!(%error, "the admin listener ended");
    }
}

async fn sweep(shared: Arc<Shared>) {
    let mut ticks = tokio::time::interval(SWEEP);
    loop {
        ticks.tick().await;
        for route in &shared.live.load().routes {
            route.destination.sweep();
        }
    }
}
