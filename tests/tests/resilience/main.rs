//! What lb does with providers that fail, through the real daemon: breaker, cooldown, retries, and how they follow each
//! other.

#![cfg(test)]

mod breaker;
mod cooldown;
mod deadlines;
mod hedging;
mod layers;
mod outcomes;
mod retries;
mod sockets;

use lb_tests::daemon::Lb;
use serde_json::Value;

/// What `/api/v1/state` says of a provider.
async fn provider(lb: &Lb, name: &str) -> Value {
    let state = lb.state().await;
    let mut all = state["providers"].as_array().expect("a list").iter();
    all.find(|provider| provider["name"] == name)
        .expect("configured")
        .clone()
}

/// The text of a completion.
async fn said(lb: &Lb) -> Value {
    let answer = lb.chat(false).await;
    answer.json()["choices"][0]["message"]["content"].clone()
}

/// Retries in a provider that came to this.
async fn retries(lb: &Lb, outcome: &str) -> u64 {
    let label = format!("outcome=\"{outcome}\"");
    lb.sum("lb_retries_total", &["provider=\"gpu\"", &label]).await
}
