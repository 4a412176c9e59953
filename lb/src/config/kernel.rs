//! What the kernel is asked to watch.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

/// Whether and where connections are watched in the kernel, and what counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Whether it is wanted.
    pub mode: KernelMode,
    /// Where programs are attached.
    pub attach: Attach,
    /// Network interfaces; empty is those that lead to the providers.
    pub interfaces: Vec<String>,
    /// Connections watched at a time.
    pub max_flows: u32,
    /// When what is seen counts.
    pub signals: Signals,
}

/// Whether the kernel's part is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelMode {
    /// Where it can be had.
    Auto,
    /// Or lb does not start.
    Required,
    /// Not at all.
    Off,
}

/// Where programs are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    /// Ethernet interfaces, the control group for the rest.
    Auto,
    /// The process's control group.
    Cgroup,
    /// Ethernet interfaces only.
    Tc,
}

/// When what the kernel sees counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signals {
    /// To a handshake's end, at least.
    pub syn_timeout: Duration,
    /// Retransmissions without progress.
    pub streak: Steps,
    /// Keepalive probes without an answer.
    pub silent: Steps,
    /// Resets that eject an endpoint,
    pub rst_count: u32,
    /// within this time.
    pub rst_window: Duration,
    /// The first ejection; it doubles with each.
    pub ejection: Duration,
}

/// How many of something it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// To try the next target; at least 1.
    pub failover: u32,
    /// To end a stream; at least `failover`.
    pub end_stream: u32,
}
