//! Where log lines go, and in what form.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::LevelFilter;

use crate::config::{Log, LogFormat, LogLevel};

/// Sends log lines to stderr from now on. A second call in one process changes nothing.
pub(super) fn install(log: &Log) {
    let level = match log.level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Warn => LevelFilter::WARN,
    };
    let terminal = std::io::stderr().is_terminal();
    let json = match log.format {
        LogFormat::Auto => !terminal,
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false);
    let installed = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        builder
            .with_ansi(terminal && std::env::var_os("NO_COLOR").is_none())
            .try_init()
    };
    // Only a second daemon in this process, as in the demo's tests, finds a subscriber in place.
    drop(installed);
}
