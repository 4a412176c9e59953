//! Where log lines go, and in what form.

use std::io::{IsTerminal as _, stderr};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::config::{Log, LogLevel};
use crate::proxy::TARGET;
use crate::run::{Form, form};

/// Sends log lines to stderr, or to the journal, from now on. A second call in one process changes nothing.
pub(super) fn install(log: &Log) {
    let level = match log.level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Warn => LevelFilter::WARN,
    };
    // Access lines have a switch of their own.
    let access = if log.access {
        level.max(LevelFilter::INFO)
    } else {
        LevelFilter::OFF
    };
    let filter = Targets::new().with_default(level).with_target(TARGET, access);
    let installed = tracing_subscriber::registry()
        .with(layer(form(log)).with_filter(filter))
        .try_init();
    // Only a second daemon in this process, as in the demo's tests, finds a subscriber in place.
    drop(installed);
}

fn layer(form: Form) -> Box<dyn Layer<Registry> + Send + Sync> {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(stderr)
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

/// What the names of lb's own fields begin with in the journal.
const FIELDS: &str = "LB";
