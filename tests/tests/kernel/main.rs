//! The kernel plane against a real kernel: the programs alone, and whole connections in namespaces with faults.
//!
//! Needs root, the kernel programs (`cargo xtask build-ebpf`), and for the faults `ip` and `nft`. Where something is
//! missing a test says so and ends; with `LB_REQUIRE_KERNEL=1` that is a failure.

#![cfg(test)]

mod bench;
mod cost;
mod daemon;
mod differential;
mod faults;
mod frames;
mod loading;
mod loss;
mod process;
mod programs;
mod support;
