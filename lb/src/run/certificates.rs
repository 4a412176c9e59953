//! Puts renewed certificates to use.

use std::sync::Arc;
use std::time::Duration;

use crate::proxy::{Bound, Identity};

/// How often the files are looked at. A look reads a few kilobytes; what tells of a change is their content, since a
/// renewal by symlink or by rename need not show in the times of the path that is configured.
const LOOK: Duration = Duration::from_secs(2);

/// The listeners that have certificates, by name.
pub(super) fn of(bound: &[Bound]) -> Vec<(String, Arc<Identity>)> {
    let one = |bound: &Bound| Some((bound.name.clone(), Arc::clone(bound.identity.as_ref()?)));
    bound.iter().filter_map(one).collect()
}

/// Looks again and again. What cannot be used is said once, and the certificates before stay in use: between the
/// writing of a chain and that of its key there is always a moment in which they do not match.
pub(super) async fn keep_fresh(identities: Vec<(String, Arc<Identity>)>) {
    let mut complaints = vec![None; identities.len()];
    let mut ticks = tokio::time::interval(LOOK);
    loop {
        ticks.tick().await;
        for ((listener, identity), complaint) in identities.iter().zip(&mut complaints) {
            match identity.refresh() {
                Ok(false) => {}
                Ok(true) => {
                    *complaint = None;
                    tracing::info!(listener, "certificates renewed");
                }
                Err(error) => {
                    let error = error.to_string();
                    if complaint.as_ref() != Some(&error) {
                        tracing::error!(listener, %error, "certificates not renewed: those before stay in use");
                        *complaint = Some(error);
                    }
                }
            }
        }
    }
}
