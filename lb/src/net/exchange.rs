//! One request and the head of its answer on one connection, without a word about which connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Sleep;

use super::outgoing::Outgoing;
use super::{Request, scratch};
use crate::wire::http1::{Decoder, Head, HeadReader, Interim, Malformed};

#[cfg(test)]
mod tests;

/// How long an upstream may leave the question unanswered whether it wants a body, before it gets it. RFC 9110 10.1.1
/// forbids waiting for ever, since servers before HTTP/1.1 do not know the question.
const CONTINUE_WAIT: Duration = Duration::from_secs(1);

/// The request's way out and its answer's way in. They run at once: a server may answer, and often refuses, before it
/// has read a large body, and it would never be heard if all had to be written first.
#[derive(Debug)]
pub(super) struct Exchange {
    outgoing: Outgoing,
    reader: HeadReader,
    /// Why no more can be written. The answer may be there all the same.
    broken: Option<io::Error>,
    /// The end of waiting for `100 Continue`, while the body is held back.
    hold: Option<Pin<Box<Sleep>>>,
}

/// A response as far as the read that completed its head went.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) head: Head,
    /// Payload that came with the head.
    pub(super) first: Bytes,
    /// More bytes came than the response has.
    pub(super) excess: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// The source of the request's body failed: the upstream is not to blame.
    Cut(io::Error),
    Malformed(Malformed),
    /// The connection took not a byte.
    NotSent(io::Error),
    /// Sent, at least in part; nothing came back.
    Unanswered(io::Error),
}

impl Exchange {
    pub(super) fn new(outgoing: Outgoing, request: &Request<'_>) -> Self {
        let hold = outgoing
            .is_held_back()
            .then(|| Box::pin(tokio::time::sleep(CONTINUE_WAIT)));
        Self {
            outgoing,
            reader: HeadReader::new(request.method)
                .allowing_upgrade(request.upgrade.is_some())
                .keeping_interims(request.interims.is_some()),
            broken: None,
            hold,
        }
    }

    /// Interim responses that have come since the last call, where the request wants them.
    pub(super) fn take_interims(&mut self) -> Vec<Interim> {
        self.reader.take_interims()
    }

    /// What has not been sent of the request when the answer came.
    pub(super) fn into_outgoing(self) -> Outgoing {
        self.outgoing
    }

    pub(super) fn poll<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        io: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Answer, Fault>> {
        loop {
            if self.broken.is_none() && !self.outgoing.is_sent() {
                self.poll_hold(cx);
                match self.outgoing.poll_send(io, cx) {
                    Poll::Ready(Err(error)) if self.outgoing.is_cut() => {
                        return Poll::Ready(Err(Fault::Cut(error)));
                    }
                    Poll::Ready(Err(error)) if !self.outgoing.is_begun() => {
                        return Poll::Ready(Err(Fault::NotSent(error)));
                    }
                    Poll::Ready(Err(error)) => self.broken = Some(error),
                    Poll::Ready(Ok(())) | Poll::Pending => {}
                }
            }
            let reader = &mut self.reader;
            let error = match ready!(scratch::poll_read(io, cx, |raw| read(reader, raw))) {
                Ok(Ok(Some(answer))) => return Poll::Ready(Ok(answer)),
                Ok(Ok(None)) => continue,
                Ok(Err(None)) => io::ErrorKind::UnexpectedEof.into(),
                Ok(Err(Some(fault))) => return Poll::Ready(Err(Fault::Malformed(fault))),
                Err(error) => error,
            };
            return Poll::Ready(Err(if self.reader.started() {
                Fault::Malformed(Malformed::HeadCut)
            } else {
                Fault::Unanswered(self.broken.take().unwrap_or(error))
            }));
        }
    }

    /// Lets the body go once it is asked for, or has been waited for long enough.
    fn poll_hold(&mut self, cx: &mut Context<'_>) {
        let Some(hold) = &mut self.hold else { return };
        if self.reader.is_continued() || hold.as_mut().poll(cx).is_ready() {
            self.hold = None;
            self.outgoing.go_on();
        }
    }
}

/// Takes one read; `Err(None)` is the connection's end.
fn read(reader: &mut HeadReader, raw: &mut [u8]) -> Result<Option<Answer>, Option<Malformed>> {
    if raw.is_empty() {
        return Err(None);
    }
    let Some((mut head, used)) = reader.feed(raw)? else {
        return Ok(None);
    };
    let (first, excess) = payload(&mut head.body, &mut raw[used..]);
    debug_assert!(
        head.status != StatusCode::SWITCHING_PROTOCOLS || !excess,
        "all that follows a 101 is the other protocol's"
    );
    Ok(Some(Answer { head, first, excess }))
}

/// The payload of one read as `Bytes` of exactly its size, and whether more came than is the body's. What is broken
/// stays in the decoder, which tells it after this payload.
pub(super) fn payload(body: &mut Decoder, raw: &mut [u8]) -> (Bytes, bool) {
    let Ok(decoded) = body.decode(raw) else {
        return (Bytes::new(), true);
    };
    (
        Bytes::copy_from_slice(&raw[decoded.payload]),
        decoded.used < raw.len(),
    )
}
