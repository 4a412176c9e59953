//! Anything that an upstream may send.
#![no_main]

#[path = "../checks/http1_response.rs"]
mod http1_response;

libfuzzer_sys::fuzz_target!(|input: &[u8]| http1_response::check(input));
