//! Anything that may pass the kernel programs.
#![no_main]

#[path = "../checks/segments.rs"]
mod segments;

libfuzzer_sys::fuzz_target!(|input: &[u8]| segments::check(input));
