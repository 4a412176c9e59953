//! Lists of statuses.

use super::context::Context;
use crate::config::{
    path::Path,
    raw::{Maybe, Status},
    span::Spanned,
};
use crate::policy::outcome::StatusSet;

/// Which leading digits a list may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Allowed {
    /// Errors: 400 to 599.
    Errors,
    /// What a probe may expect: 200 to 599.
    Answers,
}

/// A list of statuses, or `default` where nothing is written.
pub(super) fn list(
    cx: &mut Context<'_>,
    at: &Path,
    key: &str,
    written: &Maybe<Vec<Spanned<Status>>>,
    default: &[u16],
) -> StatusSet {
    let shown = default.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    cx.setting(at, key, written, Some(format!("[{shown}]")));
    match written {
        None => default.iter().copied().collect(),
        Some(written) => read(cx, &written.value, Allowed::Errors),
    }
}

/// The set that `items` mean, with a report for each that means nothing.
pub(super) fn read(cx: &mut Context<'_>, items: &[Spanned<Status>], allowed: Allowed) -> StatusSet {
    let mut set = StatusSet::default();
    for item in items {
        let known = match &item.value {
            Status::Code(code) => code_within(*code, allowed).then(|| set.insert(*code)),
            Status::Class(class) => digits(class, allowed).map(|digits| set.insert_class(digits)),
        };
        if known.is_none() {
            let must = match allowed {
                Allowed::Errors => "be a status from 400 to 599 or a class such as 5xx or 50x",
                Allowed::Answers => "be a status from 200 to 599 or a class such as 2xx or 20x",
            };
            cx.out_of_bounds(item.span, "E250", must);
        }
    }
    set
}

fn code_within(code: u16, allowed: Allowed) -> bool {
    match allowed {
        Allowed::Errors => (400..600).contains(&code),
        Allowed::Answers => (200..600).contains(&code),
    }
}

/// The leading digits of a class: 5 of `5xx`, 50 of `50x`.
fn digits(class: &str, allowed: Allowed) -> Option<u16> {
    let digits = class.trim_end_matches(['x', 'X']);
    if class.len() != 3 || !matches!(digits.len(), 1 | 2) {
        return None;
    }
    let value: u16 = digits.parse().ok()?;
    let first = if value < 10 { value * 100 } else { value * 10 };
    code_within(first, allowed).then_some(value)
}
