//! A status in a list of statuses.

use schemars::JsonSchema;
use serde::Deserialize;

/// A status or a class of statuses.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "must be a status such as 503 or a class such as 5xx")]
pub(in crate::config) enum Status {
    /// One status.
    Code(u16),
    /// A class: 5xx, or 50x.
    Class(String),
}
