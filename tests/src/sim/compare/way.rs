//! The ways to use a preferred provider that are compared.

/// One of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// lb's defaults: the share, with endpoint health and breaker beside it.
    Share,
    /// A breaker on the provider that opens when one in ten is too late or refused.
    Breaker,
    /// Nothing but a first-token deadline: each request begins at the preferred provider.
    Deadline,
    /// The same, and what was too late or refused is left alone for half a minute, replica by replica.
    Cooldown,
}

impl Way {
    /// All, lb's own first.
    pub const ALL: [Self; 4] = [Self::Share, Self::Breaker, Self::Deadline, Self::Cooldown];

    /// What it is called on the page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Share => "share (lb's defaults)",
            Self::Breaker => "binary breaker",
            Self::Deadline => "deadline alone",
            Self::Cooldown => "priority, cooldown",
        }
    }

    /// The configuration: a preferred provider with these replicas, and an alternate.
    pub(super) fn configuration(self, replicas: &[u16], alternate: u16) -> String {
        let (provider, model) = self.settings();
        let endpoint = |port: &u16| format!("{{ url: 'http://127.0.0.1:{port}' }}");
        let replicas: Vec<_> = replicas.iter().map(endpoint).collect();
        format!(
            "version: 1
listeners: [{{ name: l, address: '127.0.0.1:0' }}]
providers:
  gpu: {{ {provider} endpoints: [{}] }}
  vendor: {{ endpoints: [{}] }}
models:
  chat: {{ {model} targets: [{{ provider: gpu }}, {{ provider: vendor }}] }}
",
            replicas.join(", "),
            endpoint(&alternate)
        )
    }

    /// What is set apart from the defaults, at the preferred provider and at the model.
    pub const fn settings(self) -> (&'static str, &'static str) {
        match self {
            Self::Share => ("", ""),
            Self::Breaker => (
                "health: { enabled: false, count_backpressure: true }, circuit_breaker: { failure_ratio: 0.1, \
                 consecutive_failures: 20, half_open_probes: 1 },",
                "fallback: { first_token_timeout_ms: 10000, aimd: { enabled: false } },",
            ),
            Self::Deadline => (
                "health: { enabled: false }, circuit_breaker: { enabled: false },",
                "fallback: { first_token_timeout_ms: 10000, aimd: { enabled: false } },",
            ),
            Self::Cooldown => (
                "health: { enabled: false }, circuit_breaker: { enabled: false },",
                "cooldown_ms: 30000, fallback: { first_token_timeout_ms: 10000, aimd: { enabled: false } },",
            ),
        }
    }
}
