//! How many files and sockets this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as an unprivileged process may. The soft limit that shells and service managers set is
/// meant for programs that use `select`; a proxy has two sockets for each request.
pub(super) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if limit.current == limit.maximum {
        return;
    }
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(from = limit.current, to = limit.maximum, "open file limit raised"),
        Err(error) => tracing::warn!(%error, limit = limit.current, "the open file limit stays as it is"),
    }
}
