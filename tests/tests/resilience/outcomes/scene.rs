//! Where a row is seen.

use std::time::{Duration, Instant};

use lb_tests::client::{Exchange, chat, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Refusing, Script};
use lb_tests::setup::Setup;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use super::{Ask, Cooling, Ending, Row, Verdict};
use crate::{provider, retries};

/// Who could answer besides the endpoint that the row is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Others {
    /// Another endpoint of the same provider.
    pub(super) replica: bool,
    /// Another target.
    pub(super) alternate: bool,
}

/// What every mechanism is to have made of it.
#[derive(Clone, Copy)]
pub(super) struct Expected {
    pub(super) health: Verdict,
    pub(super) breaker: Verdict,
    pub(super) cooldown: Cooling,
    /// `None` where there is no controller.
    pub(super) share: Option<&'static str>,
}

/// What became of one request.
#[derive(Debug)]
pub(super) struct Seen {
    health: Verdict,
    breaker: Verdict,
    cooldowns: Vec<Value>,
    /// Samples that the controller has counted, by their outcome.
    samples: [(&'static str, u64); 3],
    /// How often the replica and the alternate were asked.
    pub(super) others: [usize; 2],
    pub(super) retries: u64,
    pub(super) failovers: u64,
}

/// The endpoint that the row is about.
enum First {
    Scripted(Provider),
    Nobody(#[expect(dead_code, reason = "it keeps the port")] Refusing),
    Rude(AbortHandle),
    Nameless,
}

impl Drop for First {
    fn drop(&mut self) {
        if let Self::Rude(task) = self {
            task.abort();
        }
    }
}

impl First {
    async fn start(row: &Row, answer: Script) -> (Self, String) {
        match row.ending {
            Ending::Refuses => {
                let refusing = Refusing::new();
                let url = refusing.url();
                (Self::Nobody(refusing), url)
            }
            Ending::NoTls => {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                let url = format!("https://{}/v1", listener.local_addr().expect("bound"));
                let task = tokio::spawn(async move {
                    while let Ok((mut stream, _)) = listener.accept().await {
                        // Whoever asks is gone by then, or reads it.
                        drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
                    }
                });
                (Self::Rude(task.abort_handle()), url)
            }
            Ending::Unknown => (Self::Nameless, "http://nobody.invalid/v1".into()),
            Ending::Says(_) | Ending::SaysOnReused { .. } | Ending::SaysAfterCooling(_) => {
                let provider = Provider::start(answer).await;
                let url = provider.url();
                (Self::Scripted(provider), url)
            }
        }
    }
}

/// Plays one row among `others`.
///
/// A connection that breaks at once has to do so within 250 ms. Where the machine did not let it, the run says nothing
/// and is made again.
pub(super) async fn observe(row: &Row, others: Others, share: bool) -> Seen {
    let at_once = matches!(row.ending, Ending::SaysOnReused { at_once: true, .. });
    for _ in 0..20 {
        let (seen, took) = play(row, others, share).await;
        if !at_once || took < Duration::from_millis(250) {
            return seen;
        }
    }
    panic!("{}: this machine is too busy", row.name)
}

async fn play(row: &Row, others: Others, share: bool) -> (Seen, Duration) {
    let streams = share || matches!(row.ask, Ask::Stream | Ask::LeftStreaming);
    let good = || {
        if streams {
            Script::streamed(&["good"])
        } else {
            Script::completion("good")
        }
    };
    let (first, url) = First::start(row, good()).await;
    let (replica, alternate) = (Provider::start(good()).await, Provider::start(good()).await);
    let lb = Lb::with(&text(row, &url, &replica, &alternate, others, share)).await;
    prepare(row, &first, &lb, streams).await;
    let before = Counts::read(&lb, share).await;
    let asked = [replica.requests().len(), alternate.requests().len()];
    let begun = Instant::now();
    ask(row, &first, &lb, streams).await;
    let took = begun.elapsed();
    lb.idle().await;
    let after = Counts::read(&lb, share).await;
    let state = lb.state().await;
    let seen = Seen {
        health: verdict(before.health, after.health),
        breaker: verdict(before.breaker, after.breaker),
        cooldowns: state["cooldowns"].as_array().expect("a list").clone(),
        samples: std::array::from_fn(|n| {
            let (outcome, count) = after.samples[n];
            (outcome, count - before.samples[n].1)
        }),
        others: [
            replica.requests().len() - asked[0],
            alternate.requests().len() - asked[1],
        ],
        retries: after.retries - before.retries,
        failovers: after.failovers - before.failovers,
    };
    (seen, took)
}

fn text(
    row: &Row,
    url: &str,
    replica: &Provider,
    alternate: &Provider,
    others: Others,
    share: bool,
) -> String {
    let second = replica.url();
    let urls = if others.replica {
        &[url, &second][..]
    } else {
        &[url]
    };
    let mut setup = Setup::new().at("gpu", urls);
    if others.alternate {
        setup = setup.at("alt", &[&alternate.url()]);
    }
    setup = row.fallback.iter().fold(setup, |setup, member| {
        // Without a controller its settings are no contradiction, but there is only one key.
        if !share && member.starts_with("aimd:") {
            setup
        } else {
            setup.fallback(member)
        }
    });
    let has = |key: &str| row.fallback.iter().any(|member| member.starts_with(key));
    if !share {
        setup = setup.fallback("aimd: { enabled: false }");
    } else if !has("first_token_timeout_ms") {
        setup = setup
            .fallback("first_token_timeout_ms: 8000")
            .fallback("aimd: { latency_budget_ms: 6000 }");
    }
    setup = row
        .provider
        .iter()
        .fold(setup, |setup, member| setup.provider(member));
    // Where it has no other endpoint, the row is about the switch.
    if !others.replica && !row.provider.iter().any(|member| member.starts_with("retries:")) {
        setup = setup.provider("retries: { max_attempts: 1 }");
    }
    setup = row
        .section
        .iter()
        .fold(setup, |setup, section| setup.section(section));
    let cooldown = if matches!(row.ending, Ending::SaysAfterCooling(_)) {
        1
    } else {
        60_000
    };
    // In turn, and with nine turns for each of the other, the first endpoint comes first.
    let setup = setup
        .model(&format!("cooldown_ms: {cooldown}"))
        .provider("balance: round_robin");
    setup
        .text()
        .replacen("name: gpu-0,", "name: gpu-0, weight: 9,", 1)
}

/// What comes before the attempt, and its script.
async fn prepare(row: &Row, first: &First, lb: &Lb, streams: bool) {
    let First::Scripted(first) = first else { return };
    match row.ending {
        Ending::Says(script) => first.next(script()),
        Ending::SaysOnReused { script, .. } => {
            assert_eq!(
                lb.chat(streams).await.status(),
                200,
                "{}: a first request",
                row.name
            );
            lb.idle().await;
            first.next(script());
        }
        Ending::SaysAfterCooling(script) => {
            first.next(Script::error(429));
            // No stream, which no controller counts.
            lb.chat(false).await;
            let over = async |lb: &Lb| lb.state().await["cooldowns"][0]["state"] == "half_open";
            lb.eventually("the cooldown to be over", over).await;
            first.next(script());
        }
        Ending::Refuses | Ending::NoTls | Ending::Unknown => unreachable!("it has no script"),
    }
}

async fn ask(row: &Row, first: &First, lb: &Lb, streams: bool) {
    let request = if row.ask == Ask::Stored {
        let body = json!({"model": "chat", "store": true, "stream": streams, "input": "hi"});
        post("/v1/responses", "", body.to_string())
    } else {
        chat("chat", streams)
    };
    let mut exchange = Exchange::begin(lb.data(), request).await;
    match (row.ask, first) {
        (Ask::Left, First::Scripted(first)) => drop(first.request(0).await),
        (Ask::LeftStreaming, _) => {
            exchange.head().await;
            exchange.until("half").await;
        }
        _ => drop(exchange.answer().await),
    }
}

/// Results and failures among them.
type Results = [u64; 2];

struct Counts {
    health: Results,
    breaker: Results,
    samples: [(&'static str, u64); 3],
    retries: u64,
    failovers: u64,
}

impl Counts {
    async fn read(lb: &Lb, share: bool) -> Self {
        let results = |of: &Value| {
            ["window_volume", "window_failures"].map(|key| of[key].as_u64().expect("it is judged"))
        };
        let mut samples = [("healthy", 0), ("breach", 0), ("unknown", 0)];
        if share {
            for (outcome, count) in &mut samples {
                let label = format!("outcome=\"{outcome}\"");
                *count = lb.sum("lb_aimd_samples_total", &[&label]).await;
            }
        }
        Self {
            health: results(&lb.endpoint("gpu", 0).await),
            breaker: results(&provider(lb, "gpu").await["breaker"]),
            samples,
            retries: retries(lb, "sent").await,
            failovers: lb.sum("lb_failovers_total", &[]).await,
        }
    }
}

fn verdict(before: Results, after: Results) -> Verdict {
    match [after[0] - before[0], after[1] - before[1]] {
        [0, 0] => Verdict::Neutral,
        [1, 0] => Verdict::Success,
        [1, 1] => Verdict::Failure,
        [2, 1] => Verdict::Both,
        other => panic!("one attempt is not so many results and failures: {other:?}"),
    }
}

impl Seen {
    /// Whether every mechanism made of it what the table says.
    pub(super) fn is(&self, row: &Row, expected: &Expected) {
        let name = row.name;
        assert_eq!(self.health, expected.health, "{name}: health");
        let of_first = |entry: &&Value| entry["endpoint"] == "gpu-0";
        let entry = self.cooldowns.iter().find(of_first);
        match expected.cooldown {
            Cooling::Starts | Cooling::StartsFor(_) => {
                let entry = entry.unwrap_or_else(|| panic!("{name}: nothing cools"));
                assert_eq!(
                    (&entry["state"], &entry["by"]),
                    (&"cooling".into(), &"chat".into()),
                    "{name}"
                );
                if let Cooling::StartsFor(least) = expected.cooldown {
                    assert!(entry["for_ms"].as_u64() >= Some(least), "{name}: {entry}");
                }
            }
            // One that was half open before is gone.
            Cooling::Left | Cooling::Cleared => assert_eq!(entry, None, "{name}"),
        }
        // A success of the replica is the provider's as well.
        if self.others[0] == 0 {
            assert_eq!(self.breaker, expected.breaker, "{name}: breaker");
        }
        if let Some(share) = expected.share {
            for (outcome, count) in self.samples {
                assert_eq!(count, u64::from(outcome == share), "{name}: {outcome}");
            }
        }
    }
}
