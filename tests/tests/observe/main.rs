//! What lb tells: the access log, the fields of a response, what it says in a stream, and what it counts.

#![cfg(test)]

mod access;
mod counts;
mod degraded;
mod sdk;
mod spans;
mod spoken;
mod trace;

use lb_tests::daemon::Lb;
use serde_json::Value;

/// The `n`th access line, from 0, once it is there.
async fn line(lb: &Lb, n: usize) -> Value {
    let lines = |log: String| {
        log.lines()
            .filter(|line| line.starts_with("{\"ts\":"))
            .nth(n)
            .map(str::to_owned)
    };
    lb.eventually("an access line", async |lb| lines(lb.log()).is_some())
        .await;
    serde_json::from_str(&lines(lb.log()).unwrap()).unwrap()
}
