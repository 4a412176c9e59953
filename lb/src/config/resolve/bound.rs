//! Bounds that the policies know.

use super::context::Context;
use crate::config::{diagnostic::Diagnostic, path::Path, raw::Maybe};
use crate::policy::OutOfBounds;

/// Reports a policy's own bound at the key that breaks it; its fields are named as the keys are.
pub(super) fn report(cx: &mut Context<'_>, at: &Path, fault: &OutOfBounds, code: &'static str) {
    let path = |key: &str| at.key(key).to_string();
    let place = |cx: &Context<'_>, key: &str| cx.document.root.find(&path(key)).map(|node| node.span);
    let words = fault
        .must
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    // The other key that the bound speaks of, if it speaks of one: that one may have moved the bound.
    let other = words
        .into_iter()
        .find(|word| cx.settings.iter().any(|setting| setting.key == path(word)));
    let (own, other_place) = (place(cx, fault.field), other.and_then(|other| place(cx, other)));
    let span = own.or(other_place).unwrap_or(cx.document.root.span);
    let key = path(fault.field);
    let value = |cx: &Context<'_>, key: &str| {
        cx.settings
            .iter()
            .find(|setting| setting.key == path(key))
            .map(|setting| setting.value.clone())
    };
    let is = if own.is_some() {
        "not"
    } else {
        "and its default is"
    };
    let message = format!(
        "`{key}` must {}, {is} {}",
        fault.must,
        value(cx, fault.field).unwrap_or_default()
    );
    let mut diagnostic = Diagnostic::error(code, span, message).at(key);
    match (own, other, other_place) {
        (Some(_), _, Some(other)) => diagnostic = diagnostic.also(other, "the other bound"),
        (Some(_), Some(other), None) => {
            let default = value(cx, other).unwrap_or_default();
            diagnostic = diagnostic.help(format!("`{other}` is at its default, {default}"));
        }
        (None, ..) => diagnostic = diagnostic.label("this moved the bound"),
        (Some(_), None, None) => {}
    }
    cx.report(diagnostic);
}

/// A number of which a policy knows the bounds.
pub(super) fn ratio(cx: &mut Context<'_>, at: &Path, key: &str, written: &Maybe<f64>, default: f64) -> f64 {
    cx.setting(at, key, written, Some(default.to_string()));
    written.as_ref().map_or(default, |written| written.value)
}
