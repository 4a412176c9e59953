//! Puts renewed certificates to use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::listeners::Listeners;

/// How often the files are looked at. A look reads a few kilobytes; what tells of a change is their content, since a
/// renewal by symlink or by rename need not show in the times of the path that is configured.
const LOOK: Duration = Duration::from_secs(2);

/// Looks again and again. What cannot be used is said once, and the certificates before stay in use: between the
/// writing of a chain and that of its key there is always a moment in which they do not match.
pub(super) async fn keep_fresh(listeners: Arc<Listeners>) {
    let mut complaints: BTreeMap<String, String> = BTreeMap::new();
    let mut ticks = tokio::time::interval(LOOK);
    loop {
        ticks.tick().await;
        for bound in listeners.live() {
            let Some(identity) = bound.identity() else {
                continue;
            };
            let listener = bound.name().to_string();
            match identity.refresh() {
                // What is in use already may have been put back in the place of what could not be used.
                Ok(false) => drop(complaints.remove(&listener)),
                Ok(true) => {
                    complaints.remove(&listener);
                    tracing::info!(listener, "certificates renewed");
                }
                Err(error) => {
                    let error = error.to_string();
                    if complaints.get(&listener) != Some(&error) {
                        tracing::error!(listener, %error, "certificates not renewed: those before stay in use");
                        complaints.insert(listener, error);
                    }
                }
            }
        }
    }
}
