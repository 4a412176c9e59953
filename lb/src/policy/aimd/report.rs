//! What the controller tells of itself.

use std::time::Duration;

/// What became of an outcome.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Counted {
    /// In the window as a breach.
    Breach,
    /// In the window as healthy.
    Healthy,
    /// Dropped: the attempt began in an earlier generation, or the controller is parked.
    Stale,
    /// Counted, but not in the window.
    Unknown,
}

/// Why the share moved.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Direction {
    /// Too many breaches.
    Down,
    /// Too little traffic to judge for too long.
    Idle,
    /// Few breaches for a dwell.
    Up,
}

/// One movement of the share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Why.
    pub direction: Direction,
    /// The share before.
    pub from: f64,
    /// The share after.
    pub to: f64,
    /// The window's breach rate that decided it, in \[0, 1\]; `None` for an idle step, which is not decided by any.
    pub breach_rate: Option<f64>,
}

/// What the controller looks like at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// The share in \[floor, 1\], idle steps that are due included.
    pub share: f64,
    /// Decreases and resumptions so far.
    pub generation: u64,
    /// Samples in the window.
    pub window_samples: usize,
    /// Their breach rate in \[0, 1\]; `None` while there are none.
    pub window_breach_rate: Option<f64>,
    /// Attempts on the preferred target that have begun and not ended, of every generation.
    pub in_flight: u64,
    /// Whether it is out of use until its preferred target is back.
    pub parked: bool,
    /// Time since the last change up or down; `None` if there was none.
    pub since_adjustment: Option<Duration>,
}
