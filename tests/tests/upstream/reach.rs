//! How upstreams are reached: certificates of ours, sockets, proxies, limits, ages, names.

use std::sync::Arc;
use std::time::Duration;

use lb_tests::client::End;
use lb_tests::daemon::{Folder, Lb};
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc;

use super::origin::{rest, tls_before};

/// Keys in this folder: the server's as `ca.pem`, the client's as `client.pem` and `client.key`.
fn mutual(folder: &Folder) -> tokio_rustls::TlsAcceptor {
    let pair = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (server, client) = (pair(), pair());
    folder.write("ca.pem", &server.cert.pem());
    folder.write("client.pem", &client.cert.pem());
    folder.write("client.key", &client.signing_key.serialize_pem());
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(client.cert.pem().as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let key = PrivateKeyDer::from_pem_slice(server.signing_key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![server.cert.der().clone()], key)
        .unwrap();
    Arc::new(config).into()
}

// [NET-20]
#[tokio::test]
async fn an_upstream_that_asks_for_a_certificate_is_shown_it() {
    let folder = Folder::new();
    let provider = Provider::start(Script::streamed(&["ok"])).await;
    let address = tls_before(provider.address(), mutual(&folder)).await;
    let path = folder.path().display();
    for (shown, status) in [
        (
            format!(", client_cert_file: {path}/client.pem, client_key_file: {path}/client.key"),
            200,
        ),
        (String::new(), 502),
    ] {
        let tls = format!("tls: {{ ca_file: {path}/ca.pem, server_name: localhost{shown} }}");
        let setup = Setup::new()
            .at("gpu", &[&format!("https://{address}/v1")])
            .provider(&tls);
        let lb = Lb::start(&setup).await;
        assert_eq!(lb.chat(true).await.status(), status);
    }
}

// [NET-34]
#[tokio::test]
async fn an_endpoint_may_be_a_socket_file() {
    let folder = Folder::new();
    let file = folder.path().join("model.sock");
    let provider = Provider::start(Script::streamed(&["ok"])).await;
    let listener = UnixListener::bind(&file).unwrap();
    let address = provider.address();
    tokio::spawn(async move {
        while let Ok((mut outer, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut inner = TcpStream::connect(address).await.unwrap();
                drop(copy_bidirectional(&mut outer, &mut inner).await);
            });
        }
    });
    let setup = Setup::new().at("gpu", &[&format!("unix:{}:/api/v2", file.display())]);
    let lb = Lb::start(&setup).await;
    for _ in 0..3 {
        assert_eq!(lb.chat(true).await.end, End::Clean);
    }
    let request = provider.request(2).await;
    assert_eq!(request.line(), ("POST", "/api/v2/chat/completions"));
    assert_eq!(request.header("host"), Some("localhost"));
    assert_eq!(provider.connections().len(), 1, "connections are kept");
    std::fs::remove_file(&file).unwrap();
}

/// A proxy that makes tunnels and tells what it was asked for.
async fn proxy() -> (std::net::SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (told, asked) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut outer, _)) = listener.accept().await {
            let told = told.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(outer.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let target = head.split(' ').nth(1).unwrap().to_owned();
                told.send(head).unwrap();
                if target.ends_with(":1") {
                    outer
                        .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
                        .await
                        .unwrap();
                    return;
                }
                let mut inner = TcpStream::connect(target).await.unwrap();
                outer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                drop(copy_bidirectional(&mut outer, &mut inner).await);
            });
        }
    });
    (address, asked)
}

// [NET-33]
#[tokio::test]
async fn a_proxy_makes_the_way_and_its_password_is_nowhere_to_be_seen() {
    let folder = Folder::new();
    let provider = Provider::start(Script::streamed(&["ok"])).await;
    let tls = super::origin::certificate(folder.path(), &["http/1.1"]);
    let secure = tls_before(provider.address(), tls).await;
    let (proxy, mut asked) = proxy().await;
    for (url, target) in [
        (provider.url(), provider.address()),
        (format!("https://{secure}/v1"), secure),
    ] {
        let path = folder.path().display();
        let setup = Setup::new()
            .at("gpu", &[&url])
            .provider(&format!(
                "tls: {{ ca_file: {path}/ca.pem, server_name: localhost }}"
            ))
            .provider(&format!(
                "connections: {{ proxy: \"http://lb:hunter2@{proxy}\" }}"
            ))
            .section("log: { level: trace, format: json }");
        let text = setup.text().replace("log: { format: json }\n", "");
        let lb = Lb::with(&text).await;
        assert_eq!(lb.chat(true).await.end, End::Clean);
        let head = asked.recv().await.unwrap();
        assert!(
            head.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")),
            "{head}"
        );
        assert!(
            head.contains("proxy-authorization: Basic bGI6aHVudGVyMg==\r\n"),
            "{head}"
        );
        assert!(!provider.request(0).await.head.contains("proxy-"));
        for secret in ["hunter2", "bGI6aHVudGVyMg"] {
            assert!(!lb.log().contains(secret));
            assert!(!lb.state().await.to_string().contains(secret));
        }
    }
}

// [NET-33]
#[tokio::test]
async fn what_a_proxy_refuses_goes_to_the_next_target_and_says_why() {
    let provider = Provider::start(Script::streamed(&["ok"])).await;
    let (proxy, _asked) = proxy().await;
    let setup = Setup::new()
        .at("gpu", &["http://127.0.0.1:1/v1"])
        .at("alt", &[&provider.url()])
        .provider(&format!("connections: {{ proxy: \"http://{proxy}\" }}"))
        .section("log: { level: debug, format: json }");
    let text = setup.text().replace("log: { format: json }\n", "");
    let lb = Lb::with(&text).await;
    assert_eq!(lb.chat(true).await.end, End::Clean);
    lb.logged(&["the proxy answered 403"]).await;
}

// [NET-21]
#[tokio::test]
async fn at_its_limit_an_endpoint_is_waited_for_and_then_passed_over() {
    let (gate, begun) = (Signal::new(), Script::stream().token("busy"));
    let provider = Provider::start(Script::streamed(&["free"])).await;
    provider.next(begun.wait(&gate).finish());
    let setup = Setup::single(&provider)
        .provider("connections: { max_per_endpoint: 1 }, timeouts: { connect_ms: 300 }");
    let lb = Lb::start(&setup).await;
    let mut busy = lb.begin().await;
    busy.head().await;
    busy.until("busy").await;
    let answer = lb.chat(true).await;
    assert_eq!(
        (answer.status(), answer.code().as_str()),
        (429, "concurrency_limit_exceeded")
    );
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
    let address = lb.data();
    let waiting =
        tokio::spawn(
            async move { lb_tests::client::ask(address, lb_tests::client::chat("chat", true)).await },
        );
    lb.eventually("the second request to be in flight", async |lb| {
        lb.endpoint("gpu", 0).await["in_flight"] == 2
    })
    .await;
    gate.fire();
    assert_eq!(rest(&mut busy).await, End::Clean);
    assert_eq!(waiting.await.unwrap().end, End::Clean);
    assert_eq!(provider.connections().len(), 1);
}

// [NET-17]
#[tokio::test]
async fn a_connection_over_its_age_takes_no_other_request() {
    let provider = Provider::start(Script::streamed(&["ok"])).await;
    let setup = Setup::single(&provider).provider("connections: { max_age_ms: 200 }");
    let lb = Lb::start(&setup).await;
    assert_eq!(lb.chat(true).await.end, End::Clean);
    assert_eq!(lb.chat(true).await.end, End::Clean);
    assert_eq!(provider.connections().len(), 1);
    lb.eventually("the aged connection to be closed", async |_| provider.open() == 0)
        .await;
    assert_eq!(lb.chat(true).await.end, End::Clean);
    assert_eq!(provider.connections().len(), 2);
}

// [NET-35]
#[tokio::test]
async fn a_name_is_reached_and_one_that_nobody_knows_goes_to_the_next_target() {
    let provider = Provider::start(Script::streamed(&["ok"])).await;
    let port = provider.address().port();
    let setup = Setup::new()
        .at("gpu", &["http://nobody.invalid:8000/v1"])
        .at("alt", &[&format!("http://localhost:{port}/v1")])
        .provider("dns: { refresh_ms: 100, failure_refresh_ms: 100 }");
    let lb = Lb::start(&setup).await;
    lb.eventually("the name to be looked up", async |lb| {
        lb.chat(true).await.status() == 200
    })
    .await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(lb.chat(true).await.end, End::Clean);
    assert_eq!(
        lb.log().matches("does not resolve").count(),
        1,
        "told once, however often it is looked up"
    );
}
