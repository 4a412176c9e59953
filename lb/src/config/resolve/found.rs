//! What several parts look for.

use std::path::PathBuf;

use super::context::Context;
use crate::config::{
    diagnostic::Diagnostic,
    environment::{Need, What},
    raw::Maybe,
    span::Spanned,
};

/// Reports every key of `items` that an earlier one already has.
pub(super) fn duplicates<'i, K: PartialEq>(
    cx: &mut Context<'_>,
    what: &str,
    items: impl Iterator<Item = (&'i Spanned<String>, K)>,
) {
    let mut seen: Vec<(&Spanned<String>, K)> = Vec::new();
    for (written, key) in items {
        if let Some((first, _)) = seen.iter().find(|(_, known)| *known == key) {
            let message = format!("the {what} `{}` is given twice", cx.shown(written.span));
            cx.report(
                Diagnostic::error("E106", written.span, message)
                    .label("the second one")
                    .also(first.span, "the first one"),
            );
        } else {
            seen.push((written, key));
        }
    }
}

/// Notes what the machine must have for `written` to work.
pub(super) fn need(cx: &mut Context<'_>, written: &Spanned<String>, what: What) {
    let key = cx.document.root.path_of(written.span);
    cx.needs.push(Need {
        span: written.span,
        key,
        what,
    });
}

/// The same for a file that may be left out.
pub(super) fn need_file(cx: &mut Context<'_>, written: &Maybe<String>, what: impl FnOnce(PathBuf) -> What) {
    if let Some(written) = written {
        need(cx, written, what(PathBuf::from(&written.value)));
    }
}
