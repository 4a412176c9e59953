//! The daemon's own cgroup, for the hooks that see the segments of its sockets and of nobody else's.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// A directory of the cgroup2 hierarchy with this process in it.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    /// Where to go back to, if this cgroup was made for the process.
    parent: Option<PathBuf>,
}

/// What cgroups made by this module are called, before the process's number.
const PREFIX: &str = "lb-";

impl Cgroup {
    /// The cgroup that the process is in; where that is the root (outside a service or a container), a new one below
    /// it, since a program on the root would see the sockets of everybody. [KERNEL-15]
    pub(super) fn own() -> io::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let membership = fs::read_to_string("/proc/self/cgroup")?;
        let path = locate(&mounts, &membership).ok_or(io::ErrorKind::NotFound)?;
        match path {
            Located::Inside(path) => Ok(Self { path, parent: None }),
            Located::Root(root) => Self::below(root),
        }
    }

    fn below(root: PathBuf) -> io::Result<Self> {
        sweep(&root);
        let path = root.join(format!("{PREFIX}{}", process::id()));
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let cgroup = Self {
            path,
            parent: Some(root),
        };
        join(&cgroup.path)?;
        Ok(cgroup)
    }

    /// The directory, for an attachment.
    pub(super) fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let Some(parent) = &self.parent else { return };
        // The process is usually about to end; what cannot be tidied up now is swept by the next start.
        if join(parent).is_ok() {
            drop(fs::remove_dir(&self.path));
        }
    }
}

fn join(cgroup: &Path) -> io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), process::id().to_string())
}

/// Removes what killed daemons left behind. The kernel refuses to remove a cgroup with a process in it.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        if entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX))
        {
            drop(fs::remove_dir(entry.path()));
        }
    }
}

/// Where the process's cgroup is.
#[derive(Debug, PartialEq, Eq)]
enum Located {
    /// The root of the hierarchy, as far as this process can see.
    Root(PathBuf),
    /// Further down.
    Inside(PathBuf),
}

/// Finds the cgroup2 directory of the process from `/proc/self/mountinfo` and `/proc/self/cgroup`; `None` if there is no
/// such hierarchy or the process's part of it is not mounted.
fn locate(mounts: &str, membership: &str) -> Option<Located> {
    let path = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        // 36 35 98:0 /root /mount/point options [optional fields] - type source options
        let (place, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = place.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        let inside = Path::new(path).strip_prefix(root).ok()?;
        let outside = inside.components().any(|part| part.as_os_str() == "..");
        if outside {
            return None;
        }
        let mount = PathBuf::from(mount);
        let top = inside.as_os_str().is_empty();
        Some(if top {
            Located::Root(mount)
        } else {
            Located::Inside(mount.join(inside))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = "33 24 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                          41 24 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn inside(path: &str) -> Located {
        Located::Inside(PathBuf::from(path))
    }

    #[test]
    fn a_service_finds_its_own_cgroup() {
        assert_eq!(
            locate(UNIFIED, "0::/system.slice/lb.service\n"),
            Some(inside("/sys/fs/cgroup/system.slice/lb.service"))
        );
    }

    // [KERNEL-15]
    #[test]
    fn a_process_at_the_top_is_told_so() {
        assert_eq!(
            locate(HYBRID, "9:name=systemd:/\n0::/\n"),
            Some(Located::Root(PathBuf::from("/sys/fs/cgroup/unified")))
        );
    }

    #[test]
    fn a_part_of_the_hierarchy_mounted_into_a_container_is_the_root_there() {
        let mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(
            locate(mounts, "0::/docker/abc/inner\n"),
            Some(inside("/sys/fs/cgroup/inner"))
        );
        assert_eq!(
            locate(mounts, "0::/docker/abc\n"),
            Some(Located::Root(PathBuf::from("/sys/fs/cgroup")))
        );
    }

    #[test]
    fn what_is_not_mounted_is_not_found() {
        assert_eq!(locate("", "0::/\n"), None);
        assert_eq!(locate(UNIFIED, "4:memory:/\n"), None);
        assert_eq!(locate(UNIFIED, "0::/../elsewhere\n"), None);
    }
}
