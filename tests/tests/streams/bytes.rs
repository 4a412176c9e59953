//! What passes, byte for byte, whatever it is cut into.

use fastrand::Rng;
use lb_tests::client::{End, chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Step};
use lb_tests::setup::Setup;

/// A stream that is as odd as the standard allows, and sometimes odder.
fn stream(random: &mut Rng) -> Vec<u8> {
    const PARTS: [&[u8]; 16] = [
        b"data: {\"a\":1}",
        b"data:",
        b"data",
        b": comment",
        b"event: delta",
        b"id: 1",
        b"retry: 5",
        b"[DONE]",
        b"data: \xf0\x9f\xa6\x80",
        b"data: \xff\xfe",
        b"unknown: field",
        b"",
        b"",
        b"",
        b"\xef\xbb\xbf",
        b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}",
    ];
    const ENDS: [&[u8]; 3] = [b"\n", b"\r\n", b"\r"];
    // An event of content first, so that the stream is decided and none of it is a failed attempt.
    let mut bytes = b"data: {\"choices\":[]}\n\n".to_vec();
    for _ in 0..random.usize(1..60) {
        bytes.extend_from_slice(PARTS[random.usize(..PARTS.len())]);
        if random.u8(..8) == 0 {
            bytes.extend(std::iter::repeat_n(b'y', random.usize(1..20_000)));
        }
        bytes.extend_from_slice(ENDS[random.usize(..ENDS.len())]);
    }
    bytes
}

/// The same bytes in chunks of random sizes, written in pieces that respect no boundary.
fn chunked(head: &Script, bytes: &[u8], random: &mut Rng) -> Script {
    let mut wire = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(random.usize(1..=rest.len().min(2_000)));
        wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        wire.extend_from_slice(chunk);
        wire.extend_from_slice(b"\r\n");
        rest = after;
    }
    wire.extend_from_slice(b"0\r\n\r\n");
    let mut script = head.clone();
    let mut rest = wire.as_slice();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(random.usize(1..=rest.len().min(3_000)));
        script = script.then(Step::Send(piece.to_vec().into()));
        rest = after;
    }
    script
}

// [STREAM-15]
#[tokio::test]
async fn forwarded_bytes_equal_sent_bytes_however_they_are_chunked() {
    let provider = Provider::start(Script::silent()).await;
    let strict = Lb::start(&Setup::single(&provider)).await;
    let passthrough = Lb::start(&Setup::single(&provider).model("stream_mode: passthrough")).await;
    for seed in 0..64 {
        let mut random = Rng::with_seed(seed);
        let bytes = stream(&mut random);
        for lb in [&strict, &passthrough] {
            provider.next(chunked(&Script::stream(), &bytes, &mut random));
            let answer = lb.chat(true).await;
            assert_eq!((answer.status(), answer.end), (200, End::Clean), "seed {seed}");
            assert!(answer.body == bytes, "seed {seed}: {:?}", answer.text());
        }
    }
}

// [STREAM-15]
#[tokio::test]
async fn bodies_that_are_no_stream_pass_whatever_they_hold() {
    let provider = Provider::start(Script::silent()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    for seed in 0..32 {
        let mut random = Rng::with_seed(seed);
        let bytes: Vec<u8> = (0..random.usize(0..100_000)).map(|_| random.u8(..)).collect();
        let length = bytes.len().to_string();
        let octets = ("content-type", "application/octet-stream");
        let chunks = Script::head(200, &[octets, ("transfer-encoding", "chunked")]);
        let sized = Script::head(200, &[octets, ("content-length", &length)]).bytes(bytes.clone());
        let until_close = Script::head(200, &[octets]).bytes(bytes.clone()).close();
        for script in [chunked(&chunks, &bytes, &mut random), sized, until_close] {
            provider.next(script);
            let answer = lb.chat(random.bool()).await;
            assert_eq!((answer.status(), answer.end), (200, End::Clean), "seed {seed}");
            assert!(answer.body == bytes, "seed {seed}");
        }
    }
}

// [STREAM-16]
#[tokio::test]
async fn a_large_request_body_arrives_whole_at_whoever_answers() {
    let preferred = Provider::start(Script::error(503)).await;
    let alternate = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    let filler = "z\\u00e9\u{e9}".repeat(1 << 18);
    // The model stands after megabytes of messages.
    let body = format!(r#"{{"messages":[{{"content":"{filler}"}}],"model":"chat"}}"#);
    let answer = lb.ask(post("/v1/chat/completions", "", &body)).await;
    assert_eq!(answer.status(), 200);
    for (provider, model) in [(&preferred, "gpu-model"), (&alternate, "alt-model")] {
        let request = provider.request(0).await;
        assert!(request.body == body.replace("\"chat\"", &format!("\"{model}\"")));
    }
}

// [STREAM-16]
#[tokio::test]
async fn a_chunked_request_body_arrives_whole() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let body = chat_body("chat", false);
    let (first, second) = body.split_at(10);
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: lb.test\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x};ext=1\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len(),
    );
    assert_eq!(lb.ask(request).await.status(), 200);
    assert_eq!(provider.request(0).await.json()["model"], "gpu-model");
    assert!(!provider.request(0).await.head.contains("ext=1"));
}
