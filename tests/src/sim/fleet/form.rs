//! A fleet's configuration, drawn and changed.

use std::fmt::Write as _;

use super::chance::pick;

/// What a configuration is made of.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a file")]
pub(super) struct Form {
    providers: Vec<Provider>,
    weighted: bool,
    passes: bool,
    aimd_budget: u32,
    model_cooldown: bool,
    model_limits: bool,
    total_deadline: Option<u32>,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a file")]
struct Provider {
    name: &'static str,
    enabled: bool,
    /// Ports with their weights.
    endpoints: Vec<(u16, u32)>,
    balance: &'static str,
    concurrency: u32,
    max_pending: u32,
    rate: Option<u32>,
    adaptive: bool,
    failures: u32,
    health_probes: u32,
    max_percent: u32,
    slow_start: u32,
    backpressure: bool,
    fail_open: bool,
    breaker: bool,
    breaker_probes: u32,
    tries: u32,
    budget: u32,
    visit_deadline: Option<u32>,
    hedge_after: Option<u32>,
}

const NAMES: [&str; 4] = ["gpu", "near", "far", "last"];

impl Form {
    pub(super) fn drawn(random: &mut fastrand::Rng) -> Self {
        let count = random.usize(1..=4);
        let mut port = 7000;
        let mut provider = |name: &&'static str| {
            let endpoints = (0..random.u32(1..=4)).map(|_| {
                port += 1;
                (port, pick(random, &[1, 1, 1, 3, 0]))
            });
            let mut endpoints: Vec<_> = endpoints.collect();
            endpoints[0].1 = 1;
            Provider::drawn(name, endpoints, random)
        };
        Self {
            providers: NAMES[..count].iter().map(&mut provider).collect(),
            weighted: random.bool(),
            passes: random.bool(),
            aimd_budget: 1_000,
            model_cooldown: random.bool(),
            model_limits: random.u8(0..4) == 0,
            total_deadline: pick(random, &[None, Some(2_500), Some(6_000)]),
        }
    }

    /// Every port that an endpoint has in any form of this fleet.
    pub(super) fn ports(&self) -> Vec<u16> {
        let endpoints = self.providers.iter().flat_map(|provider| &provider.endpoints);
        endpoints.map(|(port, _)| *port).collect()
    }

    /// The names that clients send.
    pub(super) fn names(&self) -> &'static [&'static str] {
        const ALL: [&str; 9] = [
            "chat",
            "chat",
            "chat",
            "plain",
            "assistant",
            "gpu",
            "near",
            "far",
            "last",
        ];
        &ALL[..5 + self.providers.len()]
    }

    /// Changes something that an operator changes.
    pub(super) fn change(&mut self, random: &mut fastrand::Rng) {
        let place = random.usize(..self.providers.len());
        let provider = &mut self.providers[place];
        match random.u8(0..10) {
            0 => provider.enabled = !provider.enabled,
            1 => {
                let place = random.usize(..provider.endpoints.len());
                let weight = &mut provider.endpoints[place].1;
                *weight = u32::from(*weight == 0);
            }
            2 => provider.endpoints.rotate_left(1),
            3 => provider.concurrency = pick(random, &[0, 1, 4]),
            4 => provider.failures = random.u32(1..6),
            5 => provider.health_probes = random.u32(1..4),
            6 => provider.breaker_probes = random.u32(1..4),
            7 => provider.budget = pick(random, &[0, 20, 100]),
            8 => self.aimd_budget += 100,
            _ => self.providers.rotate_left(1),
        }
    }

    /// As it stands in a file.
    pub(super) fn text(&self) -> String {
        let mut text =
            String::from("version: 1\nlisteners: [{ name: l, address: '127.0.0.1:0' }]\nproviders:\n");
        self.providers
            .iter()
            .for_each(|provider| provider.write(&mut text));
        let targets = |model: &str| {
            let target =
                |provider: &Provider| format!("{{ provider: {}, upstream_model: {model} }}", provider.name);
            let all: Vec<_> = self.providers.iter().map(target).collect();
            all.join(", ")
        };
        let visits = if self.passes { "6" } else { "null" };
        let cooldown = if self.model_cooldown { 2_000 } else { 0 };
        let limits = if self.model_limits {
            "concurrency: 6, rate_limit: { requests_per_second: 5, burst: 10 }, "
        } else {
            ""
        };
        let aimd = format!(
            "first_token_timeout_ms: 2500, aimd: {{ latency_budget_ms: {}, min_samples: 5, dwell_ms: 2000, idle_recovery_ms: 8000 }}",
            self.aimd_budget
        );
        let strategy = if self.weighted { "weighted" } else { "priority" };
        let deadline = self
            .total_deadline
            .map_or_else(|| "null".to_owned(), |deadline| deadline.to_string());
        let mut line = |line: std::fmt::Arguments<'_>| {
            writeln!(text, "{line}").expect("writing to a string cannot fail");
        };
        line(format_args!("models:"));
        line(format_args!(
            "  chat: {{ cooldown_ms: {cooldown}, {limits}targets: [{}], fallback: {{ max_attempts: {visits}, {aimd} }} }}",
            targets("big")
        ));
        line(format_args!(
            "  plain: {{ strategy: {strategy}, stream_mode: passthrough, cooldown_ms: {cooldown}, targets: [{}] }}",
            targets("small")
        ));
        for Provider { name, .. } in &self.providers {
            line(format_args!("  {name}: {{ targets: [{{ provider: {name} }}] }}"));
        }
        line(format_args!(
            "failover: {{ cooldown_ms: 2000, first_token_timeout_ms: 2500, stream_idle_timeout_ms: 20000, total_deadline_ms: {deadline} }}"
        ));
        line(format_args!(
            "presets: {{ assistant: {{ model: chat, fallbacks: [less] }}, less: {{ model: plain }} }}"
        ));
        text
    }
}

impl Provider {
    fn drawn(name: &'static str, endpoints: Vec<(u16, u32)>, random: &mut fastrand::Rng) -> Self {
        Self {
            name,
            enabled: true,
            endpoints,
            balance: pick(
                random,
                &["least_inflight", "peak_ewma", "round_robin", "random", "hash"],
            ),
            concurrency: pick(random, &[0, 0, 1, 3, 8]),
            max_pending: pick(random, &[0, 2, 10]),
            rate: pick(random, &[None, None, None, Some(2)]),
            adaptive: random.u8(0..6) == 0,
            failures: random.u32(1..6),
            health_probes: random.u32(1..4),
            max_percent: pick(random, &[0, 50, 100, 100]),
            slow_start: pick(random, &[0, 3_000]),
            backpressure: random.bool(),
            fail_open: random.u8(0..4) > 0,
            breaker: random.u8(0..4) > 0,
            breaker_probes: random.u32(1..4),
            tries: random.u32(1..4),
            budget: pick(random, &[0, 20, 50]),
            visit_deadline: pick(random, &[None, None, Some(1_500)]),
            hedge_after: pick(random, &[None, None, Some(200), Some(600)]),
        }
    }

    fn write(&self, text: &mut String) {
        // While there is hardly any load, the heavier of two gets all of it there.
        let heaviest = if self.balance == "peak_ewma" { 1 } else { u32::MAX };
        let endpoint = |(port, weight): &(u16, u32)| {
            let weight = weight.min(&heaviest);
            format!("{{ name: at-{port}, url: 'http://127.0.0.1:{port}', weight: {weight} }}")
        };
        let endpoints: Vec<_> = self.endpoints.iter().map(endpoint).collect();
        // Without a limit there is nothing to wait for, and nothing to follow the provider's state.
        let limited = self.concurrency > 0;
        let max_pending = if limited { self.max_pending } else { 0 };
        let rate = match (self.rate, self.adaptive && (limited || self.rate.is_some())) {
            (None, false) => "null".to_owned(),
            (rate, adaptive) => {
                let rate = rate.map_or_else(|| "null".to_owned(), |rate| rate.to_string());
                let adaptive = if adaptive {
                    "{ max_latency_ms: 1500 }"
                } else {
                    "null"
                };
                format!("{{ requests_per_second: {rate}, adaptive: {adaptive} }}")
            }
        };
        let or_null = |span: Option<u32>| span.map_or_else(|| "null".to_owned(), |span| span.to_string());
        let (visit, hedge) = (or_null(self.visit_deadline), or_null(self.hedge_after));
        let Self {
            name,
            enabled,
            balance,
            concurrency,
            failures,
            health_probes,
            max_percent,
            slow_start,
            ..
        } = self;
        let Self {
            backpressure,
            fail_open,
            breaker,
            breaker_probes,
            tries,
            budget,
            ..
        } = self;
        write!(
            text,
            "  {name}:
    {{ enabled: {enabled}, endpoints: [{}], balance: {balance}, concurrency: {concurrency}, max_pending: {max_pending},
      rate_limit: {rate}, timeouts: {{ connect_ms: 1000, read_ms: 8000 }},
      health: {{ consecutive_failures: {failures}, ejection_ms: 2000, max_ejection_ms: 8000,
        half_open_probes: {health_probes}, max_ejection_percent: {max_percent}, slow_start_ms: {slow_start},
        count_backpressure: {backpressure}, fail_open: {fail_open}, active: {{ interval_ms: 5000 }} }},
      circuit_breaker: {{ enabled: {breaker}, consecutive_failures: 6, open_ms: 3000, half_open_probes: {breaker_probes} }},
      retries: {{ max_attempts: {tries}, budget_percent: {budget}, total_deadline_ms: {visit}, hedge_after_ms: {hedge} }} }}
",
            endpoints.join(", "),
        )
        .expect("writing to a string cannot fail");
    }
}
