//! How requests are spread over endpoints, and how many of them are let through, seen through the real daemon.

#![cfg(test)]

mod affinity;
mod balance;
mod limits;
mod probes;

use lb_tests::client::{chat_body, post};
use lb_tests::setup::Setup;

/// A request that does not stream, with this field.
fn with(field: &str) -> Vec<u8> {
    post(
        "/v1/chat/completions",
        &format!("{field}\r\n"),
        chat_body("chat", false),
    )
}

/// The file with this setting of the provider `gpu` alone.
fn of_gpu(setup: &Setup, member: &str) -> String {
    let key = "api_key: key-of-gpu";
    let text = setup.text();
    assert!(text.contains(key), "{text}");
    text.replace(key, &format!("{key}, {member}"))
}
