//! Says in words what did not fit the shape of the file.

use super::{
    de::{Fault, FaultKind},
    diagnostic::Diagnostic,
    document::Document,
    suggest::did_you_mean,
};

/// The diagnostic of `fault`.
pub(super) fn describe(fault: Fault, document: &Document) -> Diagnostic {
    let span = fault.span.unwrap_or(document.root.span);
    let path = fault.path().to_string();
    let error = |message: String| Diagnostic::error("E001", span, message).at(path.clone());
    match fault.kind {
        FaultKind::Missing(key) => {
            error(format!("{} lacks the key `{key}`", place(&path))).help(format!("add `{key}: …`"))
        }
        FaultKind::UnknownKey { known } => {
            let key = document.shown(span);
            let key = key.trim_matches(['"', '\'']);
            let likely = did_you_mean(key, known.iter().copied());
            error(format!("unknown key `{key}` in {}", place(&path)))
                .help(likely.unwrap_or_else(|| format!("the keys here are {}", list(known))))
        }
        FaultKind::UnknownWord { known } => {
            let word = document.shown(span);
            error(format!("`{path}` must be one of {}, not {word}", list(known)))
                .help_if(did_you_mean(&word, known.iter().copied()))
        }
        FaultKind::Type { must, is } => {
            error(format!("`{path}` must be {must}, not {is}")).help_if(unit_help(&path).map(str::to_owned))
        }
        FaultKind::Other(message) => error(format!("`{path}` {message}")),
    }
}

fn place(path: &str) -> String {
    if path.is_empty() {
        "the file".to_owned()
    } else {
        format!("`{path}`")
    }
}

fn list(known: &[&str]) -> String {
    known
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// What a number under such a key counts.
fn unit_help(path: &str) -> Option<&'static str> {
    match () {
        () if path.ends_with("_ms") => Some("write whole milliseconds without a unit, such as 5000"),
        () if path.ends_with("_bytes") => Some("write bytes without a unit, such as 1048576"),
        () => None,
    }
}
