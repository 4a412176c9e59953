//! Why there is no kernel plane, or less of it than asked for: one line each.

use std::error::Error;
use std::io;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use aya::programs::tc::TcError;

/// What is in the way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// The binary was built without them.
    #[error("this build has no kernel programs (`cargo xtask build-ebpf` makes them)")]
    Programs,
    /// Programs of another version of lb.
    #[error("the kernel programs are of another version of lb (`cargo xtask build-ebpf` makes them anew)")]
    Layout,
    /// Too little privilege.
    #[error("{what}: not permitted (needs {needs})")]
    Privilege {
        /// What was tried.
        what: String,
        /// What would do.
        needs: &'static str,
    },
    /// The kernel cannot or will not.
    #[error("{what}: {why}")]
    Kernel {
        /// What was tried.
        what: String,
        /// What came of it, in one line.
        why: String,
    },
}

impl Missing {
    /// Whether privilege is all that is missing: exit status 77 rather than 69 where the plane is required.
    pub fn is_privilege(&self) -> bool {
        matches!(self, Self::Privilege { .. })
    }

    /// From an error met while trying `what` with the cgroup's directory, which no capability opens.
    pub(super) fn of_cgroup(what: &str, error: &io::Error) -> Self {
        let what = what.to_owned();
        if error.kind() == io::ErrorKind::PermissionDenied {
            return Self::Privilege {
                what,
                needs: "a cgroup that this user may write to",
            };
        }
        Self::Kernel {
            what,
            why: one_line(error),
        }
    }

    /// From an error met while trying `what`.
    pub(super) fn new(what: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        let what = what.into();
        match errno(error) {
            Some(libc::EPERM | libc::EACCES) if !refused_by_verifier(error) => Self::Privilege {
                what,
                needs: "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON",
            },
            Some(number) => Self::Kernel {
                what,
                why: io::Error::from_raw_os_error(number).to_string(),
            },
            None => Self::Kernel {
                what,
                why: one_line(error),
            },
        }
    }
}

/// The verifier says EACCES as well when it refuses a program, and then its log says more than the number. "Prohibited"
/// in the log is privilege again: without `CAP_PERFMON` it forbids pointer arithmetic that it would otherwise follow.
fn refused_by_verifier(error: &(dyn Error + 'static)) -> bool {
    let Some(ProgramError::LoadError { verifier_log, .. }) = error.downcast_ref() else {
        return false;
    };
    let log = verifier_log.to_string();
    !log.is_empty() && !log.contains("prohibited")
}

fn one_line(error: &(dyn Error + 'static)) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// The number behind an error of aya, which hides it in one of several wrappings.
pub(super) fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return error.raw_os_error();
    }
    match error.downcast_ref() {
        Some(TcError::NetlinkError(error)) => return error.raw_os_error(),
        Some(TcError::IoError(error)) => return error.raw_os_error(),
        _ => {}
    }
    if let Some(error) = error.downcast_ref::<ProgramError>() {
        match error {
            ProgramError::TcError(error) => return errno(error),
            ProgramError::NetlinkError(error) => return error.raw_os_error(),
            ProgramError::MapError(error) => return errno(error),
            ProgramError::IOError(error) => return error.raw_os_error(),
            ProgramError::LoadError { io_error, .. } => return io_error.raw_os_error(),
            _ => {}
        }
    }
    if let Some(EbpfError::MapError(error)) = error.downcast_ref() {
        return errno(error);
    }
    if let Some(MapError::CreateError { io_error, .. }) = error.downcast_ref() {
        return io_error.raw_os_error();
    }
    errno(error.source()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(number: i32) -> ProgramError {
        ProgramError::IOError(io::Error::from_raw_os_error(number))
    }

    // [KERNEL-17]
    #[test]
    fn missing_privilege_is_told_from_a_kernel_that_cannot() {
        let missing = Missing::new("loading lb_tc_in", &refused(libc::EPERM));
        assert!(missing.is_privilege());
        assert_eq!(
            missing.to_string(),
            "loading lb_tc_in: not permitted (needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON)"
        );
        let missing = Missing::new("attaching to eth0", &refused(libc::EOPNOTSUPP));
        assert!(!missing.is_privilege());
        assert_eq!(
            missing.to_string(),
            "attaching to eth0: Operation not supported (os error 95)"
        );
    }
}
