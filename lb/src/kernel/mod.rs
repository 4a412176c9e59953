//! The kernel's eye: programs that see every segment to and from the endpoints, and what follows from that.
//!
//! A userspace proxy learns of a dead endpoint when a timer says so. The kernel learns it from the first segment that
//! is refused, undeliverable or not acknowledged, mostly within half a second. This module loads the programs
//! ([`attach`]), tells them which sockets to follow ([`Watch`]), reads what they report ([`Observer`]) and judges it
//! ([`signal`]).
//!
//! ```text
//!   net ──socket──▶ Watch ──cookie──▶ ┌────────┐
//!                                     │ kernel │ ──events──▶ Observer ──Sighting──▶ Judge ──Reaction──▶ run()
//!   admin, metrics ◀──── Counters ◀── └────────┘
//! ```
//!
//! It is evidence and never the only gate: where a program cannot be attached, the daemon says why in one line and is a
//! plain proxy; an event that is lost leaves the timers that there are anyway. Nothing here knows endpoints, pools or
//! requests: slots and cookies are numbers, and [`Observer::run`] is given the questions and answers as functions.

mod attach;
mod cgroup;
mod counters;
mod error;
mod interfaces;
mod object;
mod observer;
mod plan;
mod ring;
pub mod signal;
mod slots;
mod sweep;
mod watch;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aya::Ebpf;
use aya::maps::{HashMap, Map, MapData, PerCpuArray};

pub use attach::Rungs;
pub use counters::Counters;
pub use error::Missing;
pub use object::embedded;
pub use observer::Observer;
pub use plan::Attach;
pub use watch::Watch;

use crate::clock::Clock;
use attach::{Attached, Wish};
use signal::Endpoint;
use slots::Slots;

/// Whether there is to be a kernel plane (`kernel.mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// If possible.
    #[default]
    Auto,
    /// No.
    Off,
    /// Without it the daemon does not start.
    Required,
}

/// What the operator wants of the plane (`kernel:` in the configuration).
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether.
    pub mode: Mode,
    /// Where.
    pub attach: Attach,
    /// Interfaces to use instead of those that lead to the endpoints.
    pub interfaces: Vec<String>,
    /// How many connections can be followed at a time; 128 bytes of kernel memory each.
    pub max_flows: u32,
    /// When to act.
    pub signals: signal::Params,
}

impl Default for Settings {
    fn default() -> Self {
        let (mode, attach, signals) = (Mode::default(), Attach::default(), signal::Params::default());
        Self {
            mode,
            attach,
            interfaces: Vec::new(),
            max_flows: 16_384,
            signals,
        }
    }
}

/// What became of a start.
#[derive(Debug)]
pub enum Started {
    /// The plane is there, perhaps with gaps.
    On(Plane, Vec<Missing>),
    /// There is none; without a reason it was not wanted.
    Off(Option<Missing>),
}

/// The loaded and attached programs. Clones share them; they come off their hooks with the last one.
#[derive(Clone)]
pub struct Plane(Arc<Shared>);

struct Shared {
    attached: Mutex<Attached>,
    wish: Wish,
    slots: Mutex<Slots>,
    /// Slots that have a new endpoint since the observer last looked.
    reused: Mutex<Vec<u16>>,
    signals: signal::Params,
}

/// Loads `object` and attaches it where it sees what goes to `destinations`.
///
/// With `mode: auto` everything that is in the way ends in [`Started::Off`], with `mode: required` in an error (exit
/// status 77 if [`Missing::is_privilege`], else 69). [KERNEL-17]
pub fn start(
    settings: &Settings,
    object: Option<&[u8]>,
    destinations: &[IpAddr],
) -> Result<Started, Missing> {
    if settings.mode == Mode::Off {
        return Ok(Started::Off(None));
    }
    match Plane::new(settings, object, destinations) {
        Ok((plane, gaps)) => Ok(Started::On(plane, gaps)),
        Err(missing) if settings.mode == Mode::Required => Err(missing),
        Err(missing) => Ok(Started::Off(Some(missing))),
    }
}

impl Plane {
    fn new(
        settings: &Settings,
        object: Option<&[u8]>,
        destinations: &[IpAddr],
    ) -> Result<(Self, Vec<Missing>), Missing> {
        let signals = settings.signals.clone();
        let config = lb_ebpf::Config {
            streak: signals.settings().streak_failover,
            silent: signals.settings().silent_failover,
            ..lb_ebpf::Config::default()
        };
        let loaded = object::load(object.ok_or(Missing::Programs)?, config, settings.max_flows)?;
        let mut attached = Attached::new(loaded);
        let wish = Wish {
            attach: settings.attach,
            interfaces: settings.interfaces.clone(),
        };
        let mut gaps = attached.cover(&wish, destinations);
        if attached.rungs() == Rungs::default() {
            let nowhere = Missing::Kernel {
                what: "attaching".into(),
                why: "no interface leads anywhere".into(),
            };
            return Err(gaps.pop().unwrap_or(nowhere));
        }
        let (slots, reused) = (Mutex::default(), Mutex::default());
        let shared = Shared {
            attached: Mutex::new(attached),
            wish,
            slots,
            reused,
            signals,
        };
        Ok((Self(Arc::new(shared)), gaps))
    }

    /// How much of the ladder is there.
    pub fn rungs(&self) -> Rungs {
        lock(&self.0.attached).rungs()
    }

    /// Adds hooks for destinations that are new since the start; returns what could not be had.
    pub fn cover(&self, destinations: &[IpAddr]) -> Vec<Missing> {
        lock(&self.0.attached).cover(&self.0.wish, destinations)
    }

    /// A slot for an endpoint, to count it and to name it in reports. `None`: there are more endpoints than slots, and
    /// this one is not observed.
    pub fn claim(&self, endpoint: Endpoint) -> Option<u16> {
        let claim = lock(&self.0.slots).claim(endpoint)?;
        if claim.used {
            lock(&self.0.reused).push(claim.slot);
            self.counters()
                .and_then(|mut counters| counters.clear(claim.slot))
                .ok()?;
        }
        Some(claim.slot)
    }

    /// What is known of the endpoint with this slot is this from now on.
    pub fn update(&self, slot: u16, endpoint: Endpoint) {
        lock(&self.0.slots).update(slot, endpoint);
    }

    /// Gives the slot of an endpoint back that is no more.
    pub fn release(&self, slot: u16) {
        lock(&self.0.slots).release(slot);
    }

    /// A writer of sockets to follow; one for each worker.
    pub fn watch(&self) -> io::Result<Watch> {
        let map = duplicate(&lock(&self.0.attached).loaded, "WATCH")?;
        let map = HashMap::try_from(Map::LruHashMap(map)).map_err(io::Error::other)?;
        Ok(Watch::new(map))
    }

    /// A reader of what was counted.
    pub fn counters(&self) -> io::Result<Counters> {
        counters(&lock(&self.0.attached).loaded)
    }

    /// The reader of events, on the clock that the rest of the daemon has; there is one, so the second call fails. Must
    /// be called within a runtime.
    pub fn observer(&self, clock: Clock) -> Result<Observer, Missing> {
        Observer::new(
            self.clone(),
            &mut lock(&self.0.attached).loaded,
            &self.0.signals,
            clock,
        )
    }

    /// Puts the programs back where an interface went and came again.
    fn follow_interfaces(&self) {
        lock(&self.0.attached).follow();
    }

    fn endpoint(&self, slot: u16) -> Option<Endpoint> {
        lock(&self.0.slots).get(slot)
    }

    fn take_reused(&self) -> Vec<u16> {
        std::mem::take(&mut lock(&self.0.reused))
    }
}

impl fmt::Debug for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Plane").field(&self.rungs()).finish()
    }
}

fn counters(loaded: &Ebpf) -> io::Result<Counters> {
    let map = duplicate(loaded, "STATS")?;
    let map = PerCpuArray::try_from(Map::PerCpuArray(map)).map_err(io::Error::other)?;
    Ok(Counters::new(map))
}

/// Another handle of a map, for another thread.
fn duplicate(loaded: &Ebpf, name: &str) -> io::Result<MapData> {
    let Some(Map::LruHashMap(map) | Map::PerCpuArray(map)) = loaded.map(name) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    MapData::from_fd(map.fd().as_fd().try_clone_to_owned()?).map_err(io::Error::other)
}

/// A panic elsewhere leaves nothing half done in these: every change is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
