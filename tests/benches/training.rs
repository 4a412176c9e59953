//! The traffic that lb is for, for a build that counts what runs: `cargo xtask release`.
//!
//! Run with `LB_BIN` naming that build. Nothing is measured. What is not in here is taken for rare when lb is built
//! again, and is slower for it: small answers and streams, with the access log and without, over HTTP/1.1 plain and with
//! TLS and over HTTP/2, with a model's name as it is and in another's place. That the answers are right is checked, since
//! a profile of refusals would be worth nothing.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use lb_tests::client::{chat, chat_body};
use lb_tests::daemon::{Folder, Lb};
use lb_tests::provider::{Provider, Script};
use rustix::process::Signal;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Connections of each kind at a time.
const CONNECTIONS: usize = 8;

/// Requests on each of them, and how much fewer there are with TLS and over HTTP/2. What is counted by the byte there
/// would outweigh what is done once for a request, which then looked rare.
const WHOLE: usize = 4000;
const SECURED: usize = 8;
const MULTIPLEXED: usize = 40;

/// Streams on each of them, and the tokens of each.
const STREAMS: usize = 40;
const TOKENS: usize = 50;

/// The models, each with an answer of its own kind; those that end in `-2` have another name upstream.
const MODELS: [&str; 4] = ["whole", "whole-2", "stream", "stream-2"];

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        for access in [false, true] {
            train(access).await;
        }
    });
    ExitCode::SUCCESS
}

async fn train(access: bool) {
    let whole = Provider::start(Script::completion("Hello, what can I do for you?")).await;
    let stream = Provider::start(Script::streamed(&["token "; TOKENS])).await;
    let folder = Folder::new();
    let made = rcgen::generate_simple_self_signed(["lb.test".to_owned()]).expect("a certificate");
    folder.write("cert.pem", &made.cert.pem());
    folder.write("key.pem", &made.signing_key.serialize_pem());
    let mut lb = Lb::with(&config(&whole, &stream, &folder, access)).await;
    let plain = lb.data();
    let tls = (lb.listening("tls", 1).await, made.cert.der().clone());
    let mut clients = JoinSet::new();
    for n in 0..CONNECTIONS {
        let model = MODELS[n % 2];
        let connection = TcpStream::connect(plain).await.expect("lb listens");
        clients.spawn(turns(connection, model, WHOLE));
        clients.spawn(turns(secured(&tls, "http/1.1").await, model, WHOLE / SECURED));
        clients.spawn(multiplexed(secured(&tls, "h2").await, model, WHOLE / MULTIPLEXED));
    }
    clients.join_all().await;
    let mut clients = JoinSet::new();
    for n in 0..CONNECTIONS {
        let model = MODELS[2 + n % 2];
        let connection = TcpStream::connect(plain).await.expect("lb listens");
        clients.spawn(turns(connection, model, STREAMS));
        clients.spawn(turns(secured(&tls, "http/1.1").await, model, STREAMS / SECURED));
        clients.spawn(multiplexed(
            secured(&tls, "h2").await,
            model,
            STREAMS / MULTIPLEXED,
        ));
    }
    clients.join_all().await;
    // What was counted is written at its end.
    lb.signal(Signal::TERM);
    assert!(lb.exit().await.success());
}

fn config(whole: &Provider, stream: &Provider, folder: &Folder, access: bool) -> String {
    let (whole, stream, path) = (whole.url(), stream.url(), folder.path().display());
    format!(
        r#"version: 1
listeners:
  - {{ name: data, address: "127.0.0.1:0" }}
  - {{ name: tls, address: "127.0.0.1:0", tls: {{ cert_file: {path}/cert.pem, key_file: {path}/key.pem }} }}
admin: {{ address: "127.0.0.1:0" }}
log: {{ format: json, access: {access} }}
server: {{ workers: 1 }}
kernel: {{ mode: off }}
providers:
  whole: {{ endpoints: [{{ url: "{whole}" }}], api_key: key-of-whole }}
  stream: {{ endpoints: [{{ url: "{stream}" }}], api_key: key-of-stream }}
models:
  whole: {{ targets: [{{ provider: whole }}, {{ provider: stream }}] }}
  whole-2: {{ targets: [{{ provider: whole, upstream_model: x }}, {{ provider: stream }}] }}
  stream: {{ targets: [{{ provider: stream }}, {{ provider: whole }}] }}
  stream-2: {{ targets: [{{ provider: stream, upstream_model: x }}, {{ provider: whole }}] }}
"#
    )
}

async fn secured(
    (address, certificate): &(SocketAddr, CertificateDer<'static>),
    protocol: &str,
) -> impl AsyncRead + AsyncWrite + Send + Unpin + 'static {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("it was just made");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("its defaults")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(address).await.expect("lb listens");
    let name = ServerName::try_from("lb.test").expect("a name");
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.expect("lb speaks TLS")
}

/// One request after another over HTTP/1.1.
async fn turns(mut connection: impl AsyncRead + AsyncWrite + Unpin, model: &str, times: usize) {
    let request = chat(model, model.starts_with("stream"));
    let mut answer = Vec::new();
    for _ in 0..times {
        connection.write_all(&request).await.expect("lb reads");
        answer.clear();
        while !is_whole(&answer) {
            let read = connection.read_buf(&mut answer).await.expect("lb answers");
            assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
    }
}

/// Whether all of an answer is here.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() == length,
        None => body.ends_with("\r\n0\r\n\r\n"),
    }
}

/// One request after another over HTTP/2.
async fn multiplexed(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    model: &str,
    times: usize,
) {
    let begun = http2::handshake(TokioExecutor::new(), TokioIo::new(connection)).await;
    let (mut sender, driver) = begun.expect("lb speaks HTTP/2");
    let driver = tokio::spawn(driver);
    let body = chat_body(model, model.starts_with("stream"));
    for _ in 0..times {
        let request = http::Request::post("https://lb.test/v1/chat/completions")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.clone())))
            .expect("a request");
        let answer = sender.send_request(request).await.expect("lb answers");
        assert_eq!(answer.status(), 200);
        answer.into_body().collect().await.expect("all of it");
    }
    drop(sender);
    drop(driver.await);
}
