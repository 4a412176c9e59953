//! What does not fit, and where.

use std::fmt;

use serde::de;

use crate::config::{
    Span,
    path::{Path, Step},
};

/// The first thing that does not fit, and where.
#[derive(Debug)]
pub(in crate::config) struct Fault {
    pub(in crate::config) kind: FaultKind,
    pub(in crate::config) span: Option<Span>,
    /// From the value at fault up to the top; of a key, from the block that it stands in.
    pub(in crate::config) steps: Vec<Step>,
}

#[derive(Debug)]
pub(in crate::config) enum FaultKind {
    /// A key that must be there is not.
    Missing(&'static str),
    /// Anything else, said in words.
    Other(String),
    /// A value of the wrong type: what it must be, and what it is.
    Type { must: &'static str, is: &'static str },
    /// A key that is not known here, and those that are.
    UnknownKey { known: &'static [&'static str] },
    /// A word that is not known here, and those that are.
    UnknownWord { known: &'static [&'static str] },
}

impl Fault {
    pub(super) fn new(kind: FaultKind) -> Self {
        Self {
            kind,
            span: None,
            steps: Vec::new(),
        }
    }

    /// The way to the value at fault.
    pub(in crate::config) fn path(&self) -> Path {
        self.steps
            .iter()
            .rev()
            .fold(Path::default(), |path, step| path.then(step))
    }

    /// Adds a step to the way, seen from below.
    pub(super) fn below(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Places a fault that has no place yet.
    pub(super) fn within(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(FaultKind::Other(message.to_string()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(FaultKind::Missing(field))
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::new(FaultKind::UnknownKey { known })
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::new(FaultKind::UnknownWord { known })
    }
}
