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

/// LLVM's three tools that together link bitcode into an object.
#[derive(Clone, Debug)]
pub(crate) struct Llvm {
    pub(crate) link: PathBuf,
    pub(crate) opt: PathBuf,
    pub(crate) llc: PathBuf,
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
        llvm_version(match self {
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

impl Llvm {
    /// The tools of one version, as Debian installs them side by side.
    fn versioned(major: u32) -> Option<Self> {
        Self::named(|tool| command::find(&format!("{tool}-{major}")))
    }

    /// The tools under their plain names, where they are not older than `oldest`.
    fn unversioned(oldest: u32) -> Option<Self> {
        let tools = Self::named(command::find)?;
        let said = command::capture(Command::new(&tools.llc).arg("--version")).ok()?;
        let version = said
            .lines()
            .find_map(|line| line.split_once("LLVM version "))
            .and_then(|(_, v)| major(v))?;
        (version >= oldest).then_some(tools)
    }

    fn named(find: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        Some(Self {
            link: find("llvm-link")?,
            opt: find("opt")?,
            llc: find("llc")?,
        })
    }

    fn to_variable(&self) -> Result<std::ffi::OsString> {
        env::join_paths([&self.link, &self.opt, &self.llc])
            .map_err(|error| Failure::new(format!("an LLVM tool has an unusable path: {error}")))
    }

    /// The inverse of `to_variable`, in the process that links.
    pub(super) fn from_variable(value: &std::ffi::OsStr) -> Option<Self> {
        let mut paths = env::split_paths(value);
        Some(Self {
            link: paths.next()?,
            opt: paths.next()?,
            llc: paths.next()?,
        })
    }
}

/// The major version of the LLVM that `rustc` is built on.
pub(crate) fn llvm_version(mut rustc: Command) -> Result<u32> {
    let version = command::capture(rustc.arg("-vV"))?;
    let line = version
        .lines()
        .find_map(|line| line.strip_prefix("LLVM version: "));
    line.and_then(major)
        .ok_or_else(|| Failure::new("rustc does not say which LLVM it has"))
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
    command.args(["run", "nightly", "rustc"]);
    command
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_tools_survive_the_way_through_the_environment() {
        let tools = Llvm {
            link: "/usr/bin/llvm-link-22".into(),
            opt: "/opt/x/opt".into(),
            llc: "llc".into(),
        };
        let back = Llvm::from_variable(&tools.to_variable().unwrap()).unwrap();
        assert_eq!(
            (back.link, back.opt, back.llc),
            (tools.link, tools.opt, tools.llc)
        );
    }

    #[test]
    fn a_version_is_known_by_its_first_number() {
        assert_eq!(major("22.1.8"), Some(22));
        assert_eq!(major("19"), Some(19));
        assert_eq!(major("trunk"), None);
    }
}
