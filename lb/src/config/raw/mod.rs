//! The shape of the file: which keys there are and of which type. Nothing here is checked against anything else.
//!
//! Each key is documented once, here; `lb schema` hands the texts to editors. Defaults and bounds are in
//! [`super::resolve`], except those of what this version lacks ([`super::later`]).

#![expect(
    clippy::ref_option,
    reason = "what may be left out is passed as it stands in the shape"
)]

mod front;
mod model;
mod process;
mod provider;
mod route;
mod status;
mod traffic;

use schemars::JsonSchema;
use serde::Deserialize;

use super::span::{Entries, Spanned};

pub(super) use self::{
    front::{Admin, Auth, ClientKey, Listener, ListenerTls, Server},
    model::{Aimd, Failover, Fallback, Kind, Model, Peek, Preset, Scope, Target},
    process::{Attach, Kernel, Log, LogFormat, Metrics, Rst, Signals, Steps, Store, Tracing},
    provider::{Balance, ClientTls, Connections, Dns, Endpoint, Provider, Timeouts},
    route::{HeaderChanges, Match, Route, To},
    status::Status,
    traffic::{Active, Adaptive, Breaker, Health, ProbeKind, RateLimit, Retries},
};

/// A value that may be left out.
pub(super) type Maybe<T> = Option<Spanned<T>>;

/// The items of a list that may be left out.
pub(super) fn items<T>(written: &Maybe<Vec<T>>) -> &[T] {
    written.as_ref().map_or(&[], |written| &written.value)
}

/// The entries of a mapping that may be left out.
pub(super) fn entries<T>(written: &Maybe<Entries<T>>) -> &[(Spanned<String>, T)] {
    written.as_ref().map_or(&[], |written| &written.value.0)
}

/// The configuration of lb.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Version of the format: 1.
    pub(super) version: Spanned<u64>,
    /// What clients connect to. At least one.
    pub(super) listeners: Maybe<Vec<Spanned<Listener>>>,
    /// Probes, metrics and the API for operators.
    pub(super) admin: Option<Admin>,
    /// Client keys.
    pub(super) auth: Option<Auth>,
    /// The process as a whole.
    pub(super) server: Option<Server>,
    /// Which requests go where; the first match wins. Default: everything under /v1/ by the body's "model".
    pub(super) routes: Maybe<Vec<Route>>,
    /// Where requests can go, by name. At least one.
    pub(super) providers: Maybe<Entries<Spanned<Provider>>>,
    /// What a client may put in "model", by name; `*` catches all others, `prefix/*` a family. At least one.
    pub(super) models: Maybe<Entries<Spanned<Model>>>,
    /// Defaults of every model and preset.
    pub(super) failover: Option<Failover>,
    /// Named entry points with fallback chains; clients send the name as "model".
    #[serde(default)]
    pub(super) presets: Entries<Spanned<Preset>>,
    /// What the kernel is asked to watch.
    pub(super) kernel: Option<Kernel>,
    /// Where the model API keeps its overrides.
    pub(super) store: Option<Store>,
    /// What is logged.
    pub(super) log: Option<Log>,
    /// What is measured.
    pub(super) metrics: Option<Metrics>,
    /// Spans for a collector.
    pub(super) tracing: Option<Tracing>,
}
