//! Speaks HTTP/2 in front of a scripted provider, and passes its endings on as that version has them.

use std::error::Error as _;
use std::future::{pending, poll_fn};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderName, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// One connection; whatever is not HTTP/2 is closed.
pub(crate) async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, behind: SocketAddr) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    let death = Arc::new(Notify::new());
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = death.notified() => return,
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    streams.spawn(pass(request, respond, behind, Arc::clone(&death)));
                }
                _ => return,
            },
        }
    }
}

/// One request, on a connection of its own to the provider, which is gone with it.
async fn pass(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    behind: SocketAddr,
    death: Arc<Notify>,
) {
    let (parts, mut body) = request.into_parts();
    let mut whole = Vec::new();
    while let Some(data) = body.data().await {
        let Ok(data) = data else { return };
        drop(body.flow_control().release_capacity(data.len()));
        whole.extend_from_slice(&data);
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder().method(parts.method).uri(path);
    for (name, value) in &parts.headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(whole.into())).unwrap();
    let Ok(socket) = TcpStream::connect(behind).await else {
        return;
    };
    let (sender, connection) = http1::handshake(TokioIo::new(socket)).await.unwrap();
    let driven = async {
        drop(connection.await);
        pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = exchange(sender, request, respond, &death) => {}
        () = driven => {}
    }
}

async fn exchange(
    mut sender: SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
    mut respond: SendResponse<Bytes>,
    death: &Notify,
) {
    let answered = tokio::select! {
        biased;
        _ = poll_fn(|cx| respond.poll_reset(cx)) => return,
        answered = sender.send_request(request) => answered,
    };
    let Ok(response) = answered else {
        respond.send_reset(Reason::INTERNAL_ERROR);
        return;
    };
    let (parts, body) = response.into_parts();
    let sized = parts.headers.contains_key(header::CONTENT_LENGTH);
    let mut head = Response::builder().status(parts.status);
    let hop: [HeaderName; 2] = [header::CONNECTION, header::TRANSFER_ENCODING];
    for (name, value) in parts.headers.iter().filter(|(name, _)| !hop.contains(name)) {
        head = head.header(name, value);
    }
    let Ok(mut out) = respond.send_response(head.body(()).unwrap(), false) else {
        return;
    };
    let Some(error) = forward(body, &mut out).await else {
        return;
    };
    // A reset, and the death of the connection, throw away what has not been written.
    sleep(Duration::from_millis(20)).await;
    match error.kind() {
        // An end before the length that was promised, or without a word.
        ErrorKind::UnexpectedEof if sized => drop(out.send_data(Bytes::new(), true)),
        ErrorKind::UnexpectedEof => {
            death.notify_one();
            pending::<()>().await;
        }
        ErrorKind::ConnectionReset => out.send_reset(Reason::INTERNAL_ERROR),
        _ => out.send_reset(Reason::PROTOCOL_ERROR),
    }
}

/// Passes the body on; why it broke off, where the provider was to blame.
async fn forward(mut body: Incoming, out: &mut h2::SendStream<Bytes>) -> Option<io::Error> {
    loop {
        let frame = tokio::select! {
            biased;
            _ = poll_fn(|cx| out.poll_reset(cx)) => return None,
            frame = body.frame() => frame,
        };
        match frame {
            None => {
                drop(out.send_data(Bytes::new(), true));
                return None;
            }
            Some(Ok(frame)) => drop(out.send_data(frame.into_data().unwrap_or_default(), false)),
            Some(Err(error)) => {
                let source = error
                    .source()
                    .and_then(|source| source.downcast_ref::<io::Error>());
                return Some(
                    source.map_or_else(|| io::Error::other("broken"), |source| source.kind().into()),
                );
            }
        }
    }
}
