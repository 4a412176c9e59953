//! The worker threads.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::StartError;
use super::kernel::Kernel;
use crate::net::Client;
use crate::proxy::{self, Bound, Drain, Shared, Worker};

/// How many workers to run: as configured, else one for each CPU this process may use.
pub(super) fn count(configured: Option<NonZeroU16>) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    configured.map_or_else(available, |workers| usize::from(workers.get()))
}

/// Starts the workers, each with its sockets.
pub(super) fn start(
    shared: &Arc<Shared>,
    bound: Vec<Bound>,
    workers: usize,
    kernel: &Kernel,
) -> Result<Vec<JoinHandle<()>>, StartError> {
    let mut sockets: Vec<Vec<(Arc<Bound>, std::net::TcpListener)>> =
        (0..workers).map(|_| Vec::new()).collect();
    for mut bound in bound {
        let own = std::mem::take(&mut bound.sockets);
        let bound = Arc::new(bound);
        for (worker, socket) in own.into_iter().enumerate() {
            sockets[worker].push((Arc::clone(&bound), socket));
        }
    }
    sockets
        .into_iter()
        .enumerate()
        .map(|(number, sockets)| one(shared, Client::new(number, kernel.hook()), number, sockets))
        .collect()
}

fn one(
    shared: &Arc<Shared>,
    client: Client,
    number: usize,
    sockets: Vec<(Arc<Bound>, std::net::TcpListener)>,
) -> Result<JoinHandle<()>, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Thread)?;
    let worker = Arc::new(Worker::new(Arc::clone(shared), client));
    let body = move || {
        runtime.block_on(async move {
            let mut over = worker.shared.drain.subscribe();
            for (bound, socket) in sockets {
                let worker = Arc::clone(&worker);
                tokio::spawn(async move {
                    if let Err(error) = proxy::serve(worker, bound, socket).await {
                        tracing::error!(%error, "accepting ended");
                    }
                });
            }
            // What is open goes on until the drain says that it is over; its sender is in `shared` and cannot close.
            drop(over.wait_for(|drain| *drain == Drain::Now).await);
        });
    };
    std::thread::Builder::new()
        .name(format!("lb-worker-{number}"))
        .spawn(body)
        .map_err(StartError::Thread)
}
