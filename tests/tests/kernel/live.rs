//! Each fault of a live provider under a crowd of streams: no client error where somebody could have answered.

use std::time::Duration;

use lb_tests::live::{self, Fault, Plan, Row, Target};
use lb_tests::netns::Network;

use crate::bench;
use crate::harness::{self, Tests};

pub(crate) fn tests(tests: &mut Tests) {
    tests.network(no_fault_of_a_provider_is_an_error_of_a_client);
}

/// A smaller run than `cargo xtask bench faults` makes, for CI.
const PLAN: Plan = Plan {
    streams: 80,
    tokens: 5,
    gap: Duration::from_millis(100),
    phase: 120,
    idle: Duration::from_secs(2),
    kernel: "required",
};

// [LIVE-1] [LIVE-2] [LIVE-3]
fn no_fault_of_a_provider_is_an_error_of_a_client(network: &Network) {
    harness::measured(&format!("\n{}", Row::HEAD.trim_end()));
    for (n, fault) in Fault::ALL.into_iter().enumerate() {
        // One endpoint and a whole provider by turns; `cargo xtask bench faults` has each fault of each.
        let target = [Target::Endpoint(0), Target::Provider(0)][n % 2];
        bench::run(network, async || {
            let row = live::run(network, &PLAN, fault, target).await;
            harness::measured(&row.line());
            row.check();
        });
    }
}
