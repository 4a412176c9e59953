//! A client connection that speaks HTTP/1.1.
//!
//! It is our own, as the other side is, since a proxy needs less than a server for everything has: one task, no channel
//! between a connection and the bodies on it, no buffer while nothing is on its way, one write for a head and what there
//! is of its body, and a word to clients whose request cannot be read. What is read as what is
//! [`crate::wire::http1`]'s.
//!
//! ```text
//!  poll_head ──▶ Received ──▶ service ──▶ Response ──▶ Answer ──▶ poll_head …
//!                    │           ▲                        │
//!                    └ RequestBody                        └▶ the end: closed, after a while of reading where the
//!                      (reads as it is polled)               client still sends; or a tunnel
//! ```
//!
//! All of it is dropped when the client goes, wherever it is.

mod answer;
mod body;
mod date;
mod link;
mod reading;

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{Method, Response, StatusCode, Version};
use http_body::Body as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;

use super::activity::Expiry;
use super::answering::Answering;
use super::body::Body;
use super::connection::{Over, Served};
use super::error::Refusal;
use super::incoming::Incoming;
use super::service::{CLOSE, refuse};
use super::socket::Downstream;
use super::worker::{Drain, Worker};
use crate::net::scratch;
use crate::wire::http1::{
    BadRequest, Present, ResponseBody, ResponseHead, announced_trailers, give_fields, takes_trailers,
    write_response,
};
use answer::{Answer, Written};
use link::Link;
use reading::Received;

pub(super) use body::RequestBody;
pub(super) use link::Ahead;

/// Serves `io` until it ends.
pub(super) async fn serve(served: Served<'_>, io: Downstream, drain: watch::Receiver<Drain>) {
    let link = Link::new(io);
    served.activity.speaks_by(link.ahead());
    let over_all = drain.clone();
    let over = {
        let turns = pin!(turns(&served, &link));
        served.drive(turns, |_| served.activity.finish(), drain).await
    };
    let open_ended = link.is_open_ended();
    let Some((mut io, ahead)) = link.take() else {
        return;
    };
    if let Ok(Ok(End::Switched)) = over {
        if let Some(tunnel) = served.activity.take_tunnel() {
            Box::pin(tunnel.run(io, ahead, over_all)).await;
        }
        return;
    }
    let last = async {
        match over {
            Ok(Ok(End::Closed)) => io.shutdown().await,
            Ok(Ok(End::Unread)) => linger(&mut io).await,
            // Whoever cut it: its framing cannot tell, so a reset does.
            _ if open_ended => io.reset(),
            // Nothing is on its way to the client: the request before, if any, was answered.
            Err(Over::Expired(Expiry::Head)) => say(&mut io, REQUEST_TIMEOUT).await,
            _ => Ok(()),
        }
    };
    drop(tokio::time::timeout(LAST_WORDS, last).await);
}

/// What a head that does not end in time gets.
const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

async fn say(io: &mut Downstream, bytes: &[u8]) -> io::Result<()> {
    io.write_all(bytes).await?;
    io.shutdown().await
}

/// Takes what a client is still sending after its answer, so that the answer is read before the close is seen: a close
/// over unread bytes is a reset, and that destroys what the client has not read yet (RFC 9112, 9.6).
async fn linger(io: &mut Downstream) -> io::Result<()> {
    io.shutdown().await?;
    let mut bytes = vec![0; 16 * 1024];
    while io.read(&mut bytes).await? > 0 {}
    Ok(())
}

/// How long any of these may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How the last turn on a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// In order.
    Closed,
    /// With a response that is not whole.
    Cut,
    /// Switched to another protocol.
    Switched,
    /// Answered, while there is more of the request that nobody will read.
    Unread,
}

/// Request after request, until one is the last.
async fn turns(served: &Served<'_>, link: &Link) -> io::Result<End> {
    loop {
        let next = poll_fn(|cx| match link.poll_head(cx) {
            Poll::Pending if served.activity.is_finishing() && !link.is_begun() => Poll::Ready(Ok(None)),
            next => next,
        });
        // What the head holds is gone before anything is waited for: all that is kept here, every connection keeps.
        let (asked, mut answering) = match next.await? {
            None => return Ok(End::Closed),
            Some(received) => ask(served, link, received),
        };
        let Ok(response) = poll_fn(|cx| {
            let answered = Pin::new(&mut answering).poll(cx);
            if answered.is_pending() {
                // Nobody else writes while there is no answer, and a client that is reading again is not to be cut.
                link.poll_say(cx);
            }
            answered
        })
        .await;
        let read = poll_fn(|cx| Poll::Ready(link.is_read(cx))).await;
        let readable = read || link.is_shared();
        let mut sending = Sending::new((served, link), &asked, response, readable);
        let written = poll_fn(|cx| sending.answer.poll(link, cx)).await?;
        let last = sending.last;
        drop(sending);
        // What the end of the connection ends is its last.
        if written == Written::Whole && last.is_some() {
            link.end_answer();
        }
        let read = read || poll_fn(|cx| Poll::Ready(link.is_read(cx))).await;
        match (written, last) {
            (Written::Cut, _) => return Ok(End::Cut),
            (Written::Whole, None) if read => {}
            (Written::Whole, Some(End::Closed)) if read => return Ok(End::Closed),
            (Written::Whole, Some(End::Switched)) => return Ok(End::Switched),
            (Written::Whole, _) => return Ok(End::Unread),
        }
    }
}

/// Begins to answer a request.
fn ask(served: &Served<'_>, link: &Link, received: Result<Box<Received>, BadRequest>) -> (Asked, Answering) {
    let Received { head, first, more } = match received {
        Ok(received) => *received,
        Err(fault) => {
            let busy = served.activity.begin_request(None);
            let response = refuse(&served.worker, busy, &unreadable(fault));
            return (Asked::NOTHING, Answering::Answered(Some(response)));
        }
    };
    let asked = Asked {
        version: head.request.version(),
        head: *head.request.method() == Method::HEAD,
        keep_alive: head.keep_alive,
        trailers: head.present.any(Present::TE) && takes_trailers(head.request.headers()),
    };
    let body = RequestBody::new(first, more.then(|| link.clone()), head.chunked);
    let request = head.request.map(|()| Incoming::Http1(body));
    (asked, served.answer((request, head.present), None))
}

fn unreadable(fault: BadRequest) -> Refusal {
    match fault {
        BadRequest::Malformed => Refusal::BadRequest("the request's head is not one of HTTP/1.1"),
        BadRequest::TargetTooLong => Refusal::TargetTooLong,
        BadRequest::TooLarge => Refusal::HeadTooLarge,
    }
}

/// What a request's head says of its answer.
struct Asked {
    version: Version,
    head: bool,
    keep_alive: bool,
    trailers: bool,
}

impl Asked {
    /// Of a head that could not be read.
    const NOTHING: Self = Self {
        version: Version::HTTP_11,
        head: false,
        keep_alive: false,
        trailers: false,
    };
}

/// A response on its way.
struct Sending {
    answer: Answer,
    /// How the connection ends behind it, if it does.
    last: Option<End>,
}

impl Sending {
    /// `readable`: all of the request has come, or is still read by somebody.
    fn new(
        (served, link): (&Served<'_>, &Link),
        asked: &Asked,
        response: Response<Body>,
        readable: bool,
    ) -> Self {
        let framing = framing(asked, &response);
        let refuses = response.headers().get(CONNECTION) == Some(&CLOSE);
        let goes_on = asked.keep_alive
            && readable
            && !served.activity.is_finishing()
            && framing != ResponseBody::UntilClose;
        let last = match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => Some(End::Switched),
            // What else the client has sent is not known to be a request.
            _ if refuses => Some(End::Unread),
            _ if goes_on => None,
            _ => Some(End::Closed),
        };
        Self {
            answer: begin(link, asked, response, framing, last),
            last,
        }
    }
}

/// How the body of `response` is framed (RFC 9112, 6).
fn framing(asked: &Asked, response: &Response<Body>) -> ResponseBody {
    let status = response.status();
    let bodiless = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if asked.head || bodiless || status.is_informational() {
        return ResponseBody::None;
    }
    match response.body().size_hint().exact() {
        Some(length) => ResponseBody::Length(length),
        None if asked.version == Version::HTTP_10 => ResponseBody::UntilClose,
        None => ResponseBody::Chunked,
    }
}

/// The response with its head written out; its fields go here.
fn begin(
    link: &Link,
    asked: &Asked,
    response: Response<Body>,
    framing: ResponseBody,
    last: Option<End>,
) -> Answer {
    let (mut parts, body) = response.into_parts();
    if asked.head
        && !body.is_end_stream()
        && let Some(length) = body.size_hint().exact()
    {
        parts.headers.insert(CONTENT_LENGTH, length.into());
    }
    let connection = match (last, asked.version) {
        (Some(End::Switched), _) => None,
        (Some(_), _) => Some("close"),
        (None, Version::HTTP_10) => Some("keep-alive"),
        (None, _) => None,
    };
    let announced = if asked.trailers {
        announced_trailers(&parts.headers)
    } else {
        Vec::new()
    };
    let mut out = scratch::take_write();
    link.begin_answer(&mut out, framing == ResponseBody::UntilClose);
    date::with_date(Worker::unix_second(), |date| {
        let head = ResponseHead {
            version: asked.version,
            status: parts.status,
            headers: &parts.headers,
            body: framing,
            connection,
            date,
        };
        write_response(&mut out, &head);
    });
    give_fields(parts.headers);
    Answer::new(out, body, framing, announced)
}
