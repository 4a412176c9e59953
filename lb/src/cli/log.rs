//! Where log lines go, and in what form.

use std::io::{IsTerminal as _, stderr};

use tracing::Subscriber;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Log, LogLevel};
use crate::proxy::TARGET;
use crate::run::{Form, form};

/// Writes what is queued when dropped, for up to a second.
pub(super) type Logging = WorkerGuard;

/// Sends log lines to stderr, or to the journal, from now on. A second call in one process changes nothing.
///
/// Lines for stderr are written by a thread of their own, so that nobody who logs waits for whoever reads there. Those
/// that find its queue full are lost. Access lines have such a thread and queue already, which counts what it loses, so
/// they are written where they are logged.
pub(super) fn install(log: &Log) -> Logging {
    let level = match log.level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Warn => LevelFilter::WARN,
    };
    // They have a switch of their own, too.
    let access = if log.access {
        level.max(LevelFilter::INFO)
    } else {
        LevelFilter::OFF
    };
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(QUEUE)
        .thread_name("lb-log")
        .finish(stderr());
    let (others, requests) = (Targets::new().with_default(level), Targets::new());
    let installed = tracing_subscriber::registry()
        .with(layer(form(log), writer).with_filter(others.with_target(TARGET, LevelFilter::OFF)))
        .with(layer(form(log), stderr).with_filter(requests.with_target(TARGET, access)))
        .try_init();
    // Only a second daemon in this process, as in the demo's tests, finds a subscriber in place.
    drop(installed);
    guard
}

fn layer<S, W>(form: Form, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_target(false);
    match form {
        Form::Text => {
            let colour = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            lines.with_ansi(colour).boxed()
        }
        Form::Json => lines.json().flatten_event(true).boxed(),
        Form::Journald => match tracing_journald::layer() {
            Ok(journal) => journal.with_field_prefix(Some(FIELDS.to_owned())).boxed(),
            // Without a journal there is nobody to tell but whoever reads stderr.
            Err(_) => lines.json().flatten_event(true).boxed(),
        },
    }
}

/// Lines that may wait to be written.
const QUEUE: usize = 8192;

/// What the names of lb's own fields begin with in the journal.
const FIELDS: &str = "LB";
