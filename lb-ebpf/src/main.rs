//! The programs that run in the kernel: four hooks around one parser and one flow machine.
//!
//! | program | hook | duty |
//! |---|---|---|
//! | `lb_tc_in`, `lb_tc_out` | tcx, before Linux 6.6 clsact, on an interface | accounting, ICMP errors |
//! | `lb_cg_in`, `lb_cg_out` | `cgroup_skb` on the daemon's own cgroup | the same where there is no Ethernet; no ICMP |
//!
//! They look and count; every packet goes on its way. Built for the host there is nothing to run: the daemon loads the
//! object that `cargo xtask build-ebpf` makes.

#![cfg_attr(target_arch = "bpf", no_std, no_main)]
#![cfg_attr(
    target_arch = "bpf",
    expect(unsafe_code, reason = "the kernel's helpers and map values are raw pointers")
)]

#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod observe;
#[cfg(target_arch = "bpf")]
mod programs;

#[cfg(not(target_arch = "bpf"))]
fn main() {}
