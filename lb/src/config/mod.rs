//! From text to a [`Config`] that cannot be wrong.

mod admin;
mod cidr;
mod listener;
mod model;
mod name;
mod observe;
mod preset;
mod provider;
mod secret;
mod server;
mod url;

pub use self::{
    admin::{Admin, Auth, ClientKey},
    cidr::{Cidr, NotACidr},
    listener::{Certificate, Listener, ListenerTls},
    model::{
        Fallback, FirstToken, Kind, Model, NamedPool, Pattern, Peek, Read, Strategy, StreamMode, Target,
    },
    name::{Name, model_name_fault},
    observe::{Log, LogFormat, LogLevel, Metrics},
    preset::{Failover, Preset},
    provider::{AuthHeader, ClientTls, Connections, Endpoint, Provider, Timeouts},
    secret::{ApiKey, Secret},
    server::{Reveal, Server},
    url::{Host, Scheme, Url, UrlFault},
};

/// Everything that was configured, resolved: no name is unknown, no value out of range, no default left open.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// At least one.
    pub listeners: Vec<Listener>,
    /// For operators.
    pub admin: Admin,
    /// For clients.
    pub auth: Auth,
    /// For the process.
    pub server: Server,
    /// At least one.
    pub providers: Vec<Provider>,
    /// At least one.
    pub models: Vec<Model>,
    /// What holds for every cascade.
    pub failover: Failover,
    /// In definition order.
    pub presets: Vec<Preset>,
    /// What is logged.
    pub log: Log,
    /// What is measured.
    pub metrics: Metrics,
}
