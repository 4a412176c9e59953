//! Anything that a client may send.
#![no_main]

#[path = "../checks/http1_request.rs"]
mod http1_request;

libfuzzer_sys::fuzz_target!(|input: &[u8]| http1_request::check(input));
