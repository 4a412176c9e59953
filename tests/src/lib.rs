//! What the tests of lb share.
//!
//! A test through the real daemon reads as a sentence: [`Provider`](provider::Provider)s say what they are scripted to
//! say, a [`Setup`](setup::Setup) writes the configuration, [`Lb`](daemon::Lb) runs the binary on ports of its own, and
//! a [`client`] reports what came out, when, and how it ended. Nothing sleeps: what has to happen is waited for, with
//! [`PATIENCE`] as the only limit.

use std::time::Duration;

pub mod client;
pub mod daemon;
pub mod live;
pub mod netns;
pub mod patience;
pub mod provider;
pub mod sdk;
pub mod setup;
pub mod sim;

/// How long anything awaited may take before the test fails; generous, since the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(10);
