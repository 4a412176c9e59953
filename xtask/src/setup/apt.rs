//! Installing Debian packages, quietly and only when asked.

use std::process::Command;

use crate::command::{self, Failure, Result};

/// Mirrors fail now and then; three tries outlast what CI has seen.
const TRIES: u32 = 3;

/// Whether packages can be installed by this process.
pub(super) fn available() -> bool {
    command::find("apt-get").is_some() && command::is_root()
}

/// Fetches the package lists.
pub(super) fn update() -> Result {
    command::retry(TRIES, || command::run_quietly(apt_get().args(["-qq", "update"])))
}

/// Keeps those of `packages` that some configured source offers.
pub(super) fn known<'a>(packages: &[&'a str]) -> Result<Vec<&'a str>> {
    let policy = command::capture(
        Command::new("apt-cache")
            .env("LC_ALL", "C")
            .arg("policy")
            .args(packages),
    )?;
    Ok(packages
        .iter()
        .copied()
        .filter(|package| has_candidate(&policy, package))
        .collect())
}

/// Installs `packages`; what is there already stays as it is.
pub(super) fn install(packages: &[&str]) -> Result {
    if packages.is_empty() {
        return Ok(());
    }
    println!("setup: installing {}", packages.join(" "));
    command::retry(TRIES, || {
        command::run_quietly(
            apt_get()
                .args(["-qq", "install", "--no-install-recommends"])
                .args(packages),
        )
    })
    .map_err(|failure| Failure::new(format!("{failure}\nTo see why, run: {}", line(packages))))
}

/// What a person would type.
pub(super) fn line(packages: &[&str]) -> String {
    format!(
        "apt-get update && apt-get install -y --no-install-recommends {}",
        packages.join(" ")
    )
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    // Another apt run (a machine's daily update, a second job) holds the lock for a while.
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["-y", "-o", "DPkg::Lock::Timeout=300"]);
    command
}

/// Whether `policy`, the answer of `apt-cache policy`, has a version of `package` to install.
fn has_candidate(policy: &str, package: &str) -> bool {
    let mut lines = policy
        .lines()
        .skip_while(|line| line.strip_suffix(':') != Some(package))
        .skip(1);
    lines
        .find_map(|line| line.trim().strip_prefix("Candidate: "))
        .is_some_and(|candidate| candidate != "(none)")
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
}
