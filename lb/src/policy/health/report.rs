//! What an endpoint's health tells of itself.

use super::Standing;
use crate::policy::time::Instant;

/// Where an endpoint is in its circle.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum State {
    /// Out.
    Ejected,
    /// Out, but for probes.
    HalfOpen,
    /// In.
    Healthy,
}

/// What ejected an endpoint.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Cause {
    /// A run of failures.
    Consecutive,
    /// A half-open probe failed.
    HalfOpenFailure,
    /// The kernel saw it on the wire.
    Kernel(KernelCause),
    /// Probes failed.
    Probe,
    /// Too many failures within the window.
    Ratio,
}

/// What the kernel saw of an endpoint that is not worth another try.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum KernelCause {
    /// Nothing answers.
    Loss,
    /// Nobody listens.
    Refused,
    /// It resets one connection after the other.
    Reset,
    /// Nothing can be delivered.
    Unreachable,
}

/// A change of state, other than the passing from ejected to half-open that time alone brings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transition {
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// Why, if it was ejected.
    pub cause: Option<Cause>,
    /// Until when, if it was ejected.
    pub until: Option<Instant>,
}

/// What an endpoint's health looks like at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Whether it can be chosen.
    pub standing: Standing,
    /// Failures since the last clean end.
    pub consecutive_failures: u32,
    /// Results within the window.
    pub window_volume: u32,
    /// Failures among them.
    pub window_failures: u32,
    /// Ejections since it last was healthy, but for those that the kernel caused.
    pub ejections: u32,
    /// Why it is out, if it is.
    pub cause: Option<Cause>,
}
