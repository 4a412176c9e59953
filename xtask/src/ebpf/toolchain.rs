//! Which compiler and which linker can build for the BPF target here.
//!
//! Two compilers will do: one that ships a core library for the target (Debian's), or a nightly that builds core from
//! its own source. Two linkers will do: bpf-linker, or LLVM's tools driven by [`super::linker`]; both must be at least
//! as new as the compiler's own LLVM, for its bitcode is read by them.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::llvm::{self, Llvm};
use crate::command::{self, Failure, Result};

/// One little-endian object serves 64-bit x86 and Arm.
pub(crate) const TARGET: &str = "bpfel-unknown-none";

/// What Debian calls a compiler with a core library for BPF, and the LLVM tools of the same age.
pub(crate) const PACKAGES: [&str; 3] = ["rustc-web", "libstd-rust-web-dev-bpf", "llvm-22"];

/// What a person types for the other way.
pub(crate) const RUSTUP_RECIPE: &str =
    "rustup toolchain install nightly --component rust-src && cargo install bpf-linker";

/// How far ahead of the compiler the LLVM tools are looked for.
const NEWER_LLVM: u32 = 4;

#[derive(Debug)]
pub(crate) struct Toolchain {
    compiler: Compiler,
    linker: Linker,
}

#[derive(Debug)]
enum Compiler {
    /// A compiler of any channel whose distribution has core for the target.
    Complete(PathBuf),
    /// rustup's nightly with the library's source.
    Nightly,
}

#[derive(Debug)]
enum Linker {
    BpfLinker(PathBuf),
    Llvm(Llvm),
}

/// Finds a toolchain, or says which part of one is missing.
pub(crate) fn find() -> Result<Toolchain> {
    let compiler = Compiler::find().ok_or_else(|| {
        Failure::new(format!(
            "no rustc here has a core library for {TARGET}, and no nightly has rust-src"
        ))
    })?;
    let llvm = compiler.llvm()?;
    let linker = Linker::find(llvm).ok_or_else(|| {
        Failure::new(format!(
            "no bpf-linker, and no llvm-link, opt and llc of LLVM {llvm} or a little later"
        ))
    })?;
    Ok(Toolchain { compiler, linker })
}

/// All ways to a toolchain, for a person.
pub(super) fn recipes() -> String {
    format!(
        "The kernel programs build with either of these:\n  \
         Debian, as root: apt-get install -y --no-install-recommends {}\n  \
         rustup: {RUSTUP_RECIPE}\n\
         Or name an object built elsewhere: {}=/path/to/lb-ebpf.o",
        PACKAGES.join(" "),
        super::OBJECT_VARIABLE,
    )
}

impl Toolchain {
    /// A cargo that builds for [`TARGET`] once it is given a command and a manifest.
    pub(super) fn cargo(&self) -> Result<Command> {
        let mut cargo = match &self.compiler {
            Compiler::Complete(rustc) => {
                let mut cargo = command::cargo();
                // aya-ebpf uses unstable features on this target, which only this variable opens in a stable compiler.
                cargo.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
                cargo
            }
            Compiler::Nightly => {
                let mut cargo = Command::new("rustup");
                cargo.args(["run", "nightly", "cargo", "-Zbuild-std=core"]);
                cargo.current_dir(command::root()).env_remove("RUSTC");
                cargo
            }
        };
        // Flags for the host's programs would reach this target too.
        cargo
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTC_WRAPPER");
        let linker = match &self.linker {
            Linker::BpfLinker(path) => path.clone(),
            Linker::Llvm(tools) => {
                cargo.env(super::linker::VARIABLE, tools.to_variable()?);
                env::current_exe()
                    .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?
            }
        };
        cargo.env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", linker);
        Ok(cargo)
    }
}

impl Compiler {
    fn find() -> Option<Self> {
        let given = env::var_os("RUSTC").map(PathBuf::from);
        let candidates = given
            .into_iter()
            .chain([PathBuf::from("/usr/bin/rustc")])
            .chain(command::find("rustc"));
        for rustc in candidates {
            if has_core(&rustc) {
                return Some(Self::Complete(rustc));
            }
        }
        has_nightly_source().then_some(Self::Nightly)
    }

    /// The major version of the LLVM whose bitcode this compiler writes.
    fn llvm(&self) -> Result<u32> {
        llvm::version(match self {
            Self::Complete(rustc) => Command::new(rustc),
            Self::Nightly => nightly_rustc(),
        })
    }
}

impl Linker {
    fn find(llvm: u32) -> Option<Self> {
        if let Some(linker) = command::find("bpf-linker") {
            return Some(Self::BpfLinker(linker));
        }
        (llvm..=llvm + NEWER_LLVM)
            .find_map(Llvm::versioned)
            .or_else(|| Llvm::unversioned(llvm))
            .map(Self::Llvm)
    }
}

fn has_core(rustc: &Path) -> bool {
    let Ok(folder) =
        command::capture(Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]))
    else {
        return false;
    };
    fs::read_dir(folder.trim()).is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
    })
}

fn has_nightly_source() -> bool {
    command::capture(nightly_rustc().args(["--print", "sysroot"])).is_ok_and(|sysroot| {
        Path::new(sysroot.trim())
            .join("lib/rustlib/src/rust/library/core")
            .is_dir()
    })
}

fn nightly_rustc() -> Command {
    let mut command = Command::new("rustup");
    // A toolchain that is not there must not be downloaded only to look whether it is.
    command
        .env("RUSTUP_AUTO_INSTALL", "0")
        .args(["run", "nightly", "rustc"]);
    command
}
