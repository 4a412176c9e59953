//! One fault of one target, from before it to after it.

use tokio::time::Instant;

use super::crowd::{Crowd, Ending, Stream};
use super::endpoint::{Endpoint, NAMES};
use super::row::Row;
use super::{Fault, Plan, Target, configuration};
use crate::daemon::Lb;
use crate::netns::Network;

/// Makes `fault` at `target` under a crowd, mends it, and waits until the target answers again; a daemon and endpoints
/// of its own. Runs at the proxy's end of `network`.
pub async fn run(network: &Network, plan: &Plan, fault: Fault, target: Target) -> Row {
    let mut endpoints = NAMES.map(|name| Endpoint::start(network, plan, name));
    let addresses = endpoints.each_ref().map(Endpoint::address);
    let lb = Lb::with(&configuration(plan, &addresses)).await;
    let crowd = Crowd::start(plan, lb.data());
    crowd
        .until(
            "a phase of streams, and some of the target under way",
            |streams| {
                let under_way = |n| on(streams, n).any(|stream| stream.ending.is_none());
                ended(streams).count() >= plan.phase
                    && (0..NAMES.len()).all(|n| whole(streams, n).count() > 0)
                    && target.endpoints().all(under_way)
            },
        )
        .await;

    let made = Instant::now();
    let before: usize = target
        .endpoints()
        .map(|n| fault.make(network, &mut endpoints[n]))
        .sum();
    crowd
        .until("a phase of streams under the fault", |streams| {
            let during = ended(streams).filter(|stream| stream.begun > made);
            let silent = |n| on(streams, n).any(|stream| stream.begun < made && stream.ending.is_none());
            let over = !fault.leaves_streams_silent() || !target.endpoints().any(silent);
            during.count() >= plan.phase && over
        })
        .await;

    let mended = Instant::now();
    let after: usize = target
        .endpoints()
        .map(|n| fault.mend(network, &mut endpoints[n]))
        .sum();
    crowd
        .until("whole streams of the target", |streams| {
            target
                .endpoints()
                .all(|n| whole(streams, n).any(|stream| stream.begun > mended))
        })
        .await;
    for n in target.endpoints() {
        let in_again = async |lb: &Lb| lb.endpoint(&NAMES[n][..3], n % 2).await["state"] == "healthy";
        lb.eventually("the target to be in again", in_again).await;
    }
    let streams = crowd.end().await;
    idle(&lb).await;
    Row::new(fault, target, &streams, [made, mended], after - before)
}

/// As [`Lb::idle`], for two models.
async fn idle(lb: &Lb) {
    let idle = async |lb: &Lb| lb.sum("lb_inflight_requests", &[]).await == 0;
    lb.eventually("nothing to be in flight", idle).await;
}

fn ended(streams: &[Stream]) -> impl Iterator<Item = &Stream> {
    streams.iter().filter(|stream| stream.ending.is_some())
}

fn on(streams: &[Stream], endpoint: usize) -> impl Iterator<Item = &Stream> {
    streams.iter().filter(move |stream| stream.by == Some(endpoint))
}

fn whole(streams: &[Stream], endpoint: usize) -> impl Iterator<Item = &Stream> {
    on(streams, endpoint).filter(|stream| stream.ending == Some(Ending::Whole))
}
