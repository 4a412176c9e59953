//! The same answers by a provider of HTTP/2.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Request, Response};
use tokio::net::TcpListener;

use super::{Turns, Worker, pause};

const JSON: &str = "application/json";

/// Answers every stream with what these parts say in HTTP/1.1.
pub(super) async fn provide(listener: TcpListener, parts: &'static [&'static [u8]], turns: Arc<Turns>) {
    let (head, body) = translated(parts);
    while let Ok((socket, _)) = listener.accept().await {
        let (body, turns) = (body.clone(), Arc::clone(&turns));
        tokio::spawn(async move {
            let Ok(mut connection) = h2::server::handshake(socket).await else {
                return;
            };
            while let Some(Ok((request, respond))) = connection.accept().await {
                let turns = Arc::clone(&turns);
                tokio::spawn(answer(request, respond, head, body.clone(), turns));
            }
        });
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    (status, content_type): (u16, &'static str),
    body: Vec<Bytes>,
    turns: Arc<Turns>,
) {
    let mut asked = request.into_body();
    while let Some(data) = asked.data().await {
        let Ok(data) = data else { return };
        if asked.flow_control().release_capacity(data.len()).is_err() {
            return;
        }
    }
    if !turns.mine().await {
        drop(poll_fn(|cx| respond.poll_reset(cx)).await);
        return;
    }
    pause().await;
    let mut head = Response::builder()
        .status(status)
        .header("content-type", content_type);
    // What has no length goes to the client in chunks, between whose lines its bytes would have to be looked for.
    if content_type == JSON {
        let length: usize = body.iter().map(Bytes::len).sum();
        head = head.header("content-length", length);
    }
    let head = head.body(()).expect("a status and fields");
    // Whoever has been dropped has reset the stream.
    let Ok(mut sending) = respond.send_response(head, false) else {
        return;
    };
    for piece in body {
        pause().await;
        if sending.send_data(piece, false).is_err() {
            return;
        }
    }
    pause().await;
    drop(sending.send_data(Bytes::new(), true));
}

/// Status and type, and the pieces of the body without the lines of chunks.
fn translated(parts: &[&[u8]]) -> ((u16, &'static str), Vec<Bytes>) {
    let text = parts.concat();
    let text = std::str::from_utf8(&text).expect("text");
    let (head, rest) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (content_type, body) = if head.contains("chunked") {
        let lines: Vec<&str> = rest.split("\r\n").collect();
        let data = lines.chunks(2).filter_map(|chunk| chunk.get(1));
        let data = data.map(|data| Bytes::copy_from_slice(data.as_bytes()));
        (
            "text/event-stream",
            data.filter(|data| !data.is_empty()).collect(),
        )
    } else {
        let (one, two) = rest.split_at(rest.len() / 2);
        let pieces = [one, two].map(|piece| Bytes::copy_from_slice(piece.as_bytes()));
        (JSON, pieces.to_vec())
    };
    ((status.expect("a status"), content_type), body)
}

/// Closes what is kept for other requests, for only what a request holds is to be looked for. A connection ends in a
/// task of its own.
pub(super) async fn let_go(worker: &Worker) {
    let live = worker.shared.live.load_full();
    for route in &live.routes {
        route.destination.purge();
        for _ in 0..1000 {
            if route.destination.open() == 0 {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
}
