//! One request and the head of its answer on one connection, without a word about which connection.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Method;
use tokio::io::{AsyncRead, AsyncWrite};

use super::outgoing::Outgoing;
use super::scratch;
use crate::wire::http1::{Decoder, Head, HeadReader, Malformed};

#[cfg(test)]
mod tests;

/// The request's way out and its answer's way in. They run at once: a server may answer, and often refuses, before it
/// has read a large body, and it would never be heard if all had to be written first.
#[derive(Debug)]
pub(super) struct Exchange {
    outgoing: Outgoing,
    reader: HeadReader,
    /// Why no more can be written. The answer may be there all the same.
    broken: Option<io::Error>,
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
    Malformed(Malformed),
    /// The connection took not a byte.
    NotSent(io::Error),
    /// Sent, at least in part; nothing came back.
    Unanswered(io::Error),
}

impl Exchange {
    pub(super) fn new(outgoing: Outgoing, method: &Method) -> Self {
        Self {
            outgoing,
            reader: HeadReader::new(method),
            broken: None,
        }
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
        if self.broken.is_none() && !self.outgoing.is_sent() {
            match self.outgoing.poll_send(io, cx) {
                Poll::Ready(Err(error)) if !self.outgoing.is_begun() => {
                    return Poll::Ready(Err(Fault::NotSent(error)));
                }
                Poll::Ready(Err(error)) => self.broken = Some(error),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
        }
        loop {
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
