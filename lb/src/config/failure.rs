//! What comes of a file: a configuration, or the reasons why not.

use std::{io, path::PathBuf};

use super::{
    Config, Report, Setting,
    environment::{self, Need},
};

/// A configuration, and all that is known about it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What is in force.
    pub config: Config,
    /// What somebody should look at; no errors.
    pub warnings: Report,
    /// Every setting with its value and where that comes from, in the order of resolving.
    pub settings: Vec<Setting>,
    pub(super) needs: Vec<Need>,
}

impl Checked {
    /// Looks whether this machine has what the configuration needs: readable files, free addresses, known hosts.
    ///
    /// It opens files, binds addresses and asks the resolver, and so can take seconds.
    pub fn check_environment(&self) -> Report {
        Report {
            diagnostics: environment::check(&self.needs),
            ..self.warnings.clone()
        }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is read and cannot be used. The report has at least one error.
    #[error("{} has {} error(s)", .0.file, .0.errors())]
    Invalid(Report),
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
}

impl Failure {
    /// What the process ends with: 66 without a file, 78 with one that cannot be used (`sysexits.h`).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Invalid(_) => 78,
            Self::Unreadable { .. } => 66,
        }
    }
}
