//! Instruction counts under callgrind: the same on a loaded machine, so that CI can hold them.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{
    ci::Outcome,
    command::{self, Failure, Result},
};

pub(crate) fn run() -> Result {
    match step()? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(reason) => Err(Failure::new(reason)),
    }
}

/// The step of CI: skips where there is no valgrind, except in CI.
pub(crate) fn step() -> Result<Outcome> {
    if command::find("valgrind").is_none() {
        let reason = "there is no valgrind to count instructions with";
        return if command::in_ci() {
            Err(Failure::new(reason))
        } else {
            Ok(Outcome::Skipped(reason.into()))
        };
    }
    command::run(command::cargo().args(["build", "--quiet", "--release", "--locked"]))?;
    let mut bench = command::cargo();
    bench.args([
        "bench",
        "--quiet",
        "--locked",
        "-p",
        "lb-tests",
        "--bench",
        "instructions",
    ]);
    command::run(bench.env("LB_BIN", wrapper()?))?;
    Ok(Outcome::Passed)
}

/// A script that runs lb under callgrind in lb's place.
fn wrapper() -> Result<std::path::PathBuf> {
    let target = command::root().join("target");
    let script = target.join("lb-under-callgrind");
    let lb = target.join("release/lb");
    let text = format!(
        "#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file=/dev/null '{}' \"$@\"\n",
        lb.display()
    );
    let wrong = |error| Failure::new(format!("{}: {error}", script.display()));
    fs::write(&script, text).map_err(wrong)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(wrong)?;
    Ok(script)
}
