//! What stands in front of the data path: TLS, HTTP/2, deadlines, limits, and what is refused, each on real sockets.

#![cfg(test)]

mod answers;
mod deadlines;
mod http1;
mod http2;
mod limits;
mod tls;

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

/// A provider, and lb in front of it with these settings of its listener.
async fn start(otherwise: Script, listener: &[&str]) -> (Provider, Lb) {
    let provider = Provider::start(otherwise).await;
    let setup = listener
        .iter()
        .fold(Setup::single(&provider), |setup, member| setup.listener(member));
    let lb = Lb::start(&setup).await;
    (provider, lb)
}

/// Milliseconds of every short limit here: long enough for a busy machine to do something else in between.
const SHORT: u64 = 300;
