//! Finds the kernel programs, so that they become part of the binary.
//!
//! They are another build for another target (`cargo xtask build-ebpf`). Where that has not been made, the daemon is
//! built without them and says so at start.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where `cargo xtask build-ebpf` leaves them, seen from this package.
const BUILT: &str = "../target/bpf/lb-ebpf.o";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(lb_ebpf_object)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LB_EBPF_OBJ");
    let given = env::var_os("LB_EBPF_OBJ").map(PathBuf::from);
    let object = given.as_deref().unwrap_or_else(|| Path::new(BUILT));
    match fs::canonicalize(object) {
        Ok(object) => {
            println!("cargo::rerun-if-changed={}", object.display());
            println!("cargo::rustc-cfg=lb_ebpf_object");
            println!("cargo::rustc-env=LB_EBPF_OBJECT={}", object.display());
        }
        Err(error) if given.is_some() => {
            println!("cargo::error=LB_EBPF_OBJ names {}: {error}", object.display());
        }
        Err(_) => await_object(object),
    }
}

/// Has this run again as soon as the object appears. To wait for the file itself would run it, and build the daemon, at
/// every build; its folder is looked at instead, so that must be there.
fn await_object(object: &Path) {
    let Some(folder) = object.parent() else { return };
    if fs::create_dir_all(folder).is_ok() {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
}
