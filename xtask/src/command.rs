//! Starting other programs, and saying clearly which one failed.

use std::{
    env,
    fmt::{self, Display, Formatter},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};

/// Why a task stopped: one or more lines for a person.
#[derive(Debug)]
pub(crate) struct Failure(String);

pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Cargo's run-time variable is right even where a built xtask was copied to another clone.
    let manifest =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest
        .parent()
        .map_or_else(|| manifest.clone(), Path::to_path_buf)
}

/// The cargo that started this program, in the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs `command` on this terminal.
pub(crate) fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("`{}` failed ({status})", line(command))))
}

/// Runs `command` without a word; what it printed is part of the failure.
pub(crate) fn run_quietly(command: &mut Command) -> Result {
    output(command).map(drop)
}

/// Runs `command` and returns what it wrote to its standard output.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = output(command)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn output(command: &mut Command) -> Result<Output> {
    let output = command.output().map_err(|error| not_started(command, &error))?;
    if output.status.success() {
        return Ok(output);
    }
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    Err(Failure::new(format!(
        "`{}` failed ({})\n{}",
        line(command),
        output.status,
        said.trim_end()
    )))
}

/// Tries `action` up to `times` times, for what depends on a network.
pub(crate) fn retry(times: u32, mut action: impl FnMut() -> Result) -> Result {
    for attempt in 1..times {
        if action().is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_secs(u64::from(attempt) * 2));
    }
    action()
}

/// Where `program` is found on the search path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    // Administration tools such as `nft` are outside an ordinary user's path on Debian.
    let path = env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(extra)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Whether the switch `name` is on in the environment.
pub(crate) fn switched_on(name: &str) -> bool {
    env::var(name).is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// Whether this is CI, where nothing may be skipped.
pub(crate) fn in_ci() -> bool {
    switched_on("CI")
}

/// Whether this process may install packages and make network namespaces.
pub(crate) fn is_root() -> bool {
    capture(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!(
        "cannot start `{}`: {error}",
        command.get_program().to_string_lossy()
    ))
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
