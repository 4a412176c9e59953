//! Request bodies: forms, long ones, compressed ones, and what all of them may hold.

use std::time::{Duration, Instant};

use lb_tests::client::{Exchange, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Refusing, Script, Signal};
use lb_tests::setup::Setup;
use tokio::time::timeout;

use super::start;

fn head(fields: &str) -> String {
    format!("POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n{fields}\r\n")
}

/// A JSON body whose model stands behind `before` bytes of something else, with `after` more behind it.
fn long(before: usize, after: usize) -> String {
    format!(
        "{{\"a\":\"{}\",\"model\":\"chat\",\"b\":\"{}\"}}",
        "x".repeat(before),
        "y".repeat(after)
    )
}

/// The same as gpu gets it.
fn renamed(body: &str) -> String {
    body.replace("\"model\":\"chat\"", "\"model\":\"gpu-model\"")
}

// field fault H2
// [BODY-4] [STREAM-16]
#[tokio::test]
async fn a_form_is_routed_by_its_part_and_arrives_as_sent_but_for_the_name() {
    let (provider, lb) = start(|setup| setup).await;
    let file = "\u{1}\r\n--b\r\n--b1\r\n".repeat(20_000);
    let form = |model: &str| {
        format!(
            "--b0\r\ncontent-disposition: form-data; name=\"file\"; filename=\"model\"\r\n\r\n{file}\r\n--b0\r\n\
             content-disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n--b0--\r\n"
        )
    };
    let body = form("chat");
    let fields = format!(
        "content-type: multipart/form-data; boundary=b0\r\ncontent-length: {}\r\n",
        body.len()
    );
    let request = head(&fields).replace("chat/completions", "audio/transcriptions") + &body;
    assert_eq!(lb.ask(request).await.status(), 200);
    let sent = provider.request(0).await;
    assert_eq!(sent.line().1, "/v1/audio/transcriptions");
    assert!(sent.body == form("gpu-model").as_bytes());
    assert_eq!(sent.all("content-length"), [sent.body.len().to_string()]);
    let unnamed = "--b0\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b0--\r\n";
    let fields = format!(
        "content-type: multipart/form-data; boundary=b0\r\ncontent-length: {}\r\n",
        unnamed.len()
    );
    let refused = lb.ask(head(&fields) + unnamed).await;
    assert_eq!((refused.status(), refused.code().as_str()), (400, "invalid_json"));
}

// [BODY-5]
#[tokio::test]
async fn a_compressed_body_is_refused_unless_its_model_is_named_elsewhere() {
    let (provider, lb) = start(|setup| setup).await;
    let body = "\u{1f}\u{8b} not to be read";
    let fields = |more: &str| {
        format!(
            "content-encoding: gzip\r\n{more}content-length: {}\r\n",
            body.len()
        )
    };
    assert_eq!(lb.ask(head(&fields("")) + body).await.status(), 415);
    assert_eq!(
        lb.ask(head(&fields("x-lb-model: chat\r\n")) + body)
            .await
            .status(),
        200
    );
    let sent = provider.request(0).await;
    assert_eq!(&sent.body[..], body.as_bytes());
    assert_eq!(
        (sent.header("content-encoding"), sent.header("x-lb-model")),
        (Some("gzip"), None)
    );
    let named = head(&fields("")).replace("completions ", "completions?model=chat ");
    assert_eq!(lb.ask(named + body).await.status(), 200);
    assert!(provider.request(1).await.line().1.ends_with("?model=gpu-model"));
}

// field fault H8
// [BODY-3]
#[tokio::test]
async fn a_body_over_the_limit_is_streamed_with_the_right_name_and_length_wherever_the_model_stands() {
    let (provider, lb) = start(|setup| setup.server("replay_bytes: 1000")).await;
    for (number, (before, after)) in [(10, 100_000), (100_000, 10), (100_000, 100_000), (0, 990)]
        .into_iter()
        .enumerate()
    {
        let body = long(before, after);
        assert_eq!(
            lb.ask(post("/v1/chat/completions", "", &body)).await.status(),
            200
        );
        let sent = provider.request(number).await;
        assert!(sent.body == renamed(&body).as_bytes(), "{before} and {after}");
        assert_eq!(sent.all("content-length"), [sent.body.len().to_string()]);
    }
    let body = long(50_000, 50_000);
    let (one, two) = body.split_at(70_000);
    let chunked = format!(
        "{}{:x};ext=1\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        head("transfer-encoding: chunked\r\n"),
        one.len(),
        two.len()
    );
    assert_eq!(lb.ask(chunked).await.status(), 200);
    let sent = provider.request(4).await;
    assert!(sent.body == renamed(&body).as_bytes());
    assert_eq!(
        (sent.all("transfer-encoding"), sent.header("content-length")),
        (vec!["chunked"], None)
    );
}

// [BODY-3]
#[tokio::test]
async fn what_is_streamed_reaches_the_provider_while_it_comes_and_is_sent_once() {
    let (listener, provider) = (Refusing::new(), Provider::start(Script::completion("ok")).await);
    let setup = Setup::new()
        .at("gpu", &[&listener.url()])
        .at("alt", &[&provider.url()]);
    let lb = Lb::start(&setup.server("replay_bytes: 1000")).await;
    // Nothing was sent to the first: the second gets all of it.
    let body = long(10, 100_000);
    assert_eq!(
        lb.ask(post("/v1/chat/completions", "", &body)).await.status(),
        200
    );
    assert!(provider.request(0).await.body == body.replace("\"chat\"", "\"alt-model\"").as_bytes());

    let failing = Provider::start(Script::error(503)).await;
    let lb = Lb::start(&Setup::pair(&failing, &provider).server("replay_bytes: 1000")).await;
    assert_eq!(
        lb.ask(post("/v1/chat/completions", "", &body)).await.status(),
        503
    );
    assert_eq!(
        (failing.requests().len(), provider.requests().len()),
        (1, 1),
        "it is not there any more"
    );
    assert_eq!(lb.chat(false).await.status(), 200, "as a short one is");
}

// [BODY-3] [ENV-3]
#[tokio::test]
async fn a_streamed_body_that_goes_wrong_is_the_clients_fault_and_no_provider_sees_it_whole() {
    let (provider, lb) = start(|setup| {
        setup
            .server("replay_bytes: 1000")
            .listener("max_body_bytes: 300000")
    })
    .await;
    let tail = "x".repeat(100_000);
    for (end, status) in [("\",\"model\":\"b\"}", 400), ("\"", 400), ("\" nonsense}", 400)] {
        let body = format!("{{\"model\":\"chat\",\"a\":\"{tail}{end}");
        assert_eq!(
            lb.ask(post("/v1/chat/completions", "", body)).await.status(),
            status,
            "{end}"
        );
    }
    let body = format!("{{\"model\":\"chat\",\"a\":\"{}", "x".repeat(400_000));
    let chunked = format!(
        "{}{:x}\r\n{body}",
        head("transfer-encoding: chunked\r\n"),
        body.len()
    );
    assert_eq!(lb.ask(chunked).await.status(), 413);
    assert_eq!(provider.requests().len(), 0, "none was complete");
    lb.idle().await;
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
}

// HTTP checklist 20
// [BODY-7]
#[tokio::test]
async fn a_refusal_is_heard_while_a_body_is_still_being_sent() {
    let (provider, lb) = start(|setup| setup.server("replay_bytes: 1000")).await;
    let body = format!("{{\"model\":\"chat\",\"a\":\"{}", "x".repeat(50_000));
    // The provider needs the whole request before it answers, so it is one that answers at the head.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("bound");
    let early = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.read_u8().await.expect("a byte");
        let refusal = "HTTP/1.1 413 Too Long\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";
        stream.write_all(refusal.as_bytes()).await.expect("open");
        let mut rest = Vec::new();
        // Only the beginning of it comes.
        drop(stream.read_to_end(&mut rest).await);
        rest.len()
    });
    let hasty = Lb::start(
        &Setup::new()
            .at("gpu", &[&format!("http://{address}/v1")])
            .server("replay_bytes: 1000"),
    )
    .await;
    let chunked = format!(
        "{}{:x}\r\n{body}",
        head("transfer-encoding: chunked\r\n"),
        1_000_000
    );
    let mut exchange = Exchange::begin(hasty.data(), chunked).await;
    let answer = exchange.answer().await;
    assert_eq!((answer.status(), answer.text().as_str()), (413, "no"));
    assert!(exchange.closed().await, "the rest of the request is not wanted");
    assert!(early.await.expect("no panic") < 1_000_000);
    hasty.idle().await;
    drop((provider, lb));
}

// [BODY-1]
#[tokio::test]
async fn beyond_the_budget_reading_pauses_and_then_there_is_503() {
    let signal = Signal::new();
    let (provider, lb) = start(|setup| setup.server("buffer_bytes: 300000")).await;
    provider.otherwise(
        Script::silent()
            .wait(&signal)
            .then(lb_tests::provider::Step::Send(
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".into(),
            )),
    );
    let body = long(200_000, 0);
    let mut first = Exchange::begin(lb.data(), post("/v1/chat/completions", "", &body)).await;
    provider.request(0).await;
    let begun = Instant::now();
    let refused = lb.ask(post("/v1/chat/completions", "", &body)).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (503, "request_buffer_full")
    );
    assert_eq!(refused.head.all("retry-after"), ["1"]);
    assert!(begun.elapsed() >= Duration::from_millis(1900), "it waited");
    assert_eq!(
        lb.ask(get("/v1/models")).await.status(),
        200,
        "what needs no room goes on"
    );
    // One that waits goes on as soon as there is room.
    let mut waiting = Exchange::begin(lb.data(), post("/v1/chat/completions", "", &body)).await;
    signal.fire();
    assert_eq!(first.answer().await.status(), 200);
    assert_eq!(waiting.answer().await.status(), 200);
}

// [STREAM-10]
#[tokio::test]
async fn a_slow_upload_is_not_its_providers_and_read_ms_begins_where_it_ends() {
    let limit = Duration::from_millis(300);
    let setup = |setup: Setup| {
        setup
            .server("replay_bytes: 1000")
            .provider("timeouts: { read_ms: 300 }")
    };
    let (provider, lb) = start(setup).await;
    let request = post("/v1/chat/completions", "", long(2000, 2000));
    let (first, rest) = request.split_at(request.len() - 1000);
    let mut exchange = Exchange::begin(lb.data(), first).await;
    let answered = timeout(3 * limit, exchange.closed()).await;
    assert!(answered.is_err(), "answered before its body is whole");
    exchange.send(rest).await;
    assert_eq!(exchange.answer().await.status(), 200);
    assert_eq!(provider.requests().len(), 1);
    assert_eq!(lb.endpoint("gpu", 0).await["consecutive_failures"], 0);
    // With all of the body it may take no longer than that.
    provider.otherwise(Script::silent().stall());
    let mut exchange = Exchange::begin(lb.data(), first).await;
    assert!(timeout(2 * limit, exchange.closed()).await.is_err());
    let begun = Instant::now();
    exchange.send(rest).await;
    assert_eq!(exchange.answer().await.status(), 504);
    assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
    assert_eq!(lb.endpoint("gpu", 0).await["consecutive_failures"], 1);
}
