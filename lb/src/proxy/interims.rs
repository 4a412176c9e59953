//! Interim responses (RFC 9110, 15.2) on their way from a provider to a client.

use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Context;

use http::Version;

use super::headers;
use super::http1::Ahead;
use super::route;
use crate::config::HeaderChanges;
use crate::wire::http1::{Interim, MAX_INTERIM};

/// Passes those of one request on.
#[derive(Debug)]
pub(super) struct Interims<'a> {
    ahead: &'a Ahead,
    changes: &'a HeaderChanges,
    /// How many more may pass, over all attempts.
    left: AtomicU8,
}

impl<'a> Interims<'a> {
    /// To a client that speaks `version`; `None` where it would not understand them, or there is no way to send them.
    pub(super) fn to(ahead: Option<&'a Ahead>, version: Version, changes: &'a HeaderChanges) -> Option<Self> {
        let ahead = ahead.filter(|_| version == Version::HTTP_11)?;
        Some(Self {
            ahead,
            changes,
            left: AtomicU8::new(MAX_INTERIM),
        })
    }

    /// Sends one at once. It says nothing of how the request will end.
    pub(super) fn pass(&self, mut interim: Interim, cx: &mut Context<'_>) {
        let left = self.left.load(Ordering::Relaxed);
        let Some(left) = left.checked_sub(1) else { return };
        self.left.store(left, Ordering::Relaxed);
        headers::disown(&mut interim.headers);
        route::change(&mut interim.headers, self.changes);
        self.ahead.say(interim.status, &interim.headers, cx);
    }
}
