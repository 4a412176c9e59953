//! Each ending of a stream over every kind of upstream.

use lb_tests::client::End;
use lb_tests::daemon::{Folder, Lb};
use lb_tests::provider::{Provider, Script, token};
use lb_tests::setup::Setup;

use super::origin::{Answer, Origin, Then, certificate, tls_before};

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Clean,
    Died,
    Incomplete,
    Reset,
    Short,
    Silent,
}

const ALL: [Ending; 6] = [
    Ending::Clean,
    Ending::Died,
    Ending::Incomplete,
    Ending::Reset,
    Ending::Short,
    Ending::Silent,
];

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// As HTTP/2 has it.
fn frames(ending: Ending) -> Answer {
    let mut pieces = vec![event(&token("a")), event(&token("b"))];
    let (length, then) = match ending {
        Ending::Clean => {
            pieces.push(event("[DONE]"));
            (None, Then::End)
        }
        Ending::Died => (None, Then::Die),
        Ending::Incomplete => (None, Then::End),
        Ending::Reset => (None, Then::Reset(h2::Reason::INTERNAL_ERROR)),
        Ending::Short => (Some(10_000), Then::End),
        Ending::Silent => (None, Then::Stall),
    };
    Answer::Stream(pieces, length, then)
}

/// As HTTP/1.1 has it.
fn script(ending: Ending) -> Script {
    let begun = Script::stream().token("a").token("b");
    match ending {
        Ending::Clean => begun.data("[DONE]").end(),
        Ending::Died => begun.pause(20).close(),
        Ending::Incomplete => begun.end(),
        // Long enough that what was sent has been read: a reset throws the rest away.
        Ending::Reset => begun.pause(300).reset(),
        Ending::Short => Script::head(
            200,
            &[("content-type", "text/event-stream"), ("content-length", "10000")],
        )
        .bytes(event(&token("a")))
        .bytes(event(&token("b")))
        .close(),
        Ending::Silent => begun.stall(),
    }
}

/// Asks once for each ending, and sees what the client gets and what is counted.
async fn shows(lb: &Lb, ending: Ending) {
    let midstream = lb.sum("lb_stream_failures_total", &[]).await;
    let incomplete = lb.sum("lb_stream_incomplete_total", &[]).await;
    let answer = lb.chat(true).await;
    assert_eq!(answer.status(), 200, "{ending:?}");
    let mut expected = format!("{}{}", event(&token("a")), event(&token("b")));
    if ending == Ending::Clean {
        expected += &event("[DONE]");
    }
    assert_eq!(
        answer.text(),
        expected,
        "{ending:?}: nothing lost, nothing invented"
    );
    let whole = matches!(ending, Ending::Clean | Ending::Incomplete);
    assert_eq!(answer.end == End::Clean, whole, "{ending:?}");
    lb.idle().await;
    assert_eq!(
        lb.sum("lb_stream_incomplete_total", &[]).await - incomplete,
        u64::from(ending == Ending::Incomplete),
        "{ending:?}"
    );
    assert_eq!(
        lb.sum("lb_stream_failures_total", &[]).await - midstream,
        u64::from(!whole),
        "{ending:?}"
    );
}

fn patient(setup: Setup) -> Setup {
    setup
        .provider("health: { enabled: false }")
        .section("failover: { stream_idle_timeout_ms: 150 }")
}

// [NET-12] [NET-30] [STREAM-12]
#[tokio::test]
async fn every_ending_shows_over_http2_by_prior_knowledge() {
    let origin = Origin::start(Answer::Silence, None).await;
    let setup = Setup::new()
        .at("gpu", &[&format!("http://{}/v1", origin.address)])
        .provider("connections: { http_version: http2 }");
    let lb = Lb::start(&patient(setup)).await;
    for ending in ALL {
        origin.next(frames(ending));
        shows(&lb, ending).await;
    }
}

// [NET-12] [NET-28] [NET-30]
#[tokio::test]
async fn every_ending_shows_over_http2_by_alpn() {
    let folder = Folder::new();
    let tls = certificate(folder.path(), &["h2", "http/1.1"]);
    let origin = Origin::start(Answer::Silence, Some(tls)).await;
    let tls = format!(
        "tls: {{ ca_file: {}/ca.pem, server_name: localhost }}",
        folder.path().display()
    );
    let setup = Setup::new()
        .at("gpu", &[&format!("https://{}/v1", origin.address)])
        .provider(&tls);
    let lb = Lb::start(&patient(setup)).await;
    for ending in ALL {
        origin.next(frames(ending));
        shows(&lb, ending).await;
    }
    assert!(origin.seen().iter().all(|seen| seen.scheme == "https"));
}

// [NET-12] [NET-20]
#[tokio::test]
async fn every_ending_shows_over_http1_in_tls() {
    let folder = Folder::new();
    let tls = certificate(folder.path(), &["http/1.1"]);
    let provider = Provider::start(Script::error(500)).await;
    let address = tls_before(provider.address(), tls).await;
    let tls = format!(
        "tls: {{ ca_file: {}/ca.pem, server_name: localhost }}",
        folder.path().display()
    );
    let setup = Setup::new()
        .at("gpu", &[&format!("https://{address}/v1")])
        .provider(&tls);
    let lb = Lb::start(&patient(setup)).await;
    for ending in ALL {
        provider.next(script(ending));
        shows(&lb, ending).await;
    }
}

// [NET-12]
#[tokio::test]
async fn every_ending_shows_over_http1() {
    let provider = Provider::start(Script::error(500)).await;
    let lb = Lb::start(&patient(Setup::single(&provider))).await;
    for ending in ALL {
        provider.next(script(ending));
        shows(&lb, ending).await;
    }
}
