//! A client connection that speaks HTTP/2.

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

use super::connection::Served;
use super::socket::Downstream;
use super::worker::Drain;

/// Requests that a client may have open at a time.
const MAX_STREAMS: u32 = 128;

/// A longer list of header fields is refused; h2 also bounds by it how many CONTINUATION frames it takes. Bytes.
const MAX_HEADER_LIST: u32 = 64 * 1024;

/// Streams that a client may open and reset before they are looked at (CVE-2023-44487); past it the connection ends.
const MAX_RESET_UNSEEN: usize = 20;

/// Streams that a client may make us reset by its own errors (CVE-2025-8671); past it the connection ends.
const MAX_RESET_BY_ERROR: usize = 256;

/// What one stream may hold that its client has not taken. Bytes.
const MAX_SEND_BUFFER: usize = 64 * 1024;

/// What a client may send ahead of what is read, in one request and in all. Bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Serves `io` until it ends. Idle connections are ended by [`super::activity`]; hyper's pings are off, since they
/// would keep a client's silent connection alive and wake sleeping devices.
pub(super) async fn serve(served: Served<'_>, io: Downstream, drain: watch::Receiver<Drain>) {
    let service = service_fn(|request| served.answer(request));
    let mut connection = http2::Builder::new(Streams)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST)
        .max_pending_accept_reset_streams(MAX_RESET_UNSEEN)
        .max_local_error_reset_streams(MAX_RESET_BY_ERROR)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .serve_connection(TokioIo::new(io), service);
    served
        .drive(&mut connection, http2::Connection::graceful_shutdown, drain)
        .await;
}

/// Runs each stream as a task of this worker. hyper ends them when their connection is dropped.
#[derive(Clone, Copy, Debug)]
struct Streams;

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(stream);
    }
}
