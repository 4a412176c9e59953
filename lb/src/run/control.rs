//! The control thread: what must go on however busy the workers are.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::listeners::Listeners;
use super::{StartError, certificates};
use crate::admin::{self, View};
use crate::proxy::{Drain, Shared};

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

/// The control thread, to be given work.
#[derive(Debug)]
pub(super) struct Control {
    handle: Handle,
    view: Arc<View>,
    admin: Mutex<Option<Admin>>,
}

/// The admin listener that is in use.
#[derive(Debug)]
struct Admin {
    socket: TcpListener,
    serving: AbortHandle,
}

impl Control {
    /// Starts the thread; it ends when the drain is over.
    pub(super) fn start(
        shared: Arc<Shared>,
        listeners: Arc<Listeners>,
        view: View,
    ) -> Result<(Self, JoinHandle<()>), StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let control = Self {
            handle: runtime.handle().clone(),
            view: Arc::new(view),
            admin: Mutex::default(),
        };
        let body = move || {
            runtime.block_on(async move {
                tokio::spawn(sweep(Arc::clone(&shared)));
                tokio::spawn(certificates::keep_fresh(listeners));
                // Whoever asks is answered until the very end: that is when operators look.
                let mut drain = shared.drain.subscribe();
                // Its sender is in `shared`, so it cannot close.
                drop(drain.wait_for(|drain| *drain == Drain::Now).await);
            });
        };
        let thread = std::thread::Builder::new().name("lb-control".to_owned());
        Ok((control, thread.spawn(body).map_err(StartError::Thread)?))
    }

    /// Where tasks go that are to run on this thread.
    pub(super) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// What the admin listener shows.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Answers operators on `socket` from now on, and on no other. Connections that are open go on.
    pub(super) fn serve(&self, socket: TcpListener) -> io::Result<()> {
        let own = socket.try_clone()?;
        let view = Arc::clone(&self.view);
        let task = self.handle.spawn(async move { serve(own, view).await });
        let next = Admin {
            socket,
            serving: task.abort_handle(),
        };
        if let Some(before) = self.admin().replace(next) {
            before.serving.abort();
        }
        Ok(())
    }

    /// Accepts no more operators: somebody else answers them now.
    pub(super) fn leave(&self) {
        if let Some(before) = self.admin().take() {
            before.serving.abort();
        }
    }

    /// A descriptor of the admin listener's socket.
    pub(super) fn socket(&self) -> io::Result<TcpListener> {
        let admin = self.admin();
        let admin = admin
            .as_ref()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        admin.socket.try_clone()
    }

    fn admin(&self) -> MutexGuard<'_, Option<Admin>> {
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
