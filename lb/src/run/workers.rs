//! The worker threads.

use std::io;
use std::net::TcpListener;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Handle;

use super::StartError;
use super::kernel::Kernel;
use crate::metrics::Metrics;
use crate::net::Client;
use crate::proxy::{self, Bound, Drain, Shared, Worker};

/// How many workers to run: as configured, else one for each CPU this process may use.
pub(super) fn count(configured: Option<NonZeroU16>) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    configured.map_or_else(available, |workers| usize::from(workers.get()))
}

/// The workers, to be given listeners.
#[derive(Debug)]
pub(super) struct Workers(Vec<(Handle, Arc<Worker>)>);

/// The descriptors on which one worker accepts for a listener.
pub(super) type Share = Vec<TcpListener>;

/// Divides a listener's descriptors among `workers`. Each gets one at least, a copy where there are too few, and none
/// is left out: connections wait in each of them.
pub(super) fn divide(sockets: Vec<TcpListener>, workers: usize) -> io::Result<Vec<Share>> {
    let mut shares: Vec<Share> = (0..workers).map(|_| Vec::new()).collect();
    for (worker, share) in shares.iter_mut().enumerate().skip(sockets.len()) {
        share.push(sockets[worker % sockets.len()].try_clone()?);
    }
    for (number, socket) in sockets.into_iter().enumerate() {
        shares[number % workers].push(socket);
    }
    Ok(shares)
}

/// Lets connections end as they are told to: dropped with their runtime, each would end in order, whatever it was in.
async fn last_turns(metrics: &Metrics) {
    let closed = async {
        while metrics.connections.get() > 0 {
            tokio::time::sleep(POLL).await;
        }
    };
    drop(tokio::time::timeout(LAST_TURNS, closed).await);
}

/// How long that may take. What is cut ends at once; what lingers for a client to read a refusal need not be waited for.
const LAST_TURNS: Duration = Duration::from_millis(250);

/// How often it is looked whether all is closed.
const POLL: Duration = Duration::from_millis(5);

impl Workers {
    /// Starts the threads. Each ends when the drain is over.
    pub(super) fn start(
        shared: &Arc<Shared>,
        workers: usize,
        kernel: &Kernel,
    ) -> Result<(Self, Vec<JoinHandle<()>>), StartError> {
        let mut all = Self(Vec::with_capacity(workers));
        let mut threads = Vec::with_capacity(workers);
        for number in 0..workers {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(StartError::Thread)?;
            let worker = Worker::new(Arc::clone(shared), Client::new(number, kernel.hook()));
            all.0.push((runtime.handle().clone(), Arc::new(worker)));
            let shared = Arc::clone(shared);
            let body = move || {
                runtime.block_on(async move {
                    let mut over = shared.drain.subscribe();
                    // What is open goes on until the drain says that it is over; its sender is in `shared` and cannot
                    // close.
                    drop(over.wait_for(|drain| *drain == Drain::Now).await);
                    last_turns(&shared.metrics).await;
                });
            };
            let thread = std::thread::Builder::new().name(format!("lb-worker-{number}"));
            threads.push(thread.spawn(body).map_err(StartError::Thread)?);
        }
        Ok((all, threads))
    }

    /// Has every worker accept on its share of `bound`.
    pub(super) fn serve(&self, bound: &Arc<Bound>, shares: Vec<Share>) {
        for ((handle, worker), share) in self.0.iter().zip(shares) {
            for socket in share {
                let (worker, bound) = (Arc::clone(worker), Arc::clone(bound));
                handle.spawn(async move {
                    if let Err(error) = proxy::serve(worker, bound, socket).await {
                        tracing::error!(%error, "accepting ended");
                    }
                });
            }
        }
    }
}
