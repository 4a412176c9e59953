use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{SetupError, Tls, Trust, roots_from_file};
use crate::net::tests::{LIMITS, send, text, until_error};
use crate::net::{BodyError, Destination, Error, Protocol};

/// An upstream with a certificate for `localhost`.
struct Upstream {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    certificate: CertificateDer<'static>,
}

impl Upstream {
    async fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self {
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            acceptor: Arc::new(config).into(),
            certificate: cert.der().clone(),
        }
    }

    fn trusted(&self) -> Trust {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        Trust::Roots(Arc::new(roots))
    }

    fn destination(&self, name: &str, trust: Trust) -> Arc<Destination> {
        let tls = Arc::new(Tls::new(name, trust, None, Protocol::Http1).unwrap());
        Arc::new(Destination::new(
            &[self.listener.local_addr().unwrap()],
            Some(tls),
            LIMITS,
            1,
        ))
    }

    async fn accept(&self) -> std::io::Result<TlsStream<TcpStream>> {
        self.acceptor
            .accept(self.listener.accept().await.unwrap().0)
            .await
    }

    async fn answer(&self, response: &str) -> TlsStream<TcpStream> {
        let mut peer = self.accept().await.unwrap();
        answer(&mut peer, response).await;
        peer
    }
}

async fn answer(peer: &mut TlsStream<TcpStream>, response: &str) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        assert!(peer.read_buf(&mut request).await.unwrap() > 0);
    }
    peer.write_all(response.as_bytes()).await.unwrap();
    peer.flush().await.unwrap();
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// [NET-20]
#[tokio::test]
async fn a_trusted_upstream_is_spoken_to_and_its_connection_used_again() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination("localhost", upstream.trusted());
    let (response, mut peer) = tokio::join!(send(&destination), upstream.answer(OK));
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "ok");
    assert_eq!(peer.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(destination.idle(), 1);
    let (response, ()) = tokio::join!(send(&destination), answer(&mut peer, OK));
    let response = response.unwrap();
    assert!(response.body().reused());
    assert_eq!(text(response.into_body()).await.unwrap(), "ok");
}

// [NET-20]
#[tokio::test]
async fn another_name_or_another_root_is_refused() {
    let upstream = Upstream::new().await;
    let other = Upstream::new().await;
    for (name, trust) in [
        ("elsewhere.example", upstream.trusted()),
        ("127.0.0.1", upstream.trusted()),
        ("localhost", other.trusted()),
    ] {
        let destination = upstream.destination(name, trust);
        let (response, accepted) = tokio::join!(send(&destination), upstream.accept());
        assert!(matches!(response, Err(Error::Tls(_))), "{name}: {response:?}");
        assert!(accepted.is_err());
        assert_eq!(destination.open(), 0);
    }
}

// [NET-20]
#[tokio::test]
async fn without_verification_anybody_is_taken() {
    let upstream = Upstream::new().await;
    for name in ["elsewhere.example", "127.0.0.1", "[::1]"] {
        let destination = upstream.destination(name, Trust::Anyone);
        let (response, _peer) = tokio::join!(send(&destination), upstream.answer(OK));
        assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "ok");
    }
}

// [NET-12]
#[tokio::test]
async fn an_end_without_close_notify_is_a_truncation() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination("localhost", upstream.trusted());
    let raw = "HTTP/1.1 200 OK\r\n\r\npart";
    let (response, mut peer) = tokio::join!(send(&destination), upstream.answer(raw));
    peer.shutdown().await.unwrap();
    assert_eq!(
        text(response.unwrap().into_body()).await.unwrap(),
        "part",
        "with it, it is the end"
    );
    let (response, peer) = tokio::join!(send(&destination), upstream.answer(raw));
    drop(peer);
    let (seen, error) = until_error(response.unwrap().into_body()).await;
    assert_eq!(seen, "part");
    assert!(matches!(error, BodyError::Truncated), "{error:?}");
}

// [NET-13]
#[tokio::test]
async fn a_peer_that_does_not_speak_tls_is_a_tls_failure() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination("localhost", upstream.trusted());
    let serve = async {
        let mut peer = upstream.listener.accept().await.unwrap().0;
        peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        peer
    };
    let (response, _peer) = tokio::join!(send(&destination), serve);
    assert!(matches!(response, Err(Error::Tls(_))), "{response:?}");
}

// [NET-19]
#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_not_answered_uses_up_the_connect_time() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination("localhost", upstream.trusted());
    let begun = tokio::time::Instant::now();
    let accept = async { upstream.listener.accept().await.unwrap().0 };
    let (response, _peer) = tokio::join!(send(&destination), accept);
    assert!(matches!(response, Err(Error::ConnectTimeout)), "{response:?}");
    assert_eq!(begun.elapsed().as_secs(), 5);
    assert!(
        begun.elapsed() < Duration::from_millis(5100),
        "TCP and TLS share one limit"
    );
}

#[test]
fn roots_come_from_a_file_of_certificates() {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["a.example".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let file = tempfile("roots", certificate.pem().repeat(2).as_bytes());
    assert_eq!(roots_from_file(&file.0).unwrap().len(), 2);
    let file = tempfile("none", b"nothing in here\n");
    assert!(matches!(roots_from_file(&file.0), Err(SetupError::NoRoots(_))));
    let file = tempfile(
        "broken",
        b"-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n",
    );
    let error = roots_from_file(&file.0).unwrap_err();
    assert!(matches!(error, SetupError::File { .. }), "{error:?}");
    let missing = roots_from_file(std::path::Path::new("/does/not/exist")).unwrap_err();
    assert!(missing.to_string().starts_with("/does/not/exist: "), "{missing}");
}

#[test]
fn what_no_certificate_can_carry_is_no_name() {
    for name in ["", "a b", "http://a"] {
        assert!(
            matches!(
                Tls::new(name, Trust::Anyone, None, Protocol::Auto),
                Err(SetupError::Name(_))
            ),
            "{name:?}"
        );
    }
}

struct File(std::path::PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

fn tempfile(name: &str, content: &[u8]) -> File {
    let path = std::env::temp_dir().join(format!("lb-net-tls-{}-{name}", std::process::id()));
    std::fs::File::create(&path).unwrap().write_all(content).unwrap();
    File(path)
}
