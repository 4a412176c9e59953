//! Finds out whether an endpoint that the kernel saw go is back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::{Kernel, id_of};
use crate::net::{self, SocketHook};
use crate::policy::time::Instant;
use crate::proxy::Shared;

/// Longest time for a connection. Where the kernel sees that it will come to nothing it ends long before.
const LIMIT: Duration = Duration::from_secs(2);

/// How soon a connection that failed is tried anew. A steady pace, not a doubling one: four SYNs a second cost nobody
/// anything, and an endpoint that is back a moment after a try is not to be missed for as long as it was away.
const RETRY: Duration = Duration::from_millis(250);

/// Waits for the end of an ejection that begins now and lasts `span`, and then connects until that succeeds, or until
/// the ejection has been taken back or the endpoint is no more.
pub(super) async fn readmit(shared: Arc<Shared>, slot: u16, span: Duration, hook: Option<SocketHook>) {
    tokio::time::sleep(span).await;
    loop {
        let live = shared.live.load_full();
        let Some(id) = id_of(&live, slot) else { return };
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

/// How often is looked for endpoints that were ejected for their failures.
const LOOK: Duration = Duration::from_millis(100);

/// Makes one connection to each endpoint that is ejected for its failures, at the beginning of that; does not end.
///
/// A process that dies under its streams is ejected for them, for long. Nobody would go there then, and so nobody would
/// see that it is gone, nor that it is back: this connection has the kernel see it.
pub(super) async fn inquire(shared: &Shared, kernel: &Kernel, hook: Option<&SocketHook>) {
    let mut asked: BTreeMap<u16, Instant> = BTreeMap::new();
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let live = shared.live.load_full();
        for slot in kernel.acting() {
            let Some(id) = id_of(&live, slot) else { continue };
            let Some(until) = live.table.failed_until(id, shared.clock.now()) else {
                asked.remove(&slot);
                continue;
            };
            if asked.insert(slot, until) == Some(until) {
                continue;
            }
            let (live, hook) = (Arc::clone(&live), hook.cloned());
            tokio::spawn(async move {
                // What comes of it is for the kernel to see; a connection says nothing against the failures.
                drop(net::reach(&live.routes[id].destination, hook.as_ref(), LIMIT).await);
            });
        }
    }
}
