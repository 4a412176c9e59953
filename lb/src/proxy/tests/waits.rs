//! Requests that wait for something else than a provider's answer: a slot, a backoff, a provider that asked to be left
//! alone; and those that carry the permits of what is half open.

use super::*;

/// A provider whose answers make requests wait.
struct Wait {
    name: &'static str,
    /// Settings of the provider `one`, and of the model.
    provider: &'static str,
    model: &'static str,
    /// What its connections answer, the first one and all others.
    first: &'static [&'static [u8]],
    others: &'static [&'static [u8]],
    /// What comes before the request that is dropped.
    before: Before,
    /// How often it is tried again.
    retries: u64,
    /// What the client has to have seen when nothing was dropped.
    seen: &'static str,
}

#[derive(PartialEq)]
enum Before {
    Nothing,
    /// A request that fails, so that endpoint, breaker and cooldown are half open.
    Failure,
    /// A request that has the only slot, until there is one that waits for it.
    Occupant,
}

const GOOD: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\ncontent-", b"length: 4\r\n\r\n{\"", b"\"}"];
const BAD: &[&[u8]] = &[b"HTTP/1.1 500 No\r\ncontent-length: 3\r\n\r\n", b"bad"];
const BUSY: &[&[u8]] = &[
    b"HTTP/1.1 503 No\r\nretry-after-ms: 3\r\ncontent-length: 4\r\n\r\n",
    b"busy",
];

const WAITS: [Wait; 5] = [
    Wait {
        name: "a backoff",
        provider: "retries: { base_ms: 2, cap_ms: 2, max_attempts: 3 }, endpoints: [{ url: A }]",
        model: "targets: [{ provider: one }]",
        first: BAD,
        others: BAD,
        before: Before::Nothing,
        retries: 2,
        seen: "bad",
    },
    Wait {
        name: "a retry in the same provider",
        provider: "endpoints: [{ url: A }, { url: B }]",
        model: "targets: [{ provider: one }, { provider: two }]",
        first: BAD,
        others: GOOD,
        before: Before::Nothing,
        retries: 1,
        seen: "{\"\"}",
    },
    Wait {
        name: "a provider that asks to be left alone",
        provider: "retries: { base_ms: 1, total_deadline_ms: 60000 }, endpoints: [{ url: A }]",
        model: "targets: [{ provider: one }]",
        first: BUSY,
        others: GOOD,
        before: Before::Nothing,
        retries: 1,
        seen: "{\"\"}",
    },
    Wait {
        name: "probes of what is half open",
        provider: "retries: { max_attempts: 1 }, circuit_breaker: { consecutive_failures: 1, half_open_probes: 1 }, \
                   health: { consecutive_failures: 1 }, endpoints: [{ url: A }]",
        model: "cooldown_ms: 30000, targets: [{ provider: one }, { provider: two }]",
        first: BAD,
        others: GOOD,
        before: Before::Failure,
        retries: 0,
        seen: "{\"\"}",
    },
    Wait {
        name: "a queue",
        provider: "concurrency: 1, max_pending: 1, pending_timeout_ms: 60000, endpoints: [{ url: A }]",
        model: "targets: [{ provider: one }]",
        first: &[],
        others: GOOD,
        before: Before::Occupant,
        retries: 0,
        seen: "{\"\"}",
    },
];

impl Wait {
    fn config(&self, address: std::net::SocketAddr) -> Config {
        let url = |path: &str| format!("\"http://{address}/{path}\"");
        let text = format!(
            "version: 1\nlisteners: [{{ name: a, address: \"127.0.0.1:0\" }}]\nproviders:\n  one: {{ {} }}\n  two: {{ \
             endpoints: [{{ url: A }}] }}\nmodels:\n  chat: {{ {} }}\n",
            self.provider, self.model
        );
        parsed(
            &text
                .replace("url: A", &format!("url: {}", url("a")))
                .replace("url: B", &format!("url: {}", url("b"))),
        )
    }
}

async fn provide(listener: TcpListener, first: &'static [&'static [u8]], others: &'static [&'static [u8]]) {
    let mut parts = first;
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            let mut all = Vec::new();
            while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                all.extend_from_slice(&buffer[..length]);
                if all.ends_with(b"}") {
                    break;
                }
            }
            for part in parts {
                pause().await;
                if stream.write_all(part).await.is_err() {
                    return;
                }
            }
            drop(stream.read(&mut buffer).await);
        });
        parts = others;
    }
}

fn request() -> Vec<Vec<u8>> {
    post("/v1/chat/completions", "", "{\"model\":\"chat\"}")
}

/// The sum over the series of a count that hold this label.
fn count(worker: &Worker, name: &str, label: &str) -> u64 {
    let page = worker.shared.metrics.exposition();
    let lines = page
        .lines()
        .filter(|line| line.starts_with(name) && line.contains(label));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// Lets thirty seconds and a tenth more pass at once: as long as anything is out.
async fn pass_half_a_minute() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(34)).await;
    tokio::time::resume();
}

/// As `converse`, with another request in the only slot, which leaves once this one waits for it.
async fn converse_behind(wait: &Wait, worker: &Arc<Worker>, polls: usize) -> bool {
    let (mut occupant, occupying) = connected(worker).await;
    let (mut client, running) = connected(worker).await;
    let provider = Arc::clone(&worker.shared.live.load().table.providers()[0]);
    let running = Dropped(Some(Box::pin(running)), 0, polls);
    let asking = async {
        say(&mut occupant, &request()).await;
        until(|| provider.in_flight() == 1).await;
        say(&mut client, &request()).await;
        // A request that is dropped before it waits never does.
        let waited = until(|| provider.pending() == 1).await;
        drop(occupant);
        let answer = hear(&mut client, wait.seen).await;
        drop(client);
        (answer, waited)
    };
    let (ended, (answer, waited), ()) = tokio::join!(running, asking, occupying);
    if ended.is_some() {
        assert!(waited && answer.contains(wait.seen), "{}: {answer}", wait.name);
    }
    ended.is_some()
}

/// Waits until something holds, which it may never do; whether it does.
async fn until(holds: impl Fn() -> bool) -> bool {
    for _ in 0..2000 {
        if holds() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// One request whose connection is dropped after so many polls; whether it had ended before.
async fn once(wait: &Wait, polls: usize) -> bool {
    let name = wait.name;
    let origin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = origin.local_addr().expect("bound");
    let worker = worker(&wait.config(address), address, Protocol::Http1);
    let provider = tokio::spawn(provide(origin, wait.first, wait.others));
    let ended = match wait.before {
        Before::Nothing => converse(name, &worker, &request(), wait.seen, polls).await,
        Before::Occupant => converse_behind(wait, &worker, polls).await,
        Before::Failure => {
            assert!(converse(name, &worker, &request(), wait.seen, usize::MAX).await);
            pass_half_a_minute().await;
            converse(name, &worker, &request(), wait.seen, polls).await
        }
    };
    let mut left = held(&worker);
    let live = worker.shared.live.load_full();
    let state = live.table.state(worker.shared.clock.now());
    left.extend(
        state
            .providers
            .iter()
            .filter(|one| one.pending > 0)
            .map(|one| (one.name.clone(), "a queue".into())),
    );
    // What is paid for is sent.
    let paid: u64 = state
        .providers
        .iter()
        .map(|one| u64::from(one.retries.window_retries))
        .sum();
    let sent = count(&worker, "lb_retries_total", "outcome=\"sent\"");
    if paid != sent {
        left.push((format!("{paid} retries paid for"), format!("{sent} sent")));
    }
    assert!(
        !ended || sent == wait.retries,
        "{name} is tried again {sent} times"
    );
    assert!(
        left.is_empty(),
        "{name} dropped after {polls} polls leaves {left:?}"
    );
    if wait.before == Before::Failure {
        // Whoever comes next gets the permits, and needs nobody else.
        let ones = || count(&worker, "lb_attempts_total", "provider=\"one\"");
        let before = ones();
        assert!(converse(name, &worker, &request(), wait.seen, usize::MAX).await);
        assert_eq!(
            ones() - before,
            1,
            "{name} dropped after {polls} polls keeps a permit"
        );
        assert_eq!(
            count(&worker, "lb_fail_open_picks_total", ""),
            0,
            "{name}, {polls}"
        );
    }
    provider.abort();
    ended
}

// [STREAM-14] [TABLE-2] [RETRY-14] [LIMITER-6]
#[tokio::test]
async fn a_request_that_waits_for_its_turn_and_is_dropped_gives_back_all_it_held() {
    for wait in WAITS {
        let mut polls = 0;
        while !once(&wait, polls).await {
            polls += 1;
            assert!(polls < 300, "{} never ends", wait.name);
        }
        assert!(polls > 5, "{} waits nowhere?", wait.name);
    }
}
