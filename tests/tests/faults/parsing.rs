//! What the observer of a stream must not do to it.

use lb_tests::client::{End, chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal, token};
use lb_tests::setup::Setup;

/// U1 with this script and an alternate that must not be needed.
async fn pair(preferred: Script) -> (Provider, Provider, Lb) {
    let preferred = Provider::start(preferred).await;
    let alternate = Provider::start(Script::streamed(&["from alt"])).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    (preferred, alternate, lb)
}

/// Streams these pieces, each a chunk of its own, and expects them back whole and from U1.
async fn passes(pieces: &[&[u8]]) {
    let script = pieces
        .iter()
        .fold(Script::stream(), |script, piece| script.bytes(piece.to_vec()));
    let (_preferred, alternate, lb) = pair(script.end()).await;
    let answer = lb.chat(true).await;
    assert_eq!((answer.status(), answer.end), (200, End::Clean));
    assert_eq!(answer.body, pieces.concat(), "{:?}", answer.text());
    assert_eq!(alternate.requests().len(), 0);
}

// field fault P1
// [STREAM-15]
#[tokio::test]
async fn a_character_split_over_chunks_stays_whole() {
    passes(&[b"data: \"\xe5\xa5", b"\xbd\"\n\n", b"data: [DONE]\n\n"]).await;
}

// field fault P1
#[tokio::test]
async fn bytes_that_are_not_utf8_pass() {
    passes(&[b"data: \"\xff\xfe\"\n\n", b"data: [DONE]\n\n"]).await;
}

// field fault P2
#[tokio::test]
async fn any_mix_of_line_ends_passes_in_any_chunks() {
    passes(&[b"data: x\r\n\r", b"\ndata: y\r\r", b"data: [DONE]\n\n"]).await;
    passes(&[b"data: x\r", b"\r", b"data: y\n\r\n"]).await;
}

// field fault P2
#[tokio::test]
async fn line_ends_of_any_kind_end_an_event_at_once() {
    for first in [
        "data: x\r\n\r\n",
        "data: x\n\n",
        "data: x\r\r:\r",
        "data: x\r\n\n",
        "data: x\n\r\n",
    ] {
        let seen = Signal::new();
        let (_preferred, alternate, lb) =
            pair(Script::stream().bytes(first).wait(&seen).data("[DONE]").end()).await;
        let mut exchange = lb.begin().await;
        assert_eq!(exchange.head().await.status, 200);
        exchange.until("data: x").await;
        seen.fire();
        exchange.until("[DONE]").await;
        assert_eq!(alternate.requests().len(), 0, "{first:?}");
    }
}

// field fault P4
#[tokio::test]
async fn the_last_event_counts_without_its_empty_line() {
    passes(&[b"data: {\"finish\":true}"]).await;
    passes(&[b"data: {\"finish\":true}\n"]).await;
    passes(&[b"data: [DONE]"]).await;
}

// field faults P6, P11
// [STREAM-17]
#[tokio::test]
async fn an_event_larger_than_every_cap_flows_on_and_so_does_what_follows() {
    let large = format!("data: \"{}\"\n\n", "x".repeat(70 * 1024));
    let (preferred, _alternate, lb) = pair(Script::stream().bytes(large.clone()).data("[DONE]").end()).await;
    let answer = lb.chat(true).await;
    assert_eq!(
        (answer.end, answer.text()),
        (End::Clean, format!("{large}data: [DONE]\n\n"))
    );

    let huge = format!("data: \"{}\"\n\n", "y".repeat(3 * 1024 * 1024));
    preferred.next(Script::stream().bytes(huge.clone()).data("[DONE]").end());
    assert_eq!(lb.chat(true).await.text(), format!("{huge}data: [DONE]\n\n"));
    preferred.next(
        Script::stream()
            .token("a")
            .bytes(huge.clone())
            .data("[DONE]")
            .end(),
    );
    let answer = lb.chat(true).await;
    assert_eq!(
        (answer.end, answer.text()),
        (
            End::Clean,
            format!("data: {}\n\n{huge}data: [DONE]\n\n", token("a"))
        )
    );
}

// field fault P8
#[tokio::test]
async fn fields_and_comments_are_left_as_they_are() {
    passes(&[
        b"\xef\xbb\xbf: hi\nid: 7\nretry: 10\nevent: delta\ndata:{}\nunknown: 1\n\n",
        b"data: [DONE]\n\n",
    ])
    .await;
}

// field faults P8, P11, H5
// [STREAM-8]
#[tokio::test]
async fn a_compressed_stream_passes_with_its_label_though_it_was_not_asked_for() {
    let bytes = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03not really gzip".to_vec();
    let script = Script::stream_with(&[("content-encoding", "gzip")])
        .bytes(bytes.clone())
        .end();
    let (preferred, alternate, lb) = pair(script).await;
    let request = post(
        "/v1/chat/completions",
        "accept-encoding: gzip, br\r\n",
        chat_body("chat", true),
    );
    let answer = lb.ask(request).await;
    assert_eq!(
        (answer.status(), answer.end, answer.body.to_vec()),
        (200, End::Clean, bytes)
    );
    assert_eq!(answer.head.header("content-encoding"), Some("gzip"));
    assert_eq!(preferred.request(0).await.all("accept-encoding"), ["identity"]);
    assert_eq!(alternate.requests().len(), 0);
}

// field fault P10
#[tokio::test]
async fn a_bare_done_line_is_an_unknown_field_and_no_end() {
    let script = Script::stream().token("a").bytes("[DONE]\n\n").token("b").end();
    let (preferred, alternate, lb) = pair(script).await;
    let answer = lb.chat(true).await;
    let expected = format!("data: {}\n\n[DONE]\n\ndata: {}\n\n", token("a"), token("b"));
    assert_eq!((answer.end, answer.text()), (End::Clean, expected));
    preferred.next(Script::stream().bytes("[DONE]\n\n").end());
    assert!(
        lb.chat(true).await.text().contains("from alt"),
        "nothing but an unknown field is an empty stream"
    );
    assert_eq!(alternate.requests().len(), 1);
}

// field fault P11
#[tokio::test]
async fn data_over_several_lines_and_without_a_space_passes() {
    passes(&[b"data: {\"a\":\ndata: 1}\n\n", b"data: [DONE]\n\n"]).await;
    passes(&[b"data:{}\n\n", b"data:[DONE]\n\n"]).await;
    passes(&[b"data\ndata: x\n\n", b"data: [DONE]\n\n"]).await;
}
