//! The whole daemon with one provider far away, behind a router that makes faults, and one near.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use lb_tests::client::Answer;
use lb_tests::daemon::Lb;
use lb_tests::netns::{Family, Network};
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use serde_json::Value;

/// The daemon's timers that stand in for the kernel where it is off, and that a plain proxy would have.
pub(crate) const TIMERS: Duration = Duration::from_secs(5);

/// A provider at the far end of `network`; lives as long as the process unless it is killed.
pub(crate) fn far(network: &Network, address: SocketAddr, script: Script) -> Provider {
    let (sender, provider) = mpsc::channel();
    network.spawn_at_server(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let provider = Provider::at(address, script).await;
            sender.send(provider).expect("the test waits for it");
            std::future::pending::<()>().await;
        });
    });
    provider.recv().expect("the provider says that it is there")
}

/// One daemon: `gpu` is preferred and far away, `alt` is near.
pub(crate) struct Stage<'a> {
    pub(crate) network: &'a Network,
    pub(crate) family: Family,
    pub(crate) gpu: Provider,
    _alt: Provider,
    pub(crate) lb: Lb,
}

impl<'a> Stage<'a> {
    /// Both providers answer at once, and the daemon's timers are at [`TIMERS`]; `member` is a setting of the providers.
    pub(crate) async fn set(network: &'a Network, family: Family, mode: &str, member: &str) -> Self {
        Self::with_timers(network, family, mode, member, TIMERS).await
    }

    pub(crate) async fn with_timers(
        network: &'a Network,
        family: Family,
        mode: &str,
        member: &str,
        timers: Duration,
    ) -> Self {
        let gpu = far(
            network,
            SocketAddr::new(family.server(), 0),
            Script::completion("gpu"),
        );
        let alt = Provider::start(Script::completion("alt")).await;
        let timers = timers.as_millis();
        let setup = Setup::pair(&gpu, &alt)
            .provider(&format!(
                "timeouts: {{ connect_ms: {timers}, read_ms: {timers} }}"
            ))
            .provider(member)
            .fallback(&format!("first_token_timeout_ms: {timers}"))
            .section(&format!("failover: {{ stream_idle_timeout_ms: {timers} }}"))
            .section(&format!("kernel: {{ mode: {mode} }}"));
        let lb = Lb::start(&setup).await;
        Self {
            network,
            family,
            gpu,
            _alt: alt,
            lb,
        }
    }

    /// The preferred provider answers, and its connection is idle afterwards.
    pub(crate) async fn warm(&self) {
        // The first packets of a new network may be answered with "unreachable", until its ends have found each other.
        let answers = async |lb: &Lb| who(&lb.chat(false).await) == "gpu";
        self.lb
            .eventually("the preferred provider to answer", answers)
            .await;
        self.lb.idle().await;
    }

    /// Until the preferred provider's endpoint is out, and why.
    pub(crate) async fn ejected(&self) -> String {
        let out = async |lb: &Lb| lb.endpoint("gpu", 0).await["state"] == "ejected";
        self.lb.eventually("the ejection", out).await;
        let cause = &self.lb.endpoint("gpu", 0).await["cause"];
        cause.as_str().unwrap_or_default().to_owned()
    }

    /// How long after the kernel had seen it the daemon carried the ejection out, in milliseconds, by its log.
    pub(crate) async fn reported_ms(&self) -> f64 {
        let line = self.lb.logged(&["the kernel saw an endpoint go"]).await;
        let line: Value = serde_json::from_str(&line).expect("a JSON log line");
        line["reported_ms"].as_f64().expect("a number")
    }
}

pub(crate) fn who(answer: &Answer) -> String {
    let text = &answer.json()["choices"][0]["message"]["content"];
    text.as_str().unwrap_or_default().to_owned()
}
