//! Bounds that the policies know.

use super::context::Context;
use crate::config::{diagnostic::Diagnostic, path::Path, raw::Maybe};
use crate::policy::OutOfBounds;

/// Reports a policy's own bound at the key that breaks it; its fields are named as the keys are.
pub(super) fn report_bound(cx: &mut Context<'_>, at: &Path, fault: &OutOfBounds, code: &'static str) {
    let key = at.key(fault.field).to_string();
    let find = |key: &str| cx.document.root.find(key).map(|node| node.span);
    // A bound that names another key can be broken by that key alone.
    let other = fault
        .must
        .split(['[', '(', ',', ' ', ')', ']'])
        .find_map(|word| find(&at.key(word).to_string()));
    match (find(&key), other) {
        (Some(span), other) => {
            let message = format!("`{key}` must {}, not {}", fault.must, cx.shown(span));
            let mut diagnostic = Diagnostic::error(code, span, message).at(key);
            if let Some(other) = other {
                diagnostic = diagnostic.also(other, "the other bound");
            }
            cx.report(diagnostic);
        }
        (None, Some(other)) => {
            let message = format!("`{key}`, which is at its default, must {}", fault.must);
            cx.report(Diagnostic::error(code, other, message).label("this moved the bound"));
        }
        (None, None) => cx.report(
            Diagnostic::error(
                code,
                cx.document.root.span,
                format!("`{key}` must {}", fault.must),
            )
            .at(key),
        ),
    }
}
