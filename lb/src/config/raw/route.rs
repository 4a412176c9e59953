//! Which requests go where.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Maybe;
use crate::config::span::{Entries, Spanned};

/// Which requests go where.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Route {
    /// Which requests; all that is given must fit.
    #[serde(default)]
    pub(in crate::config) r#match: Match,
    /// To `models`, by the body's "model", or straight to a provider.
    pub(in crate::config) to: Spanned<To>,
    /// The model of a request that names none.
    pub(in crate::config) default_model: Maybe<String>,
    /// What takes the place of the path prefix that matched.
    pub(in crate::config) rewrite_prefix: Maybe<String>,
    /// Changes to the headers of requests.
    pub(in crate::config) request_headers: Option<HeaderChanges>,
    /// Changes to the headers of responses.
    pub(in crate::config) response_headers: Option<HeaderChanges>,
}

/// Which requests a route takes.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Match {
    /// How the path begins, in whole segments: /a and /a/ both take /a and /a/b, and not /ab.
    pub(in crate::config) path_prefix: Maybe<String>,
    /// The host the request is for, without its port; *.example.com takes every name under example.com.
    pub(in crate::config) host: Maybe<String>,
    /// Headers and their exact values.
    #[serde(default)]
    pub(in crate::config) headers: Entries<Spanned<String>>,
}

/// Changes to headers.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct HeaderChanges {
    /// Headers that are given this value, whatever they were.
    #[serde(default)]
    pub(in crate::config) set: Entries<Spanned<String>>,
    /// Headers that are left out.
    pub(in crate::config) remove: Maybe<Vec<Spanned<String>>>,
}

/// Where a route leads.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "must be `models` or a block with `provider`")]
pub(in crate::config) enum To {
    /// By the JSON body's "model".
    Models(ToModels),
    /// To this provider, whatever the request is.
    Provider(ToProvider),
}

/// A provider.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct ToProvider {
    /// Name of the provider.
    pub(in crate::config) provider: String,
}

/// The word `models`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum ToModels {
    /// By the JSON body's "model".
    Models,
}
