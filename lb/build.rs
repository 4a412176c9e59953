//! Finds the kernel programs, so that they become part of the binary.
//!
//! They are another build for another target (`cargo xtask build-ebpf`); where it has not been made, the daemon is
//! built without them and says so at start.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where the build of the programs leaves them, seen from this package.
const BUILT: &str = "../lb-ebpf/target/bpfel-unknown-none/release/lb-ebpf";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(lb_ebpf_object)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LB_EBPF_OBJ");
    let object = env::var_os("LB_EBPF_OBJ").map_or_else(|| PathBuf::from(BUILT), PathBuf::from);
    // A path that does not exist would run this at every build; the folder that is to hold it tells when it appears.
    let seen = object
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or_else(|| Path::new("."));
    println!("cargo::rerun-if-changed={}", seen.display());
    if let Ok(object) = fs::canonicalize(&object) {
        println!("cargo::rustc-cfg=lb_ebpf_object");
        println!("cargo::rustc-env=LB_EBPF_OBJECT={}", object.display());
    }
}
