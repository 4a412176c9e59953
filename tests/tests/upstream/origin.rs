//! An HTTP/2 upstream that does what a test says, and TLS in front of others.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use lb_tests::PATIENCE;
use lb_tests::client::{End, Exchange};
use lb_tests::provider::Signal;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, pem::PemObject as _};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// What a stream does after its pieces.
#[derive(Clone, Debug)]
pub(crate) enum Then {
    /// The connection dies without a word.
    Die,
    End,
    Reset(Reason),
    /// Nothing, until the peer resets it.
    Stall,
    /// Waits for the signal and ends.
    Wait(Signal),
}

/// The answer to one request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Reset before any head.
    Refuse(Reason),
    /// An event stream, with the length that it claims.
    Stream(Vec<String>, Option<u64>, Then),
    /// No head at all.
    Silence,
}

/// What the origin has seen of one request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) connection: usize,
    pub(crate) headers: HeaderMap,
    pub(crate) path: String,
    pub(crate) scheme: String,
    /// When and why the peer reset it.
    pub(crate) reset: Option<(Instant, Reason)>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Answer>,
    otherwise: Option<Answer>,
    seen: Vec<Seen>,
    connections: usize,
    /// Told to say GOAWAY, by connection.
    leaving: Vec<Arc<tokio::sync::Notify>>,
}

/// The origin; dropped, it is gone with its connections.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    server: JoinHandle<()>,
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Origin {
    /// Speaks HTTP/2 by prior knowledge, or over TLS.
    pub(crate) async fn start(otherwise: Answer, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            otherwise: Some(otherwise),
            ..State::default()
        }));
        let shared = Arc::clone(&state);
        let server = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (tls, state) = (tls.clone(), Arc::clone(&shared));
                connections.spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(socket).await {
                                serve(stream, state).await;
                            }
                        }
                        None => serve(socket, state).await,
                    }
                });
            }
        });
        Self {
            address,
            state,
            server,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn next(&self, answer: Answer) {
        self.state().queue.push_back(answer);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state().seen.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state().connections
    }

    /// Says GOAWAY on its `n`th connection.
    pub(crate) fn leave(&self, n: usize) {
        self.state().leaving[n].notify_one();
    }

    /// Waits until something holds of what it has seen.
    pub(crate) async fn until<T>(&self, what: &str, look: impl Fn(&[Seen]) -> Option<T>) -> T {
        let found = async {
            loop {
                if let Some(found) = look(&self.state().seen) {
                    return found;
                }
                sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        let found = timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("waited in vain for {what}"))
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, state: Arc<Mutex<State>>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    let (leave, number) = {
        let mut state = state.lock().unwrap();
        let leave = Arc::new(tokio::sync::Notify::new());
        state.leaving.push(Arc::clone(&leave));
        state.connections += 1;
        (leave, state.connections - 1)
    };
    let die = Arc::new(tokio::sync::Notify::new());
    let mut streams = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    streams.spawn(answer(request, respond, number, Arc::clone(&state), Arc::clone(&die)));
                }
                _ => return,
            },
            () = leave.notified() => connection.graceful_shutdown(),
            () = die.notified() => return,
        }
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    connection: usize,
    state: Arc<Mutex<State>>,
    die: Arc<tokio::sync::Notify>,
) {
    let (parts, mut body) = request.into_parts();
    while let Some(Ok(data)) = body.data().await {
        drop(body.flow_control().release_capacity(data.len()));
    }
    let (script, number) = {
        let mut state = state.lock().unwrap();
        state.seen.push(Seen {
            connection,
            headers: parts.headers,
            path: parts.uri.path().to_owned(),
            scheme: parts.uri.scheme_str().unwrap_or_default().to_owned(),
            reset: None,
        });
        let number = state.seen.len() - 1;
        let next = state.queue.pop_front();
        (next.or_else(|| state.otherwise.clone()).unwrap(), number)
    };
    let note = |reason| state.lock().unwrap().seen[number].reset = Some((Instant::now(), reason));
    match script {
        Answer::Refuse(reason) => respond.send_reset(reason),
        Answer::Silence => {
            if let Ok(reason) = std::future::poll_fn(|cx| respond.poll_reset(cx)).await {
                note(reason);
            }
        }
        Answer::Stream(pieces, length, then) => {
            let mut head = Response::builder().header("content-type", "text/event-stream");
            if let Some(length) = length {
                head = head.header("content-length", length);
            }
            let Ok(mut out) = respond.send_response(head.body(()).unwrap(), false) else {
                return;
            };
            for piece in pieces {
                drop(out.send_data(piece.into(), false));
            }
            match then {
                Then::Die => {
                    // What was written is to be on its way first.
                    sleep(std::time::Duration::from_millis(20)).await;
                    die.notify_one();
                }
                Then::End => drop(out.send_data(Bytes::new(), true)),
                Then::Reset(reason) => {
                    // A reset throws away what has not been written.
                    sleep(std::time::Duration::from_millis(20)).await;
                    out.send_reset(reason);
                }
                Then::Stall => {
                    if let Ok(reason) = std::future::poll_fn(|cx| out.poll_reset(cx)).await {
                        note(reason);
                    }
                }
                Then::Wait(signal) => {
                    signal.fired().await;
                    drop(out.send_data(Bytes::new(), true));
                }
            }
        }
    }
}

/// How an answer whose head has been read comes to its end.
pub(crate) async fn rest(exchange: &mut Exchange) -> End {
    loop {
        if let Err(end) = exchange.piece().await {
            return end;
        }
    }
}

/// A certificate for `localhost` in this folder, and what accepts by it.
pub(crate) fn certificate(folder: &Path, alpn: &[&str]) -> TlsAcceptor {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("ca.pem"), cert.pem()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(signing_key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config).into()
}

/// TLS in front of a provider in the clear: what it sends, and how it ends, comes out unchanged.
pub(crate) async fn tls_before(provider: SocketAddr, tls: TlsAcceptor) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let tls = tls.clone();
            tokio::spawn(async move {
                let Ok(mut outer) = tls.accept(socket).await else {
                    return;
                };
                let mut inner = TcpStream::connect(provider).await.unwrap();
                // Neither end says farewell: a close is a close.
                drop(copy_bidirectional(&mut outer, &mut inner).await);
            });
        }
    });
    address
}
