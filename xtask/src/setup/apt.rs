//! Installing Debian packages, quietly and only when asked.

use std::{fs, path::PathBuf, process::Command};

use crate::command::{self, Failure, Result};

/// Mirrors fail now and then; three tries outlast what CI has seen.
const TRIES: u32 = 3;

/// apt, as this process may use it.
#[derive(Debug, Default)]
pub(super) struct Apt {
    /// Read in place of the machine's own list of sources.
    sources: Option<PathBuf>,
}

impl Apt {
    /// None where packages cannot be installed by this process.
    pub(super) fn find() -> Option<Self> {
        (command::find("apt-get").is_some() && command::is_root()).then(Self::default)
    }

    /// Fetches the package lists.
    pub(super) fn update(&self) -> Result {
        command::retry(TRIES, || command::run_quietly(self.get().args(["-qq", "update"])))
    }

    /// Lets Debian's security suite be a source too, for this process only; false if there is nothing to add.
    ///
    /// A bare system lists only the release itself, in which compilers stay as old as they were on its first day.
    pub(super) fn add_security(&mut self) -> Result<bool> {
        let sources = fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
        let Some(security) = security_line(&sources) else {
            return Ok(false);
        };
        let folder = command::root().join("target");
        let file = folder.join("apt-sources.list");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, format!("{sources}\n{security}\n")))
            .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))?;
        self.sources = Some(file);
        self.update()?;
        Ok(true)
    }

    /// Whether some source offers every one of `packages`.
    pub(super) fn offers(&self, packages: &[&str]) -> Result<bool> {
        let policy = command::capture(
            self.tool("apt-cache")
                .env("LC_ALL", "C")
                .arg("policy")
                .args(packages),
        )?;
        Ok(packages.iter().all(|package| has_candidate(&policy, package)))
    }

    /// Installs `packages`; what is there already stays as it is.
    pub(super) fn install(&self, packages: &[&str]) -> Result {
        if packages.is_empty() {
            return Ok(());
        }
        println!("setup: installing {}", packages.join(" "));
        let install = || {
            command::run_quietly(
                self.get()
                    .args(["-qq", "install", "--no-install-recommends"])
                    .args(packages),
            )
        };
        command::retry(TRIES, install)
            .map_err(|failure| Failure::new(format!("{failure}\nTo see why, run: {}", line(packages))))
    }

    fn get(&self) -> Command {
        let mut command = self.tool("apt-get");
        // Another apt run (a machine's daily update, a second job) holds the lock for a while.
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-y", "-o", "DPkg::Lock::Timeout=300"]);
        command
    }

    fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        if let Some(sources) = &self.sources {
            command
                .arg("-o")
                .arg(format!("Dir::Etc::SourceList={}", sources.display()));
        }
        command
    }
}

/// What a person would type.
pub(super) fn line(packages: &[&str]) -> String {
    format!(
        "apt-get update && apt-get install -y --no-install-recommends {}",
        packages.join(" ")
    )
}

/// The security suite of the Debian release that `sources` name, from the same mirror; none if it is there already.
fn security_line(sources: &str) -> Option<String> {
    let lines = sources
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let entries: Vec<_> = lines.filter(|words| words.first() == Some(&"deb")).collect();
    if entries.iter().flatten().any(|word| word.ends_with("-security")) {
        return None;
    }
    entries.iter().find_map(|words| {
        let at = words
            .iter()
            .position(|word| word.trim_end_matches('/').ends_with("/debian"))?;
        let (options, mirror, suite) = (
            words[..at].join(" "),
            words[at].trim_end_matches('/'),
            words.get(at + 1)?,
        );
        (!suite.contains('-')).then(|| format!("{options} {mirror}-security {suite}-security main"))
    })
}

/// Whether `policy`, the answer of `apt-cache policy`, has a version of `package` to install.
fn has_candidate(policy: &str, package: &str) -> bool {
    let mut lines = policy
        .lines()
        .skip_while(|line| line.strip_suffix(':') != Some(package))
        .skip(1);
    let candidate = lines.find_map(|line| line.trim().strip_prefix("Candidate: "));
    candidate.is_some_and(|candidate| candidate != "(none)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_a_candidate_is_not_installed() {
        let policy = "nftables:\n  Installed: (none)\n  Candidate: 1.0.6\n  Version table:\n     1.0.6 500\n\
                      llvm-99:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n";
        assert!(has_candidate(policy, "nftables"));
        assert!(!has_candidate(policy, "llvm-99"));
        assert!(!has_candidate(policy, "never-heard-of"));
    }

    #[test]
    fn the_security_suite_comes_from_the_mirror_of_the_release() {
        let bare = "# made by debootstrap\ndeb http://mirror.example/debian bookworm main\n";
        assert_eq!(
            security_line(bare).as_deref(),
            Some("deb http://mirror.example/debian-security bookworm-security main")
        );
        let signed = "deb [signed-by=/k.gpg] http://mirror.example/debian/ trixie main\n";
        assert_eq!(
            security_line(signed).as_deref(),
            Some("deb [signed-by=/k.gpg] http://mirror.example/debian-security trixie-security main")
        );
        let listed = format!("{bare}deb http://mirror.example/debian-security bookworm-security main\n");
        assert_eq!(security_line(&listed), None);
        assert_eq!(
            security_line("deb http://mirror.example/ubuntu noble main\n"),
            None
        );
        assert_eq!(security_line(""), None);
    }
}
