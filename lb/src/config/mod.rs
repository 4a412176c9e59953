//! From text to a [`Config`] that cannot be wrong.
//!
//! ```text
//! text ─yaml─▶ tree of values with places ─interpolate─▶ the same with variables replaced
//!      ─de─▶ raw: the shape of the file ─resolve─▶ Config, and every problem at once
//! ```
//!
//! Syntax and types stop at the first fault, since nothing after it can be trusted; faults of meaning are all found
//! together. Nothing that came from the environment, and no secret, is ever part of a message: what is shown of a
//! value is what the file says, with secrets masked ([`mask`]).
//!
//! Knobs whose machinery comes later are known, and refused unless they are at their defaults ([`later`]).

mod admin;
mod cidr;
mod de;
mod diagnostic;
mod document;
mod environment;
mod explain;
mod failure;
mod fault;
mod interpolate;
mod kernel;
mod later;
mod listener;
mod mask;
mod model;
mod name;
mod node;
mod observe;
mod path;
mod preset;
mod provider;
#[expect(
    dead_code,
    reason = "every key is known; those in `later` are read once their machinery is there"
)]
mod raw;
mod report;
mod resolve;
mod route;
mod schema;
mod secret;
mod server;
mod span;
mod suggest;
mod traffic;
mod url;
mod yaml;

use std::{fs, path::Path as FilePath};

pub use self::{
    admin::{Admin, Auth, ClientKey},
    cidr::{Cidr, NotACidr},
    diagnostic::{Diagnostic, Label, Severity},
    explain::{Origin, Setting},
    failure::{Checked, Failure},
    kernel::{Attach, Kernel, KernelMode, Signals, Steps},
    listener::{Certificate, Listener, ListenerTls, Place, ProxyProtocol},
    model::{
        Affinity, Fallback, FirstToken, Kind, Model, NamedPool, Notice, Pattern, Peek, Read, Strategy,
        StreamMode, Target,
    },
    name::{Name, model_name_fault},
    observe::{Log, LogFormat, LogLevel, Metrics, Tracing},
    preset::{Failover, Preset},
    provider::{
        AuthHeader, ClientTls, ConnectProxy, Connections, Dns, Endpoint, HttpVersion, Provider, Retries,
        Timeouts,
    },
    report::Report,
    route::{HeaderChanges, HostPattern, Match, Route, To},
    schema::schema,
    secret::{ApiKey, Secret},
    server::{Reveal, Server},
    span::Span,
    traffic::{Balance, HashKey, Pending, Probe, ProbeKind, RateLimit},
    url::{Host, Scheme, Url, UrlFault},
};
use self::{diagnostic::Diagnostic as Problem, document::Document, interpolate::Environment};

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
    /// Which requests go where; the first that matches takes a request.
    pub routes: Vec<Route>,
    /// At least one.
    pub providers: Vec<Provider>,
    /// At least one.
    pub models: Vec<Model>,
    /// What holds for every cascade.
    pub failover: Failover,
    /// In definition order.
    pub presets: Vec<Preset>,
    /// What the kernel is asked to watch.
    pub kernel: Kernel,
    /// What is logged.
    pub log: Log,
    /// What is measured.
    pub metrics: Metrics,
    /// What is traced.
    pub tracing: Tracing,
}

/// Reads the configuration in the file at `path`, with variables from `environment`.
pub fn load(path: &FilePath, environment: &dyn Fn(&str) -> Option<String>) -> Result<Checked, Failure> {
    let bytes = fs::read(path).map_err(|error| Failure::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    let file = path.display().to_string();
    match String::from_utf8(bytes) {
        Ok(text) => parse(&text, &file, environment),
        Err(error) => {
            let start = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes());
            let problem = Problem::error("E001", Span { start, end: start }, "this is not UTF-8 text")
                .help("save the file as UTF-8");
            Err(Failure::Invalid(Report {
                file,
                text: mask::text(&text),
                diagnostics: vec![problem],
            }))
        }
    }
}

/// Reads the configuration in `text`, which messages call `file`, with variables from `environment`.
///
/// Only the variables that the text names are asked for.
pub fn parse(text: &str, file: &str, environment: Environment<'_>) -> Result<Checked, Failure> {
    let report = |text: String, diagnostics| Report {
        file: file.to_owned(),
        text,
        diagnostics,
    };
    let (document, mut problems) = Document::read(text, environment)
        .map_err(|(text, problems)| Failure::Invalid(report(text, problems)))?;
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(Failure::Invalid(report(document.text, problems)));
    }
    let raw = match de::read(&document.root) {
        Ok(raw) => raw,
        Err(fault) => {
            problems.push(fault::describe(fault, &document));
            return Err(Failure::Invalid(report(document.text, problems)));
        }
    };
    let (config, found) = resolve::resolve(&raw, &document);
    problems.extend(found.diagnostics);
    problems.sort_by_key(|problem| problem.primary.span.start);
    let (settings, needs) = (found.settings, found.needs);
    let report = report(document.text, problems);
    if report.errors() > 0 {
        return Err(Failure::Invalid(report));
    }
    Ok(Checked {
        config,
        warnings: report,
        settings,
        needs,
    })
}

#[cfg(test)]
mod tests;
