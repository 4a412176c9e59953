//! Where two lbs meet.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::channel::{Channel, Door};
use crate::run::Source;

/// A socket file, removed when dropped unless it is another's by then.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    file: (u64, u64),
}

/// The socket file of the lb that runs from `source`.
pub(super) fn path(source: &Source) -> io::Result<PathBuf> {
    let file = std::path::absolute(source.path())?;
    let digest = Sha256::digest(file.as_os_str().as_encoded_bytes());
    let name = digest[..8]
        .iter()
        .fold(0, |name, byte| name << 8 | u64::from(*byte));
    Ok(folder()?.join(format!("{name:016x}.sock")))
}

/// systemd's, for a unit with `RuntimeDirectory=`; else the machine's for root and the session's for anybody else.
fn folder() -> io::Result<PathBuf> {
    let given = std::env::var_os("RUNTIME_DIRECTORY").filter(|folders| !folders.is_empty());
    if let Some(folders) = given {
        let first = std::env::split_paths(&folders).next();
        return first.ok_or_else(|| io::ErrorKind::NotFound.into());
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/run/lb"));
    }
    let session = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let session = session.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "neither RUNTIME_DIRECTORY nor XDG_RUNTIME_DIR names a folder for its socket",
        )
    })?;
    Ok(PathBuf::from(session).join("lb"))
}

impl Place {
    /// Makes the file, over that of an lb that is no more or has just been taken over from.
    pub(super) fn claim(source: &Source) -> io::Result<(Self, Door)> {
        let path = path(source)?;
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        if Channel::connect(&path).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another lb runs from the same file",
            ));
        }
        // Made aside and renamed, so that nobody ever finds none.
        let aside = path.with_extension(std::process::id().to_string());
        drop(fs::remove_file(&aside));
        let door = Door::open(&aside)?;
        let file = file(&aside)?;
        fs::rename(&aside, &path)?;
        Ok((Self { path, file }, door))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if file(&self.path).is_ok_and(|file| file == self.file) {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Which file it is.
fn file(path: &Path) -> io::Result<(u64, u64)> {
    let seen = fs::symlink_metadata(path)?;
    Ok((seen.dev(), seen.ino()))
}
