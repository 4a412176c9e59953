//! `cargo xtask bench faults`: what each fault of a live provider costs clients, written into docs/FAULTS.md.

use std::{fs, process::Stdio};

use crate::command::{self, Failure, Result};

const PAGE: &str = "docs/FAULTS.md";

pub(super) fn run() -> Result {
    if !command::is_root() {
        return Err(Failure::new("only root can make network namespaces"));
    }
    command::run(command::cargo().args(["build", "--quiet", "--release", "--locked"]))?;
    let mut bench = command::cargo();
    // The clients and endpoints are not what is measured, and are built for the tests already.
    bench.args(["bench", "--quiet", "--locked", "--profile", "dev"]);
    bench.args(["-p", "lb-tests", "--bench", "faults"]);
    // Rows, as they come.
    bench.stderr(Stdio::inherit());
    bench.env("LB_BIN", command::root().join("target/release/lb"));
    let page = command::capture(&mut bench)?;
    let path = command::root().join(PAGE);
    fs::write(&path, page).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    println!("{PAGE}");
    Ok(())
}
