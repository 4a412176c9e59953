//! In what form lines are logged, and the thread that writes those of requests.

use std::io::{IsTerminal as _, stderr};

use super::StartError;
use crate::config::{Log, LogFormat, Tracing, Url};
use crate::metrics::Metrics;
use crate::proxy::{self, AccessLog, Exporter, Spans, Writer};

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Fields of their own in systemd's journal.
    Journald,
    /// One JSON object.
    Json,
    /// For people.
    Text,
}

/// The form that `log` asks for, or that suits what stderr is.
pub fn form(log: &Log) -> Form {
    match log.format {
        LogFormat::Auto if stderr().is_terminal() => Form::Text,
        LogFormat::Auto if is_journal() => Form::Journald,
        LogFormat::Auto | LogFormat::Json => Form::Json,
        LogFormat::Journald => Form::Journald,
        LogFormat::Text => Form::Text,
    }
}

/// Whether stderr is the stream to the journal that systemd says it gave us. It may have been redirected since, and
/// then the variable still stands.
fn is_journal() -> bool {
    let told = std::env::var("JOURNAL_STREAM").ok();
    let Ok(seen) = rustix::fs::fstat(stderr()) else {
        return false;
    };
    told.is_some_and(|told| told == format!("{}:{}", seen.st_dev, seen.st_ino))
}

/// Starts to send spans, where that is wanted.
pub(super) fn spans(tracing: &Tracing, metrics: &Metrics) -> Result<Option<(Spans, Exporter)>, StartError> {
    let start = |url: &Url| {
        let dropped = metrics.spans_dropped.clone();
        Spans::start(url.clone(), tracing.sample_ratio, dropped).map_err(StartError::Thread)
    };
    tracing.endpoint.as_ref().map(start).transpose()
}

/// Starts the access log, where one is wanted.
pub(super) fn access(log: &Log, metrics: &Metrics) -> Result<Option<(AccessLog, Writer)>, StartError> {
    let form = match form(log) {
        Form::Json => proxy::Form::Json,
        Form::Journald | Form::Text => proxy::Form::Event,
    };
    let start = || AccessLog::start(form, metrics.access_log_dropped.clone()).map_err(StartError::Thread);
    log.access.then(start).transpose()
}
