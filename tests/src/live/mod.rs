//! Faults of live providers under a crowd of streams: two providers of two endpoints each, every endpoint a process
//! behind a router, and what each fault of each of them costs the clients.
//!
//! ```text
//!   crowd ── lb ── router ── gpu-0, gpu-1   preferred by the model `chat`, alternates of `other`
//!                        └── alt-0, alt-1   preferred by the model `other`, alternates of `chat`
//! ```
//!
//! Half of the crowd asks for each model. Whoever runs this calls [`play`] before anything else.

use std::fmt::Write as _;
use std::time::Duration;

mod crowd;
mod endpoint;
mod fault;
mod row;
mod scene;

pub use endpoint::play;
pub use fault::{Fault, Target};
pub use row::Row;
pub use scene::run;

/// The dimensions of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How many streams are open at a time.
    pub streams: u32,
    /// How many tokens each has.
    pub tokens: u32,
    /// From one token to the next.
    pub gap: Duration,
    /// How many streams a phase takes: before the fault and, of those that the fault may meet, during it.
    pub phase: usize,
    /// The timer that ends a stream which has fallen silent.
    pub idle: Duration,
    /// `kernel.mode`.
    pub kernel: &'static str,
}

impl Plan {
    /// How long a stream lasts from its first token on.
    fn length(&self) -> Duration {
        self.gap * self.tokens
    }
}

/// The first-token deadline of both models.
pub const DEADLINE: Duration = Duration::from_secs(1);

/// lb's configuration for endpoints at these places; `addresses` are in the order of [`endpoint::NAMES`].
fn configuration(plan: &Plan, addresses: &[std::net::SocketAddr]) -> String {
    let mut text = format!(
        "version: 1\n\
         listeners: [{{ name: data, address: \"127.0.0.1:0\" }}]\n\
         admin: {{ address: \"127.0.0.1:0\" }}\n\
         log: {{ format: json, access: false }}\n\
         server: {{ workers: 1 }}\n\
         kernel: {{ mode: {} }}\n\
         failover: {{ stream_idle_timeout_ms: {} }}\n\
         providers:\n",
        plan.kernel,
        plan.idle.as_millis(),
    );
    // The defaults, but that what is out is tried again after a second and not after thirty.
    let provider = "connections: { max_idle_per_endpoint: 256 }, timeouts: { connect_ms: 1000, read_ms: 5000 }, \
                    health: { ejection_ms: 1000, max_ejection_ms: 2000 }, circuit_breaker: { open_ms: 1000 }";
    for (provider_name, both) in ["gpu", "alt"].into_iter().zip(addresses.chunks(2)) {
        let endpoints: Vec<_> = both
            .iter()
            .enumerate()
            .map(|(n, address)| format!("{{ name: {provider_name}-{n}, url: \"http://{address}/v1\" }}"))
            .collect();
        let endpoints = endpoints.join(", ");
        line(
            &mut text,
            &format!("  {provider_name}: {{ endpoints: [ {endpoints} ], {provider} }}"),
        );
    }
    line(&mut text, "models:");
    for (model, [first, second]) in [("chat", ["gpu", "alt"]), ("other", ["alt", "gpu"])] {
        line(&mut text, &format!("  {model}:"));
        line(
            &mut text,
            &format!("    targets: [ {{ provider: {first} }}, {{ provider: {second} }} ]"),
        );
        // The share moves as by default, but within seconds.
        let share =
            "latency_budget_ms: 900, window_samples: 40, min_samples: 10, share_step: 0.25, dwell_ms: 500";
        let deadline = DEADLINE.as_millis();
        line(
            &mut text,
            &format!("    fallback: {{ first_token_timeout_ms: {deadline}, aimd: {{ {share} }} }}"),
        );
    }
    text
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes everything");
}
