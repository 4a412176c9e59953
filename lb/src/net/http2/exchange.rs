//! One request on a connection that others use as well.

use std::error::Error as _;
use std::future::Future as _;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use http::uri::{Authority, Scheme, Uri};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use tokio::time::Instant;

use super::connection::Slot;
use super::sending::Sending;
use crate::net::body::{Http2, Incoming};
use crate::net::client::STALE_WITHIN;
use crate::net::{Destination, Error, Request, Streamed};
use crate::wire::http1::{Malformed, is_always_hop_by_hop, strip_hop_by_hop};

/// How the connection was come by, for what a failure means.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct How {
    /// It had carried requests before.
    pub(in crate::net) reused: bool,
    /// A fresh one was asked for.
    pub(in crate::net) fresh: bool,
    /// When the attempt began to send.
    pub(in crate::net) begun: Instant,
    /// Whether it speaks TLS.
    pub(in crate::net) secure: bool,
}

impl How {
    pub(in crate::net) fn new(destination: &Destination, reused: bool, fresh: bool) -> Self {
        Self {
            reused,
            fresh,
            begun: Instant::now(),
            secure: destination.tls().is_some(),
        }
    }
}

/// Sends `request` and waits for the response's head. Dropped before that, the stream is reset. What was not sent of
/// `body` at all is left there.
pub(in crate::net) async fn send(
    mut slot: Slot,
    request: &Request<'_>,
    body: &mut Option<Streamed>,
    how: How,
) -> Result<Response<Incoming>, Error> {
    let cut = Arc::new(AtomicBool::new(false));
    let sending = sending(request, body.take(), &cut, &slot);
    let request = head(request, sending, how.secure)?;
    let mut sender = slot.sender();
    let ended = {
        let mut answer = pin!(sender.try_send_request(request));
        let mut given_up = pin!(slot.given_up());
        // An answer that is there counts, whatever the kernel plane thought of the connection before.
        std::future::poll_fn(|cx| match answer.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => given_up.as_mut().poll(cx).map(|()| None),
        })
        .await
    };
    slot.answered();
    match ended {
        None => Err(Error::Signalled),
        Some(Ok(response)) => Ok(respond(response, slot, how.reused)),
        Some(Err(_)) if slot.is_ended() => Err(Error::Signalled),
        Some(Err(mut failed)) => {
            let unsent = failed.take_message();
            let (unsent, left) = (unsent.is_some(), unsent.map(http::Request::into_body));
            *body = left.and_then(Sending::into_streamed);
            Err(classify(
                failed.into_error(),
                unsent,
                cut.load(Ordering::Acquire),
                how,
            ))
        }
    }
}

fn sending(request: &Request<'_>, body: Option<Streamed>, cut: &Arc<AtomicBool>, slot: &Slot) -> Sending {
    match (body, request.body) {
        (Some(body), _) => Sending::Stream {
            left: body.length(),
            body,
            cut: Arc::clone(cut),
            _upload: slot.upload(),
        },
        (None, Some(pieces)) => Sending::Whole {
            left: request.content_length().unwrap_or(0),
            pieces: Vec::from(pieces).into_iter(),
            trailers: request.trailers.cloned(),
            _upload: slot.upload(),
        },
        (None, None) => Sending::Nothing,
    }
}

/// The request as hyper takes it: what HTTP/1.1 says in `host` and the request line goes into the pseudo fields.
fn head(request: &Request<'_>, body: Sending, secure: bool) -> Result<http::Request<Sending>, Error> {
    let unfit = |error: http::Error| Error::Local(io::Error::new(io::ErrorKind::InvalidInput, error));
    let authority = Authority::try_from(request.host.as_bytes()).map_err(|error| unfit(error.into()))?;
    let scheme = if secure { Scheme::HTTPS } else { Scheme::HTTP };
    let uri = Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(request.target.clone())
        .build()
        .map_err(unfit)?;
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers.iter() {
        let ours = [header::HOST, header::CONTENT_LENGTH, header::EXPECT].contains(name);
        if !ours && !is_always_hop_by_hop(name.as_str()) {
            headers.append(name.clone(), value.clone());
        }
    }
    if request.takes_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    let mut out = http::Request::new(body);
    *out.method_mut() = request.method.clone();
    *out.uri_mut() = uri;
    *out.version_mut() = Version::HTTP_2;
    *out.headers_mut() = headers;
    Ok(out)
}

fn respond(response: Response<hyper::body::Incoming>, slot: Slot, reused: bool) -> Response<Incoming> {
    let (mut parts, stream) = response.into_parts();
    strip_hop_by_hop(&mut parts.headers);
    if parts.status == StatusCode::NO_CONTENT {
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    Response::from_parts(parts, Incoming::http2(Http2::new(stream, slot), reused))
}

/// What the upstream can have seen of the request.
fn classify(error: hyper::Error, unsent: bool, cut: bool, how: How) -> Error {
    let cause = error
        .source()
        .and_then(|source| source.downcast_ref::<h2::Error>());
    let refused = cause.is_some_and(is_refusal);
    let library = cause.is_some_and(h2::Error::is_library);
    // hyper unwraps what the socket said.
    let socket = error
        .source()
        .is_some_and(<dyn std::error::Error>::is::<io::Error>);
    let text = match error.source() {
        Some(source) => io::Error::other(format!("{error}: {source}")),
        None => io::Error::other(error),
    };
    match () {
        () if cut => Error::Cut(text),
        () if unsent && !how.reused => Error::Connect(text),
        () if unsent || refused => Error::Refused {
            source: text,
            again: !how.fresh,
        },
        () if library => Error::BadResponse(Malformed::Http2),
        () if socket && how.reused && how.begun.elapsed() < STALE_WITHIN => Error::Stale(text),
        () => Error::Unanswered(text),
    }
}

/// Whether the upstream says that it has not looked at the request: RFC 9113 8.7. h2 gives a GOAWAY as the cause only to
/// streams above its last one, and to those that were never opened.
fn is_refusal(error: &h2::Error) -> bool {
    error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
}
