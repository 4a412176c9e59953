//! `cargo xtask setup`: finds what this machine lacks, and with `--install` brings it.
//!
//! Two groups: what building and testing need, and the toolchain of the kernel programs. Packages are installed only
//! when asked (`--install`, or CI) and only as root on a machine with apt; otherwise the one line to run is printed.
//! Running it again when nothing is missing does nothing and says nothing.

use std::process::Command;

use crate::{
    command::{self, Failure, Result},
    coverage,
    ebpf::toolchain,
};

mod apt;
mod npm;
mod venv;

use apt::Apt;
pub(crate) use npm::openai_node;
pub(crate) use venv::openai_python;

#[derive(Clone, Copy, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Install what is missing (as root, with apt); always on in CI
    #[arg(long)]
    pub(crate) install: bool,
}

/// Something that a verb uses and a machine may lack.
#[derive(Debug)]
struct Need {
    what: &'static str,
    purpose: &'static str,
    packages: &'static [&'static str],
    /// Whether nothing at all works without it; the rest only makes tests skip.
    vital: bool,
    present: fn() -> bool,
}

const NEEDS: [Need; 10] = [
    Need {
        what: "a C compiler",
        purpose: "linking, and the C parts of aws-lc",
        packages: &["gcc", "libc6-dev"],
        vital: true,
        present: || command::find("cc").is_some(),
    },
    Need {
        what: "git",
        purpose: "a clone",
        packages: &["git"],
        vital: false,
        present: || command::find("git").is_some(),
    },
    Need {
        what: "curl",
        purpose: "tests of the README's commands",
        packages: &["curl"],
        vital: false,
        present: || command::find("curl").is_some(),
    },
    Need {
        what: "the system's certificates",
        purpose: "TLS to hosted providers, and tests of it",
        packages: &["ca-certificates"],
        vital: false,
        present: || std::path::Path::new("/etc/ssl/certs/ca-certificates.crt").exists(),
    },
    Need {
        what: "python3 with venv",
        purpose: "tests with the openai clients",
        packages: &["python3", "python3-venv"],
        vital: false,
        present: venv::possible,
    },
    Need {
        what: "ip",
        purpose: "tests in network namespaces",
        packages: &["iproute2"],
        vital: false,
        present: || command::find("ip").is_some(),
    },
    Need {
        what: "nft",
        purpose: "tests that drop packets",
        packages: &["nftables"],
        vital: false,
        present: || command::find("nft").is_some(),
    },
    Need {
        what: "valgrind",
        purpose: "counting instructions",
        packages: &["valgrind"],
        vital: false,
        present: || command::find("valgrind").is_some(),
    },
    Need {
        what: "the compiler's LLVM tools",
        purpose: "measuring coverage",
        packages: &["llvm-22"],
        vital: false,
        present: || coverage::tools().is_ok(),
    },
    Need {
        what: "a toolchain for eBPF",
        purpose: "the kernel plane",
        packages: &toolchain::PACKAGES,
        vital: false,
        present: || toolchain::find().is_ok(),
    },
];

/// The verb: a machine that lacks anything is a failure.
pub(crate) fn run(args: Args) -> Result {
    let missing = bring(args)?;
    if missing.is_empty() {
        println!("setup: complete");
        return Ok(());
    }
    Err(report(&missing))
}

/// For other verbs: fails only where they could not work at all, or in CI, and otherwise says what will be skipped.
pub(crate) fn ensure(args: Args) -> Result {
    let missing = bring(args)?;
    if missing.is_empty() {
        return Ok(());
    }
    let failure = report(&missing);
    if command::in_ci() || missing.iter().any(|need| need.vital) {
        return Err(failure);
    }
    println!("setup: {failure}");
    Ok(())
}

/// Returns what is missing, after installing it where that is asked for and possible.
fn bring(args: Args) -> Result<Vec<&'static Need>> {
    let missing = missing();
    if missing.is_empty() || !(args.install || command::in_ci()) {
        return Ok(missing);
    }
    let Some(mut apt) = Apt::find() else {
        println!("setup: packages are installed only as root and with apt-get");
        return Ok(missing);
    };
    apt.update()?;
    let (mut offered, unknown) = offered(&apt, &missing)?;
    if !unknown.is_empty() && apt.add_security()? {
        offered.extend(self::offered(&apt, &unknown)?.0);
    }
    apt.install(
        &offered
            .iter()
            .flat_map(|need| need.packages)
            .copied()
            .collect::<Vec<_>>(),
    )?;
    Ok(self::missing())
}

/// Splits `needs` into those that can be installed whole and the rest; half a toolchain would be of no use.
fn offered(apt: &Apt, needs: &[&'static Need]) -> Result<(Vec<&'static Need>, Vec<&'static Need>)> {
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    for need in needs {
        if apt.offers(need.packages)? {
            whole.push(*need);
        } else {
            rest.push(*need);
        }
    }
    Ok((whole, rest))
}

fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !(need.present)()).collect()
}

fn report(missing: &[&Need]) -> Failure {
    let mut lines = vec!["this machine lacks".to_owned()];
    lines.extend(
        missing
            .iter()
            .map(|need| format!("  {} (for {})", need.what, need.purpose)),
    );
    let mut packages: Vec<_> = missing.iter().flat_map(|need| need.packages).copied().collect();
    packages.sort_unstable();
    packages.dedup();
    lines.push(format!("On Debian, as root: {}", apt::line(&packages)));
    if missing.iter().any(|need| need.packages == toolchain::PACKAGES) {
        lines.push(format!(
            "The eBPF toolchain may also come from rustup: {}",
            toolchain::RUSTUP_RECIPE
        ));
    }
    Failure::new(lines.join("\n"))
}

/// Whether `python` can run `code`.
fn python_runs(python: impl AsRef<std::ffi::OsStr>, code: &str) -> bool {
    command::run_quietly(Command::new(python).args(["-c", code])).is_ok()
}
