//! LLVM's own tools, which together can do a BPF linker's work.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::Command,
};

use crate::command::{self, Failure, Result};

/// LLVM's three tools that together link bitcode into an object.
#[derive(Clone, Debug)]
pub(crate) struct Llvm {
    pub(crate) link: PathBuf,
    pub(crate) opt: PathBuf,
    pub(crate) llc: PathBuf,
}

impl Llvm {
    /// The tools of one version, as Debian installs them side by side.
    pub(super) fn versioned(major: u32) -> Option<Self> {
        Self::named(|tool| command::find(&format!("{tool}-{major}")))
    }

    /// The tools under their plain names, where they are not older than `oldest`.
    pub(super) fn unversioned(oldest: u32) -> Option<Self> {
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

    /// The three as a path list, for the environment of the process that links.
    pub(super) fn to_variable(&self) -> Result<OsString> {
        env::join_paths([&self.link, &self.opt, &self.llc])
            .map_err(|error| Failure::new(format!("an LLVM tool has an unusable path: {error}")))
    }

    /// The inverse of [`Self::to_variable`].
    pub(super) fn from_variable(value: &OsStr) -> Option<Self> {
        let mut paths = env::split_paths(value);
        Some(Self {
            link: paths.next()?,
            opt: paths.next()?,
            llc: paths.next()?,
        })
    }
}

/// The major version of the LLVM that `rustc` is built on.
pub(crate) fn version(mut rustc: Command) -> Result<u32> {
    let version = command::capture(rustc.arg("-vV"))?;
    let line = version
        .lines()
        .find_map(|line| line.strip_prefix("LLVM version: "));
    line.and_then(major)
        .ok_or_else(|| Failure::new("rustc does not say which LLVM it has"))
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
