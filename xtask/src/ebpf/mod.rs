//! `cargo xtask build-ebpf`: the kernel programs, as one object file.
//!
//! They are a workspace of their own, since they need another target and unstable features; building lb never needs
//! that toolchain. The object goes to `target/bpf/lb-ebpf.o`, where lb's build script looks for it.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::command::{self, Failure, Result};

pub(crate) mod linker;
pub(crate) mod llvm;
pub(crate) mod toolchain;

/// The manifest of the kernel programs, from the root of the workspace.
pub(crate) const MANIFEST: &str = "lb-ebpf/Cargo.toml";

/// Names an object that was built elsewhere: nothing is built then.
const OBJECT_VARIABLE: &str = "LB_EBPF_OBJ";

/// Whether the kernel programs are part of this tree.
pub(crate) fn present() -> bool {
    command::root().join(MANIFEST).exists()
}

/// Builds the kernel programs of lb where that can be done, and says what came of it.
pub(crate) fn build_if_possible() {
    match build(Path::new(MANIFEST)) {
        Ok(object) => eprintln!("kernel plane: built {}", object.display()),
        Err(failure) => {
            let failure = failure.to_string();
            let reason = failure.lines().next().unwrap_or_default();
            eprintln!("going on without the kernel plane: {reason}");
        }
    }
}

/// Builds the object of `manifest` (or takes the one that `LB_EBPF_OBJ` names) and returns its path.
pub(crate) fn build(manifest: &Path) -> Result<PathBuf> {
    if let Some(object) = env::var_os(OBJECT_VARIABLE).map(PathBuf::from) {
        verify(&object)?;
        return Ok(object);
    }
    let manifest = command::root().join(manifest);
    if !manifest.exists() {
        return Err(Failure::new(format!(
            "no kernel programs: {} is missing",
            manifest.display()
        )));
    }
    let toolchain = toolchain::find().map_err(|reason| {
        Failure::new(format!(
            "cannot build the kernel programs: {reason}\n{}",
            toolchain::recipes()
        ))
    })?;
    let output = command::root().join("target/bpf");
    let mut cargo = toolchain.cargo()?;
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--bins",
        "--target",
        toolchain::TARGET,
    ]);
    command::run(
        cargo
            .arg("--manifest-path")
            .arg(&manifest)
            .env("CARGO_TARGET_DIR", &output),
    )?;
    publish(&manifest, &output)
}

/// Copies the program's binary to the name that lb's build script knows.
fn publish(manifest: &Path, output: &Path) -> Result<PathBuf> {
    let name = manifest.parent().and_then(Path::file_name).unwrap_or_default();
    let built = output.join(toolchain::TARGET).join("release").join(name);
    verify(&built)?;
    let object = output.join(name).with_extension("o");
    let bytes = read(&built)?;
    // Left alone when nothing changed: a newer time stamp would build lb again.
    if fs::read(&object).is_ok_and(|old| old == bytes) {
        return Ok(object);
    }
    fs::write(&object, bytes)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", object.display())))?;
    Ok(object)
}

/// Checks that `object` is what the kernel's loader takes: a little-endian 64-bit ELF file for the BPF machine.
fn verify(object: &Path) -> Result {
    if is_bpf_object(&read(object)?) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} is not an eBPF object",
        object.display()
    )))
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).map_err(|error| Failure::new(format!("cannot read {}: {error}", file.display())))
}

fn is_bpf_object(bytes: &[u8]) -> bool {
    const CLASS_64_LITTLE_ENDIAN: [u8; 6] = *b"\x7fELF\x02\x01";
    const MACHINE_OFFSET: usize = 18;
    const EM_BPF: [u8; 2] = 247_u16.to_le_bytes();
    bytes.starts_with(&CLASS_64_LITTLE_ENDIAN)
        && bytes.get(MACHINE_OFFSET..MACHINE_OFFSET + 2) == Some(&EM_BPF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_elf_file_for_the_bpf_machine_is_an_object() {
        let mut header = [0_u8; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[18] = 247;
        assert!(is_bpf_object(&header));
        header[18] = 62; // x86-64
        assert!(!is_bpf_object(&header));
        assert!(!is_bpf_object(b"\x7fELF"));
    }
}
