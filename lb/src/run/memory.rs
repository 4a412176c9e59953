//! How much memory this process may use.

use std::fs;
use std::path::{Path, PathBuf};

use crate::config::Server;

/// What request bodies may hold together: as configured, else a quarter. Bytes.
pub(super) fn for_buffers(server: &Server) -> u64 {
    server.buffer_bytes.unwrap_or_else(|| available() / 4)
}

/// The smaller of the machine's memory and the limits of this process's control groups. Bytes.
fn available() -> u64 {
    let info = rustix::system::sysinfo();
    let total = info.totalram.saturating_mul(u64::from(info.mem_unit));
    limit(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")).map_or(total, |limit| limit.min(total))
}

/// The least that any of the groups allows, the process's own and those above it.
fn limit(groups: &Path, mounted: &Path) -> Option<u64> {
    let groups = fs::read_to_string(groups).ok()?;
    let lines = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        match controllers {
            "" => Some((mounted.to_owned(), path, "memory.max")),
            _ if controllers.split(',').any(|name| name == "memory") => {
                Some((mounted.join("memory"), path, "memory.limit_in_bytes"))
            }
            _ => None,
        }
    });
    lines
        .flat_map(|(root, path, file)| {
            ancestors(&root, path)
                .map(move |group| group.join(file))
                .collect::<Vec<_>>()
        })
        .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
        .min()
}

fn ancestors<'a>(root: &'a Path, path: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    let own = Path::new(path.trim_start_matches('/'));
    own.ancestors().map(|group| root.join(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    // [BODY-1]
    #[test]
    fn the_least_of_all_groups_counts() {
        let folder = std::env::temp_dir().join(format!("lb-memory-{}", std::process::id()));
        let group = folder.join("system.slice/lb.service");
        fs::create_dir_all(&group).expect("a folder");
        let write = |path: PathBuf, text: &str| fs::write(path, text).expect("a file");
        write(folder.join("groups"), "0::/system.slice/lb.service\n");
        write(group.join("memory.max"), "max\n");
        write(folder.join("system.slice/memory.max"), "1000000\n");
        let found = limit(&folder.join("groups"), &folder);
        write(group.join("memory.max"), "4096\n");
        let nearer = limit(&folder.join("groups"), &folder);
        let none = limit(&folder.join("nothing"), &folder);
        drop(fs::remove_dir_all(&folder));
        assert_eq!((found, nearer, none), (Some(1_000_000), Some(4096), None));
        assert!(available() > 1 << 20);
    }
}
