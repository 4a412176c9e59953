//! TLS towards clients, through the daemon.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lb_tests::PATIENCE;
use lb_tests::client::{chat, get};
use lb_tests::daemon::{Folder, Lb};
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// lb with a certificate of its own, and what its clients trust.
pub(crate) struct Secured {
    pub(crate) provider: Provider,
    pub(crate) lb: Lb,
    folder: Folder,
    roots: RootCertStore,
}

impl Secured {
    pub(crate) async fn start(otherwise: Script, listener: &[&str]) -> Self {
        let folder = Folder::new();
        let mut roots = RootCertStore::empty();
        roots.add(renew(&folder)).unwrap();
        let provider = Provider::start(otherwise).await;
        let path = folder.path().display();
        let tls = format!("tls: {{ cert_file: {path}/cert.pem, key_file: {path}/key.pem }}");
        let setup = Setup::single(&provider).listener(&tls);
        let setup = listener
            .iter()
            .fold(setup, |setup, member| setup.listener(member));
        let lb = Lb::start(&setup).await;
        Self {
            provider,
            lb,
            folder,
            roots,
        }
    }

    /// A connection on which these protocols were offered.
    pub(crate) async fn connect(&self, alpn: &[&str]) -> io::Result<TlsStream<TcpStream>> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(self.lb.data()).await?;
        let name = ServerName::try_from("lb.test").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

/// Writes a new certificate for `lb.test` and its key.
fn renew(folder: &Folder) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["lb.test".to_owned()]).unwrap();
    folder.write("cert.pem", &made.cert.pem());
    folder.write("key.pem", &made.signing_key.serialize_pem());
    made.cert.der().clone()
}

/// Reads until `text` has come, and what came with it.
async fn until(stream: &mut TlsStream<TcpStream>, text: &str) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let more = timeout(PATIENCE, stream.read_buf(&mut read)).await;
        let more = more
            .unwrap_or_else(|_| panic!("no end after {}", String::from_utf8_lossy(&read)))
            .unwrap();
        assert!(more > 0, "an end after {}", String::from_utf8_lossy(&read));
    }
    String::from_utf8(read).unwrap()
}

// [TLS-6]
#[tokio::test]
async fn a_stream_over_tls_is_the_same_and_its_provider_is_told_of_https() {
    let secured = Secured::start(Script::streamed(&["a", "b"]), &[]).await;
    let mut stream = secured.connect(&["http/1.1"]).await.unwrap();
    for _ in 0..2 {
        stream.write_all(&chat("chat", true)).await.unwrap();
        // The end of the body before it, if that came in chunks, may stand in front.
        let answer = until(&mut stream, "data: [DONE]\n\n").await;
        assert!(answer.contains("HTTP/1.1 200 "), "{answer}");
    }
    let request = secured.provider.request(0).await;
    assert_eq!(request.all("x-forwarded-proto"), ["https"]);
}

// [TLS-7]
#[tokio::test]
async fn a_handshake_that_does_not_end_is_closed() {
    let secured = Secured::start(Script::completion("ok"), &["first_byte_timeout_ms: 300"]).await;
    let limit = Duration::from_millis(300);
    for sent in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        // Before the connection, since lb may have accepted it before this test goes on.
        let begun = Instant::now();
        let mut stream = TcpStream::connect(secured.lb.data()).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let mut read = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut read))
            .await
            .expect("closed")
            .unwrap();
        assert!(begun.elapsed() >= limit);
    }
    // After the handshake the wait begins anew.
    for alpn in [&["http/1.1"][..], &["h2"]] {
        let begun = Instant::now();
        let mut stream = secured.connect(alpn).await.unwrap();
        let mut read = Vec::new();
        let ended = timeout(PATIENCE, stream.read_to_end(&mut read))
            .await
            .expect("closed");
        drop(ended);
        assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
    }
    // A record that drips in is no first byte.
    let mut stream = secured.connect(&["http/1.1"]).await.unwrap();
    let (tcp, _) = stream.get_mut();
    tcp.write_all(b"\x17\x03\x03\x01\x00drip").await.unwrap();
    let mut byte = [0];
    let begun = Instant::now();
    while timeout(PATIENCE, tcp.read(&mut byte))
        .await
        .expect("closed")
        .is_ok_and(|read| read > 0)
    {}
    assert!(begun.elapsed() < PATIENCE);
}

// [TLS-8]
#[tokio::test]
async fn a_client_that_goes_is_seen_through_tls() {
    let secured = Secured::start(
        Script::stream().token("a").then(lb_tests::provider::Step::Stall),
        &[],
    )
    .await;
    for number in 0..2 {
        let mut stream = secured.connect(&["http/1.1"]).await.unwrap();
        stream.write_all(&chat("chat", true)).await.unwrap();
        until(&mut stream, "\n\n\r\n").await;
        // Pipelined bytes hide nothing.
        stream.write_all(&get("/v1/models")).await.unwrap();
        let gone = Instant::now();
        if number == 0 {
            stream.shutdown().await.unwrap();
        } else {
            drop(stream);
        }
        let left = secured.provider.left(number).await;
        let after = left.saturating_duration_since(gone);
        assert!(after < Duration::from_secs(1), "{after:?}");
    }
    secured.lb.idle().await;
}

// [TLS-3]
#[tokio::test]
async fn a_renewed_certificate_comes_into_use_by_itself() {
    let more = Signal::new();
    let script = Script::stream().token("a").wait(&more).token("b").finish();
    let mut secured = Secured::start(script, &[]).await;
    let mut open = secured.connect(&["http/1.1"]).await.unwrap();
    open.write_all(&chat("chat", true)).await.unwrap();
    let renewed = renew(&secured.folder);
    secured.lb.logged(&["certificates renewed"]).await;
    assert!(
        secured.connect(&[]).await.is_err(),
        "the old certificate is not shown any more"
    );
    secured.roots.add(renewed).unwrap();
    secured.connect(&[]).await.unwrap();
    more.fire();
    assert!(
        until(&mut open, "\r\n0\r\n\r\n").await.contains("[DONE]"),
        "what is open goes on"
    );
    secured.folder.write("key.pem", "no key");
    secured.lb.logged(&["not renewed", "private key"]).await;
    secured.connect(&[]).await.unwrap();
}

// [TLS-9]
#[tokio::test]
async fn what_is_no_tls_is_closed_and_told_nothing_of_http() {
    let secured = Secured::start(Script::completion("ok"), &[]).await;
    let mut stream = TcpStream::connect(secured.lb.data()).await.unwrap();
    stream.write_all(&get("/v1/models")).await.unwrap();
    let mut read = Vec::new();
    drop(
        timeout(PATIENCE, stream.read_to_end(&mut read))
            .await
            .expect("closed"),
    );
    assert!(!read.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&read));
    assert_eq!(secured.provider.requests().len(), 0);
}
