use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, duplex};

use super::{Exchange, Fault};
use crate::net::outgoing::Outgoing;
use crate::net::tests::{get, post};
use crate::wire::http1::Malformed;

/// A connection that does what it is told, in order, and then waits for ever.
#[derive(Default)]
struct Scripted {
    writes: VecDeque<io::Result<usize>>,
    reads: VecDeque<io::Result<&'static str>>,
    flushes: VecDeque<io::Result<()>>,
}

impl AsyncRead for Scripted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.reads.pop_front() {
            Some(read) => Poll::Ready(read.map(|text| buf.put_slice(text.as_bytes()))),
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(mut self: Pin<&mut Self>, _cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.writes.pop_front() {
            Some(write) => Poll::Ready(write.map(|length| length.min(buf.len()))),
            None => Poll::Pending,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.flushes.pop_front().unwrap_or(Ok(())))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

const ALL: io::Result<usize> = Ok(usize::MAX);

/// How a GET ends on this connection, as status or fault, and whether it was sent.
fn ended(mut io: Scripted) -> (Poll<Result<u16, Fault>>, bool) {
    let request = get();
    let mut exchange = Exchange::new(Outgoing::new(&request), &request);
    let polled = exchange.poll(&mut io, &mut Context::from_waker(std::task::Waker::noop()));
    let polled = polled.map(|ended| ended.map(|answer| answer.head.status.as_u16()));
    (polled, exchange.into_outgoing().is_sent())
}

fn scripted(
    writes: impl IntoIterator<Item = io::Result<usize>>,
    reads: impl IntoIterator<Item = io::Result<&'static str>>,
) -> Scripted {
    Scripted {
        writes: writes.into_iter().collect(),
        reads: reads.into_iter().collect(),
        flushes: VecDeque::new(),
    }
}

// [NET-13]
#[test]
fn a_connection_that_takes_no_byte_has_not_been_sent_anything() {
    for write in [Err(ErrorKind::BrokenPipe.into()), Ok(0)] {
        let (ended, _) = ended(scripted([write], [Ok("HTTP/1.1 400 Bad\r\n\r\n")]));
        assert!(matches!(ended, Poll::Ready(Err(Fault::NotSent(_)))), "{ended:?}");
    }
}

// [NET-16]
#[test]
fn an_answer_is_heard_though_the_request_could_not_be_written_to_its_end() {
    let io = scripted(
        [Ok(3), Err(ErrorKind::BrokenPipe.into())],
        [Ok("HTTP/1.1 413 Too Large\r\n\r\n")],
    );
    let (ended, sent) = ended(io);
    assert!(matches!(ended, Poll::Ready(Ok(413))), "{ended:?}");
    assert!(!sent);
}

// [NET-13]
#[test]
fn a_request_that_broke_off_without_an_answer_is_unanswered_for_the_first_reason() {
    let io = scripted(
        [Ok(3), Err(ErrorKind::BrokenPipe.into())],
        [Err(ErrorKind::ConnectionReset.into())],
    );
    let (ended, _) = ended(io);
    let Poll::Ready(Err(Fault::Unanswered(error))) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_request_is_sent_once_it_is_flushed() {
    let mut io = scripted([ALL], []);
    io.flushes.push_back(Err(ErrorKind::ConnectionReset.into()));
    assert!(matches!(ended(io), (Poll::Pending, false)));
    assert!(matches!(ended(scripted([ALL], [])), (Poll::Pending, true)));
    assert!(matches!(ended(scripted([Ok(1)], [])), (Poll::Pending, false)));
}

// [NET-13]
#[test]
fn an_end_inside_the_head_is_a_bad_response() {
    for end in [Ok(""), Err(ErrorKind::ConnectionReset.into())] {
        let (ended, _) = ended(scripted([ALL], [Ok("HTTP/1.1 "), end]));
        assert!(
            matches!(ended, Poll::Ready(Err(Fault::Malformed(Malformed::HeadCut)))),
            "{ended:?}"
        );
    }
}

proptest! {
    // [NET-8]
    #[test]
    fn a_request_arrives_whole_whatever_a_write_takes(
        pieces in prop::collection::vec(0..9000_usize, 0..40),
        room in 1..5000_usize,
    ) {
        let pieces: Vec<Bytes> =
            pieces.iter().zip((b'a'..=b'z').cycle()).map(|(&length, letter)| vec![letter; length].into()).collect();
        let body = pieces.concat();
        let head = format!("POST /v1/x?a=b HTTP/1.1\r\nhost: up.example\r\ncontent-length: {}\r\n\r\n", body.len());
        let expected = [head.as_bytes(), &body].concat();
        let (mut ours, mut theirs) = duplex(room);
        let request = post(&pieces);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (answer, seen) = runtime.block_on(async {
            let mut exchange = Exchange::new(Outgoing::new(&request), &request);
            let serve = async {
                let mut seen = vec![0; expected.len()];
                theirs.read_exact(&mut seen).await.unwrap();
                tokio::io::AsyncWriteExt::write_all(&mut theirs, b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                seen
            };
            let exchange = poll_fn(|cx| exchange.poll(&mut ours, cx));
            tokio::join!(exchange, serve)
        });
        prop_assert_eq!(answer.unwrap().head.status, 200);
        prop_assert!(seen == expected);
    }
}
