//! What systemd is told. Where nobody listens (`NOTIFY_SOCKET` is not set) nothing happens.

use std::time::Duration;

use sd_notify::NotifyState;

/// Serving, for the first time or again.
pub(super) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// A reload has begun. Newer versions fail a reload that does not say when.
pub(super) fn reloading() {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now().ok());
    tell(&states);
}

/// Ending; `open` connections are still there, and the end may take `left` more.
pub(super) fn draining(open: i64, left: Duration) {
    let status = format!("draining, {open} connections open");
    let more = u32::try_from(left.as_micros()).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::Stopping,
        NotifyState::Status(&status),
        NotifyState::ExtendTimeoutUsec(more),
    ]);
}

/// This process is the service from now on.
pub(super) fn main_process() {
    tell(&[NotifyState::MainPid(std::process::id())]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager does not hear us");
    }
}
