//! Everything at once: many clients, two workers, providers that fail in every way, clients that leave at any time.

use fastrand::Rng;
use lb_tests::client::{End, Exchange, chat};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, token};
use lb_tests::setup::Setup;
use tokio::task::JoinSet;

const REQUESTS: u64 = 400;
const AT_A_TIME: usize = 24;

/// The whole answer of a provider whose tokens carry its name.
fn whole(name: &str) -> String {
    let finish = token("")
        .replace("{\"content\":\"\"}", "{}")
        .replace("null", "\"stop\"");
    format!(
        "data: {0}\n\ndata: {0}\n\ndata: {finish}\n\ndata: [DONE]\n\n",
        token(name)
    )
}

/// A random way to answer, good or bad.
fn script(name: &str, random: &mut Rng) -> Script {
    let good = |script: Script| script.token(name).token(name).finish();
    match random.u8(..16) {
        0 => Script::silent().stall(),
        1 => Script::silent().close(),
        2 => Script::silent().reset(),
        3 => Script::error(503),
        4 => Script::error(500),
        5 => Script::stream().stall(),
        6 => Script::stream().close(),
        7 => Script::stream()
            .data("{\"error\":{\"type\":\"overloaded_error\"}}")
            .end(),
        8 => Script::stream().token(name).reset(),
        9 => Script::stream().token(name).token(name).close(),
        10 => Script::stream().end(),
        11 => good(Script::silent().pause(random.u64(..150)).streams()),
        12 => good(Script::stream().bytes(": hi\n\n").pause(random.u64(..150))).close(),
        _ => good(Script::stream()),
    }
}

/// What one client saw; `None` if it left before the end.
async fn client(lb: std::net::SocketAddr, seed: u64) -> Option<(u16, String, End)> {
    let mut random = Rng::with_seed(seed);
    let mut exchange = Exchange::begin(lb, chat("chat", true)).await;
    match random.u8(..8) {
        0 => return None,
        1 => {
            exchange.head().await;
            return None;
        }
        2 => {
            exchange.head().await;
            // Whether anything comes does not matter: it leaves all the same.
            drop(exchange.piece().await);
            exchange.reset();
            return None;
        }
        _ => {}
    }
    let answer = exchange.answer().await;
    Some((answer.status(), answer.text(), answer.end))
}

// [STREAM-12] [STREAM-14] [STREAM-18]
#[tokio::test]
async fn every_answer_is_whole_or_visibly_cut_and_nothing_stays_behind() {
    let (gpu, alt) = (
        Provider::start(Script::silent()).await,
        Provider::start(Script::silent()).await,
    );
    let setup = Setup::pair(&gpu, &alt)
        .fallback("first_token_timeout_ms: 200")
        .fallback("aimd: { latency_budget_ms: 100, dwell_ms: 50, min_samples: 5, window_samples: 20 }")
        .provider("timeouts: { read_ms: 400 }")
        // With most attempts failing it would end the test before it has begun.
        .provider("circuit_breaker: { enabled: false }")
        .section("failover: { stream_idle_timeout_ms: 400 }");
    let lb = Lb::start(&setup.server("workers: 2")).await;
    let mut random = Rng::with_seed(7);
    for (name, provider) in [("gpu", &gpu), ("alt", &alt)] {
        (0..2 * REQUESTS).for_each(|_| provider.next(script(name, &mut random)));
    }

    let mut clients = JoinSet::new();
    let mut seen = Vec::new();
    for seed in 0..REQUESTS {
        clients.spawn(client(lb.data(), seed));
        if clients.len() >= AT_A_TIME {
            seen.extend(
                clients
                    .join_next()
                    .await
                    .expect("some are under way")
                    .expect("no client panics"),
            );
        }
    }
    seen.extend(clients.join_all().await.into_iter().flatten());

    let wholes = [whole("gpu"), whole("alt")];
    for (status, text, end) in &seen {
        let text = text.trim_start_matches(": hi\n\n");
        match (status, end) {
            (200, End::Clean) => assert!(wholes.iter().any(|whole| whole == text), "{text}"),
            (200, End::Cut) => assert!(wholes.iter().any(|whole| whole.starts_with(text)), "{text}"),
            // The last provider's own error, or lb's.
            (429 | 500 | 502 | 503 | 504 | 529, End::Clean) => assert!(text.contains("\"error\""), "{text}"),
            other => panic!("{other:?}: {text}"),
        }
    }
    let clean = seen
        .iter()
        .filter(|(status, _, end)| (*status, *end) == (200, End::Clean))
        .count();
    assert!(clean > seen.len() / 3, "{clean} of {}", seen.len());
    lb.idle().await;
    let counted = lb.sum("lb_requests_total", &["model=\"chat\""]).await;
    // A client may leave before lb has read its request.
    assert!(
        (seen.len() as u64..=REQUESTS).contains(&counted),
        "{counted} of {REQUESTS}"
    );
    assert_eq!(lb.sum("lb_downstream_connections", &[]).await, 0);
}
