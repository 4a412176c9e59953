//! Finds out whether an endpoint that the kernel saw go is back.

use std::sync::Arc;
use std::time::Duration;

use crate::net::{self, SocketHook};
use crate::proxy::Shared;

/// Longest time for a connection. Where the kernel sees that it will come to nothing it ends long before.
const LIMIT: Duration = Duration::from_secs(2);

/// How soon a connection that failed is tried anew. A steady pace, not a doubling one: four SYNs a second cost nobody
/// anything, and an endpoint that is back a moment after a try is not to be missed for as long as it was away.
const RETRY: Duration = Duration::from_millis(250);

/// Waits for the end of an ejection that begins now and lasts `span`, and then connects until that succeeds, or until
/// the ejection has been taken back.
pub(super) async fn readmit(shared: Arc<Shared>, id: usize, span: Duration, hook: Option<SocketHook>) {
    tokio::time::sleep(span).await;
    loop {
        let live = shared.live.load_full();
        if !live.table.is_unproven(id, shared.clock.now()) {
            return;
        }
        match net::reach(&live.routes[id].destination, hook.as_ref(), LIMIT).await {
            Ok(()) => return live.table.connected(id, shared.clock.now()),
            Err(error) => tracing::debug!(endpoint = id, %error, "not back yet"),
        }
        tokio::time::sleep(RETRY).await;
    }
}
