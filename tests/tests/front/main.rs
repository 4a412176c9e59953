//! What a request meets before its first attempt, and what is special about its way: routes, keys, bodies of all kinds,
//! the PROXY protocol, upgrades.

#![cfg(test)]

mod bodies;
mod heads;
mod interims;
mod keys;
mod proxy_protocol;
mod rename;
mod routes;
mod tunnel;

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

/// A provider that answers, and lb in front of it.
async fn start(setup: impl FnOnce(Setup) -> Setup) -> (Provider, Lb) {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&setup(Setup::single(&provider))).await;
    (provider, lb)
}
