//! Bounds of what this version reads and does not use yet ([`crate::config::later`]).
//!
//! They are checked all the same: a value that no version takes should be told apart from one that a later version
//! will.

use super::{context::Context, process::cidr};
use crate::config::{
    diagnostic::Diagnostic,
    raw::{self, Maybe},
};

/// A bound on a whole cascade or visit.
pub(super) fn total_deadline(cx: &mut Context<'_>, written: &Maybe<u64>) {
    if let Some(zero) = written.as_ref().filter(|written| written.value == 0) {
        let key = cx.document.root.path_of(zero.span);
        let message = format!("`{key}` cannot be 0: no attempt could be made");
        cx.report(
            Diagnostic::error("E220", zero.span, message)
                .at(key)
                .help("leave it out for no limit"),
        );
    } else {
        cx.bounds(written, "E220", 1..=600_000);
    }
}

/// What the kernel is to drop before the stack sees it.
pub(super) fn guard(cx: &mut Context<'_>, raw: &raw::Kernel) {
    let Some(guard) = &raw.guard else { return };
    for range in guard.deny.iter().flat_map(|deny| &deny.value) {
        cidr(cx, range);
    }
    if let Some(syn) = &guard.syn_per_source {
        cx.bounds(&syn.rate, "E255", 1..=u64::from(u32::MAX));
        cx.bounds(&syn.burst, "E255", 1..=u64::from(u32::MAX));
    }
}

pub(super) fn store(cx: &mut Context<'_>, file: &raw::File) {
    if let Some(url) = file.store.as_ref().and_then(|store| store.url.as_ref()) {
        let scheme = url.value.split("://").next().unwrap_or_default();
        if matches!(scheme, "postgres" | "postgresql") {
            let message = "this build of lb does not know PostgreSQL";
            cx.report(Diagnostic::error("E310", url.span, message).help("use sqlite:///path"));
        }
    }
}
