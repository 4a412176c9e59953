//! What the machine must have for the configuration to work: files, certificates, addresses, names.
//!
//! Messages name the key and never the path, address or host, any of which may hold a value of the environment: the
//! snippet below them shows what the file says.

mod certificate;

use std::{
    fs::File,
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::{Span, diagnostic::Diagnostic};

/// One thing that the machine must have, and where the file says so.
#[derive(Clone, Debug)]
pub(super) struct Need {
    pub(super) span: Span,
    pub(super) key: String,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// An address to listen on.
    Address(SocketAddr),
    /// A file that must be readable.
    File(PathBuf),
    /// A host that the resolver should know, and a port.
    Host(String, u16),
    /// A certificate's file and its key's, which must belong together.
    Pair(PathBuf, PathBuf),
    /// A readable file that nobody else should be able to read.
    Secret(PathBuf),
    /// A socket that the service manager hands over, to `lb run` and nobody else.
    Socket,
}

/// Tries every one of `needs`.
pub(super) fn check(needs: &[Need]) -> Vec<Diagnostic> {
    let problems = needs.iter().filter_map(|need| {
        let problem = match &need.what {
            What::Address(address) => bind(need, *address),
            What::File(path) => open(need, path).err().map(|problem| *problem),
            What::Host(host, port) => look_up(need, host, *port),
            What::Pair(chain, key) => certificate::check(need, chain, key),
            What::Socket => None,
            What::Secret(path) => {
                open(need, path).map_or_else(|problem| Some(*problem), |file| others_can_read(need, &file))
            }
        };
        problem.map(|problem| problem.at(need.key.as_str()))
    });
    problems.collect()
}

fn open(need: &Need, path: &Path) -> Result<File, Box<Diagnostic>> {
    let readable = File::open(path).and_then(|file| match file.metadata()? {
        meta if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Ok(file),
    });
    readable.map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::NotFound => "create the file, or correct the path",
            io::ErrorKind::PermissionDenied => "let the user that lb runs as read it",
            _ => "name a file that can be read",
        };
        let message = format!("`{}` cannot be read: {}", need.key, reason(&error));
        Box::new(Diagnostic::error("E401", need.span, message).help(help))
    })
}

fn others_can_read(need: &Need, file: &File) -> Option<Diagnostic> {
    let mode = file.metadata().ok()?.permissions().mode();
    (mode & 0o004 != 0).then(|| {
        let message = format!("everybody on this machine can read the secret in `{}`", need.key);
        Diagnostic::warning("W402", need.span, message).help("chmod o= takes that right away")
    })
}

fn bind(need: &Need, address: SocketAddr) -> Option<Diagnostic> {
    let error = TcpListener::bind(address).err()?;
    Some(if error.kind() == io::ErrorKind::AddrInUse {
        Diagnostic::warning(
            "W404",
            need.span,
            format!("something already listens at `{}`", need.key),
        )
        .help("this is as it should be if that is lb itself; otherwise `lb run` will end with code 69")
    } else {
        let message = format!("cannot listen at `{}`: {}", need.key, reason(&error));
        let help = match error.kind() {
            io::ErrorKind::PermissionDenied => "ports below 1024 need CAP_NET_BIND_SERVICE",
            _ => "use an address of this machine",
        };
        Diagnostic::error("E403", need.span, message).help(help)
    })
}

fn look_up(need: &Need, host: &str, port: u16) -> Option<Diagnostic> {
    let found = (host, port)
        .to_socket_addrs()
        .map(|mut addresses| addresses.next().is_some());
    let why = match found {
        Ok(true) => return None,
        Ok(false) => "it has no address".to_owned(),
        Err(error) => reason(&error),
    };
    let message = format!("the host in `{}` cannot be found: {why}", need.key);
    Some(Diagnostic::warning("W405", need.span, message).help("correct the name, or wait until it is known"))
}

/// The reason alone, without the error's number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests;
