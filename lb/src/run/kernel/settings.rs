//! The configuration in the plane's words.

use crate::config;
use crate::kernel::{self, Mode, Settings, signal};

/// What the plane is told of the configuration.
pub(super) fn settings(config: &config::Kernel) -> Settings {
    let config::Signals {
        syn_timeout,
        streak,
        silent,
        rst_count,
        rst_window,
        ejection,
    } = config.signals;
    let signals = signal::Params::new(signal::Settings {
        syn_timeout,
        streak_failover: streak.failover,
        streak_end: streak.end_stream,
        silent_failover: silent.failover,
        silent_end: silent.end_stream,
        rst_count,
        rst_window,
        ejection,
    });
    Settings {
        mode: match config.mode {
            config::KernelMode::Auto => Mode::Auto,
            config::KernelMode::Off => Mode::Off,
            config::KernelMode::Required => Mode::Required,
        },
        attach: match config.attach {
            config::Attach::Auto => kernel::Attach::Auto,
            config::Attach::Cgroup => kernel::Attach::Cgroup,
            config::Attach::Tc => kernel::Attach::Tc,
        },
        interfaces: config.interfaces.clone(),
        max_flows: config.max_flows,
        signals: signals.expect("the configuration has the same bounds, as a test shows"),
    }
}

#[cfg(test)]
mod tests;
