//! `cargo xtask tidy`: the project's own rules, as far as a machine can check them.
//!
//! Each check is one file: a function from the tree's text to problems, so that its tests need no disk. What a
//! compiler or clippy can say is left to them.

use std::fmt::{self, Display, Formatter};

use crate::{
    command::{self, Failure, Result},
    suite,
};

mod configs;
mod keys;
mod layers;
mod licences;
mod links;
mod metrics;
mod rules;
mod rust;
mod sizes;
mod todo;
mod tree;

use tree::Tree;

/// One place where a rule is broken.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Problem {
    path: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    message: String,
}

impl Problem {
    fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            message: message.into(),
        }
    }

    fn whole(path: &str, message: impl Into<String>) -> Self {
        Self::at(path, 0, message)
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

pub(crate) fn run() -> Result {
    let tree = Tree::load(&command::root())?;
    let mut problems = Vec::new();
    for check in [
        layers::check,
        links::check,
        metrics::check,
        rules::check,
        sizes::check,
        todo::check,
    ] {
        problems.extend(check(&tree));
    }
    problems.extend(
        licences::check().unwrap_or_else(|failure| vec![Problem::whole("Cargo.lock", failure.to_string())]),
    );
    // Last, since these two need lb itself; the build is the one that the tests use.
    match suite::build_lb() {
        Ok(lb) => {
            problems.extend(keys::check(&tree, &lb));
            problems.extend(configs::check(&tree, &lb));
        }
        Err(failure) => problems.push(Problem::whole("lb", failure.to_string())),
    }

    problems.sort();
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!("problems that tidy found: {count}"))),
    }
}
