//! The configuration's file: reading it, and noticing that it has changed.
//!
//! What is watched is the folder, not the file: an editor renames a new file over the old one, and Kubernetes exchanges
//! a symbolic link beside it. An event says only that it is time to look. What counts is that the content is another one
//! and that nothing has been written for a while, so a burst of changes is one reload, and a half-written file is read
//! only if its writer pauses for longer than that. A slow look besides sees what no event tells of: files on the network,
//! links to other places, a folder that was exchanged whole.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use sha2::{Digest as _, Sha256};
use tokio::net::unix::pipe;

use crate::config::{self, ApiKey, Checked, Config, Failure};

/// How long a file has to rest before it is read.
const STILL: Duration = Duration::from_millis(300);

/// How often is looked without an event.
const LOOK: Duration = Duration::from_secs(5);

/// How long events are gathered before a look: others may write to the folder without end.
const GATHER: Duration = Duration::from_millis(50);

/// Where a configuration comes from.
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
}

impl Source {
    /// The file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it, with variables from this process's environment.
    pub fn load(&self) -> Result<Checked, Failure> {
        config::load(&self.path, &|name| std::env::var(name).ok())
    }

    /// What the file holds now, and the files with secrets that `config` names.
    pub(super) fn look(&self, config: &Config) -> Seen {
        let mut files = vec![self.path.clone()];
        files.extend(config.auth.keys.iter().map(|key| key.sha256_file.clone()));
        files.extend(config.admin.token_file.clone());
        for provider in &config.providers {
            files.extend(provider.tls.ca_file.clone());
            if let Some(ApiKey::File(path)) = &provider.api_key {
                files.push(path.clone());
            }
        }
        let content = content(&files);
        Seen { files, content }
    }
}

/// What files held.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    files: Vec<PathBuf>,
    content: [u8; 32],
}

impl Seen {
    /// The same files as before, and those of `config` instead of the ones that it names no more.
    pub(super) fn follow(&mut self, source: &Source, config: &Config) {
        let before = std::mem::take(&mut self.files);
        let now = source.look(config);
        // What has changed since it was read is still to be noticed, so only another list of files is taken as read.
        if now.files == before {
            self.files = before;
        } else {
            *self = now;
        }
    }

    /// Waits until they hold something else and have rested.
    pub(super) async fn changed(&self) {
        let events = match Events::new(&self.files) {
            Ok(events) => Some(events),
            Err(error) => {
                tracing::warn!(%error, "changes of the configuration's file are noticed late");
                None
            }
        };
        loop {
            let marks = marks(&self.files);
            if content(&self.files) == self.content {
                wait(events.as_ref()).await;
                continue;
            }
            tokio::time::sleep(STILL).await;
            if self::marks(&self.files) == marks {
                return;
            }
        }
    }
}

/// Waits for an event, or for the time of a look without one.
async fn wait(events: Option<&Events>) {
    let event = async {
        match events {
            Some(events) => {
                events.next().await;
                tokio::time::sleep(GATHER).await;
            }
            None => std::future::pending().await,
        }
    };
    drop(tokio::time::timeout(LOOK, event).await);
}

/// Of what the files hold; one that cannot be read is like no other.
fn content(files: &[PathBuf]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for file in files {
        match std::fs::read(file) {
            Ok(bytes) => {
                hasher.update(bytes.len().to_le_bytes());
                hasher.update(bytes);
            }
            Err(_) => hasher.update(u64::MAX.to_le_bytes()),
        }
    }
    hasher.finalize().into()
}

/// What every write changes: file, length, and times to the nanosecond.
type Mark = Option<(u64, u64, u64, [i64; 4])>;

fn marks(files: &[PathBuf]) -> Vec<Mark> {
    let mark = |file: &PathBuf| {
        let seen = std::fs::metadata(file).ok()?;
        let times = [seen.mtime(), seen.mtime_nsec(), seen.ctime(), seen.ctime_nsec()];
        Some((seen.dev(), seen.ino(), seen.size(), times))
    };
    files.iter().map(mark).collect()
}

/// Events of the folders of some files.
struct Events(pipe::Receiver);

impl Events {
    fn new(files: &[PathBuf]) -> io::Result<Self> {
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut folders = BTreeSet::new();
        for file in files {
            // Where the file is named, and where it is.
            folders.extend(folder(file));
            folders.extend(file.canonicalize().ok().as_deref().and_then(folder));
        }
        for folder in folders {
            if let Err(error) = inotify::add_watch(&events, &folder, flags()) {
                // The slow look goes there too.
                tracing::debug!(folder = %folder.display(), %error, "not watched");
            }
        }
        // Not a pipe, but read and waited for like one.
        Ok(Self(pipe::Receiver::from_owned_fd_unchecked(events)?))
    }

    /// Waits for events, and takes all that there are.
    async fn next(&self) {
        if self.0.readable().await.is_err() {
            return;
        }
        let mut buffer = [0; 4096];
        while matches!(self.0.try_read(&mut buffer), Ok(1..)) {}
    }
}

fn flags() -> WatchFlags {
    WatchFlags::ATTRIB
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MODIFY
        | WatchFlags::MOVE
        | WatchFlags::ONLYDIR
}

fn folder(file: &Path) -> Option<PathBuf> {
    let parent = file.parent()?;
    Some(if parent.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        parent.to_owned()
    })
}

#[cfg(test)]
mod tests;
