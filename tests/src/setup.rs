//! Configurations for tests: one model over some providers, with what the test changes.

use std::fmt::Write as _;

use crate::provider::{Provider, Refusing};

/// A configuration in the making; its text is what `lb run -c` reads.
///
/// Settings are YAML lines or flow members as a user would write them (`first_token_timeout_ms: 300`), so that a test
/// shows the configuration it is about.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    providers: Vec<(String, String)>,
    keyless: bool,
    provider: Vec<String>,
    model: Vec<String>,
    fallback: Vec<String>,
    server: Vec<String>,
    listener: Vec<String>,
    top: Vec<String>,
}

impl Setup {
    /// No provider yet; everything else at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// The usual pair: `gpu` preferred, `alt` behind it.
    pub fn pair(preferred: &Provider, alternate: &Provider) -> Self {
        Self::new()
            .at("gpu", &[&preferred.url()])
            .at("alt", &[&alternate.url()])
    }

    /// As [`Setup::pair`], but nobody listens at the preferred provider's port.
    pub fn refused(preferred: &Refusing, alternate: &Provider) -> Self {
        Self::new()
            .at("gpu", &[&preferred.url()])
            .at("alt", &[&alternate.url()])
    }

    /// A single provider, `gpu`.
    pub fn single(provider: &Provider) -> Self {
        Self::new().at("gpu", &[&provider.url()])
    }

    /// Adds a provider with these endpoints, as the model's next target; its upstream model is `<name>-model`, its key
    /// `key-of-<name>`.
    #[must_use]
    pub fn at(mut self, name: &str, urls: &[&str]) -> Self {
        let mut endpoints = String::new();
        for (number, url) in urls.iter().enumerate() {
            write!(endpoints, "{{ name: {name}-{number}, url: \"{url}\" }}, ")
                .expect("a String takes everything");
        }
        self.providers
            .push((name.to_owned(), format!("endpoints: [ {endpoints} ]")));
        self
    }

    /// Leaves out every provider's key.
    #[must_use]
    pub fn without_keys(mut self) -> Self {
        self.keyless = true;
        self
    }

    /// A setting of every provider.
    #[must_use]
    pub fn provider(mut self, member: &str) -> Self {
        self.provider.push(member.to_owned());
        self
    }

    /// A setting of the model.
    #[must_use]
    pub fn model(mut self, member: &str) -> Self {
        self.model.push(member.to_owned());
        self
    }

    /// A setting of the model's `fallback`.
    #[must_use]
    pub fn fallback(mut self, member: &str) -> Self {
        self.fallback.push(member.to_owned());
        self
    }

    /// A setting of `server`.
    #[must_use]
    pub fn server(mut self, member: &str) -> Self {
        self.server.push(member.to_owned());
        self
    }

    /// A setting of the listener for clients.
    #[must_use]
    pub fn listener(mut self, member: &str) -> Self {
        self.listener.push(member.to_owned());
        self
    }

    /// A further section, as a whole line or more.
    #[must_use]
    pub fn section(mut self, lines: &str) -> Self {
        self.top.push(lines.to_owned());
        self
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut text = String::from("version: 1\n");
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        let flow = |first: &str, rest: &[String]| [&[first.to_owned()], rest].concat().join(", ");
        line(format!(
            "listeners: [{{ {} }}]",
            flow("name: data, address: \"127.0.0.1:0\"", &self.listener)
        ));
        line("admin: { address: \"127.0.0.1:0\" }".into());
        line("log: { format: json }".into());
        let own = self.server.iter().any(|member| member.starts_with("workers"));
        // One worker makes the order of things in a test what it seems.
        let workers = if own { "" } else { "workers: 1, " };
        line(format!("server: {{ {workers}{} }}", self.server.join(", ")));
        // What a fault does must not depend on whether this machine lets tests watch in the kernel.
        if !self.top.iter().any(|section| section.starts_with("kernel:")) {
            line("kernel: { mode: off }".into());
        }
        self.top.iter().cloned().for_each(&mut line);
        line("providers:".into());
        for (name, members) in &self.providers {
            let key = format!(", api_key: key-of-{name}");
            let key = if self.keyless { "" } else { &key };
            line(format!("  {name}: {{ {}{key} }}", flow(members, &self.provider)));
        }
        let target =
            |(name, _): &(String, String)| format!("{{ provider: {name}, upstream_model: {name}-model }}");
        let targets = self.providers.iter().map(target).collect::<Vec<_>>().join(", ");
        line("models:\n  chat:".into());
        line(format!("    targets: [ {targets} ]"));
        self.model
            .iter()
            .map(|member| format!("    {member}"))
            .for_each(&mut line);
        if !self.fallback.is_empty() {
            line(format!("    fallback: {{ {} }}", self.fallback.join(", ")));
        }
        text
    }
}
