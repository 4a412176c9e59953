//! One lb over two providers with something to lose: a lowered share, an ejected endpoint, open streams.

use lb_tests::client::{Answer, End, Exchange, ask, chat};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Refusing, Script, Signal};
use lb_tests::setup::Setup;

/// The daemon and what is around it.
pub(crate) struct Bench {
    pub(crate) lb: Lb,
    pub(crate) gpu: Provider,
    pub(crate) alt: Provider,
    /// The configuration that it was started with.
    pub(crate) text: String,
    streams: Vec<Exchange>,
    late: Signal,
    _dead: Refusing,
}

impl Bench {
    /// Starts lb, ejects the endpoint `gpu-1`, lowers the share to 0.8, and opens `streams` streams.
    pub(crate) async fn start(streams: usize) -> Self {
        let late = Signal::new();
        let script = || Script::stream().token("first").wait(&late).token("last").finish();
        let (gpu, alt) = (Provider::start(script()).await, Provider::start(script()).await);
        let dead = Refusing::new();
        let setup = Setup::new()
            .at("gpu", &[&gpu.url(), &dead.url()])
            .at("alt", &[&alt.url()])
            .provider("health: { consecutive_failures: 1, ejection_ms: 300000 }")
            .fallback("first_token_timeout_ms: 0")
            .fallback("aimd: { latency_budget_ms: 60000, min_samples: 2, dwell_ms: 86400000 }");
        let text = setup.text();
        let mut bench = Self {
            lb: Lb::with(&text).await,
            gpu,
            alt,
            text,
            streams: Vec::new(),
            late,
            _dead: dead,
        };
        bench.prepare().await;
        bench.open(streams).await;
        bench
    }

    async fn prepare(&self) {
        let is_out = async |lb: &Lb| lb.endpoint("gpu", 1).await["state"] == "ejected";
        while !is_out(&self.lb).await {
            drop(self.stream().await);
        }
        for _ in 0..2 {
            self.gpu.next(Script::error(503));
        }
        while self.share().await < (true, 0.8, 1) || self.lb.pool().await["generation"] == 0 {
            drop(self.stream().await);
        }
        self.lb.idle().await;
        assert_eq!(self.share().await, (true, 0.8, 1));
    }

    /// A stream that has begun.
    pub(crate) async fn stream(&self) -> Exchange {
        let mut stream = Exchange::begin(self.lb.data(), chat("chat", true)).await;
        assert_eq!(stream.head().await.status, 200);
        stream.until("first").await;
        stream
    }

    /// Opens that many streams, which go on until [`Bench::finish`].
    pub(crate) async fn open(&mut self, streams: usize) {
        for _ in 0..streams {
            let stream = self.stream().await;
            self.streams.push(stream);
        }
    }

    /// Writes the first configuration with these changes.
    pub(crate) fn changed(&self, changes: &[(&str, &str)]) -> String {
        let mut text = self.text.clone();
        for (from, to) in changes {
            assert!(text.contains(from), "{from} in {text}");
            text = text.replacen(from, to, 1);
        }
        text
    }

    /// Puts the first configuration into force with these changes.
    pub(crate) async fn change(&self, changes: &[(&str, &str)]) -> Answer {
        self.lb.write(&self.changed(changes));
        let answer = self.lb.reload().await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer
    }

    /// Whether the share steers, how high it is, and how often it has begun anew.
    pub(crate) async fn share(&self) -> (bool, f64, u64) {
        let pool = self.lb.pool().await;
        (
            pool["active"] == true,
            pool["share"].as_f64().unwrap_or(-1.0),
            pool["generation"].as_u64().unwrap_or_default(),
        )
    }

    /// Attempts in flight, over all providers.
    pub(crate) async fn in_flight(&self) -> u64 {
        let state = self.lb.state().await;
        let providers = state["providers"].as_array().expect("a list");
        providers
            .iter()
            .filter_map(|provider| provider["in_flight"].as_u64())
            .sum()
    }

    /// Shows that the endpoint that was ejected still is, and that every stream is counted.
    pub(crate) async fn is_kept(&self) {
        assert_eq!(self.lb.endpoint("gpu", 1).await["state"], "ejected");
        assert_eq!(self.in_flight().await, self.streams.len() as u64);
        assert_eq!(
            self.lb.sum("lb_inflight_requests", &[]).await,
            self.streams.len() as u64
        );
    }

    /// Lets all streams end, and shows that each does so cleanly and in full.
    pub(crate) async fn finish(&mut self) {
        self.late.fire();
        for stream in &mut self.streams {
            let seen = stream.until("[DONE]").await;
            assert!(String::from_utf8_lossy(&seen).contains("last"));
            assert_eq!(stream.piece().await, Err(End::Clean));
        }
        self.streams.clear();
    }

    /// As [`Bench::finish`], and everything is given back; a new stream is answered in full.
    pub(crate) async fn end(mut self) {
        self.finish().await;
        self.lb.idle().await;
        let answer = ask(self.lb.data(), chat("chat", true)).await;
        assert_eq!((answer.status(), answer.end), (200, End::Clean));
    }
}
