//! The listeners that are bound, over all configurations.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::StartError;
use super::inherited::Inherited;
use super::workers::{Share, Workers, divide};
use crate::config::{self, Config, Place};
use crate::proxy::{self, Bound, Drain, Identity, Sharing};

/// All listeners of the process.
#[derive(Debug)]
pub(super) struct Listeners {
    live: Mutex<Vec<Arc<Bound>>>,
    /// Removed ones that still have connections.
    leaving: Mutex<Vec<Weak<Bound>>>,
    inherited: Mutex<Inherited>,
    workers: usize,
}

/// What is to be done so that the listeners are those of a configuration. Nothing of it has been done yet, but that
/// new addresses are bound. Sockets of the service manager's go back where it is not carried out: there are no others.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    listeners: &'a Listeners,
    planned: Vec<Planned>,
}

#[derive(Debug)]
enum Planned {
    Kept(Arc<Bound>, config::Listener, Option<Arc<Identity>>),
    New(Arc<Bound>, Vec<Share>),
}

impl Drop for Plan<'_> {
    fn drop(&mut self) {
        for planned in &self.planned {
            if let Planned::New(bound, _) = planned {
                lock(&self.listeners.inherited).take_back(bound);
            }
        }
    }
}

impl Listeners {
    pub(super) fn new(inherited: Inherited, workers: usize) -> Self {
        Self {
            live: Mutex::default(),
            leaving: Mutex::default(),
            inherited: Mutex::new(inherited),
            workers,
        }
    }

    /// Those that accept, in the configuration's order.
    pub(super) fn live(&self) -> Vec<Arc<Bound>> {
        lock(&self.live).clone()
    }

    /// Binds what is new in `config` and reads certificates. A listener is known again by its place, and by its name
    /// too where the system has chosen the port.
    pub(super) fn plan(&self, config: &Config) -> Result<Plan<'_>, StartError> {
        let before = self.live();
        let mut left = before.clone();
        let mut plan = Plan {
            listeners: self,
            planned: Vec::with_capacity(config.listeners.len()),
        };
        for listener in &config.listeners {
            let known = left.iter().position(|bound| is_same(bound, listener));
            let known = known.map(|index| left.remove(index));
            let identity = identity(listener, known.as_deref()).map_err(|source| StartError::Identity {
                name: listener.name.to_string(),
                source,
            })?;
            plan.planned.push(match known {
                Some(bound) => Planned::Kept(bound, listener.clone(), identity),
                None => self.bind(listener, identity, &before)?,
            });
        }
        Ok(plan)
    }

    /// Carries the plan out. Returns the listeners that are no more: they accept nothing from now on, and their
    /// connections are to be given time.
    pub(super) fn commit(&self, mut plan: Plan<'_>, workers: &Workers) -> Vec<Arc<Bound>> {
        let mut next = Vec::with_capacity(plan.planned.len());
        for planned in plan.planned.drain(..) {
            next.push(match planned {
                Planned::Kept(bound, listener, identity) => {
                    bound.set(&listener, identity);
                    bound
                }
                Planned::New(bound, shares) => {
                    tracing::info!(listener = %bound.name(), address = %bound.address, "listening");
                    workers.serve(&bound, shares);
                    bound
                }
            });
        }
        let mut gone = std::mem::replace(&mut *lock(&self.live), next.clone());
        gone.retain(|bound| !next.iter().any(|kept| Arc::ptr_eq(kept, bound)));
        let mut leaving = lock(&self.leaving);
        leaving.retain(|bound| bound.strong_count() > 0);
        let mut inherited = lock(&self.inherited);
        inherited.settle();
        for bound in &gone {
            inherited.take_back(bound);
            tracing::info!(listener = %bound.name(), address = %bound.address, "not listening any more");
            bound.advance(Drain::Closing);
            leaving.push(Arc::downgrade(bound));
        }
        gone
    }

    /// Goes on with ending all of them, also those that are ending already.
    pub(super) fn advance(&self, to: Drain) {
        for bound in lock(&self.leaving).iter().filter_map(Weak::upgrade) {
            bound.advance(to);
        }
        for bound in &*lock(&self.live) {
            bound.advance(to);
        }
    }

    fn bind(
        &self,
        listener: &config::Listener,
        identity: Option<Arc<Identity>>,
        before: &[Arc<Bound>],
    ) -> Result<Planned, StartError> {
        let name = listener.name.as_str();
        let handed = lock(&self.inherited).take(listener);
        let failed = |source| match listener.place {
            Place::Address(address) => StartError::bind(name, address, source),
            Place::Inherited(_) => StartError::Thread(source),
        };
        let sockets = match &listener.place {
            _ if !handed.is_empty() => self.complete(handed, &listener.place),
            Place::Address(address) => {
                // `0.0.0.0` and an address of one's own exclude each other, unless both share; and both are ours.
                let ours =
                    address.port() != 0 && before.iter().any(|bound| bound.address.port() == address.port());
                let sharing = if ours { Sharing::Ours } else { Sharing::Refused };
                proxy::bind(*address, self.workers, sharing)
            }
            Place::Inherited(wanted) => {
                return Err(StartError::NotInherited {
                    name: name.to_owned(),
                    wanted: wanted.to_string(),
                    handed: lock(&self.inherited).names(),
                });
            }
        };
        let bound = sockets.and_then(|sockets| {
            let bound = Bound::new(listener, identity, sockets)?;
            let shares = divide(bound.sockets()?, self.workers)?;
            Ok(Planned::New(Arc::new(bound), shares))
        });
        bound.map_err(failed)
    }

    /// Adds to sockets that were handed over, so that each worker has one of its own where they are a group of an lb
    /// with fewer workers. A single socket that was inherited is accepted on by all.
    fn complete(&self, mut handed: Vec<TcpListener>, place: &Place) -> std::io::Result<Vec<TcpListener>> {
        for socket in &handed {
            socket.set_nonblocking(true)?;
        }
        if place.address().is_some() && handed.len() < self.workers {
            let address = handed[0].local_addr()?;
            let missing = self.workers - handed.len();
            handed.extend(proxy::bind(address, missing, Sharing::Ours)?);
        }
        Ok(handed)
    }
}

fn is_same(bound: &Bound, listener: &config::Listener) -> bool {
    let by_name = listener
        .place
        .address()
        .is_some_and(|address| address.port() == 0);
    bound.place == listener.place && (!by_name || bound.name() == listener.name)
}

/// The certificates of a listener: those it has, read again, where they come from the same files.
fn identity(
    listener: &config::Listener,
    known: Option<&Bound>,
) -> Result<Option<Arc<Identity>>, proxy::IdentityError> {
    let Some(tls) = &listener.tls else {
        return Ok(None);
    };
    let same = |identity: &Arc<Identity>| identity.is_of(tls, listener.http2);
    if let Some(identity) = known.and_then(Bound::identity).filter(same) {
        identity.refresh()?;
        return Ok(Some(identity));
    }
    Ok(Some(Arc::new(Identity::load(tls, listener.http2)?)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
