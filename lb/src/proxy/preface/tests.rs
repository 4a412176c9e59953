use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::proxy::service::Rules;

async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let (client, accepted) = tokio::join!(client, listener.accept());
    (client.unwrap(), accepted.unwrap().0)
}

const SECOND: Duration = Duration::from_secs(1);

async fn told(stream: &TcpStream) -> io::Result<Version> {
    let limits = Limits {
        rules: Rules {
            max_body_bytes: 1,
            body_timeout: SECOND,
            body_grace: SECOND,
        },
        first_byte_timeout: 30 * SECOND,
        header_timeout: 50 * SECOND,
        idle_timeout: SECOND,
        write_timeout: SECOND,
    };
    spoken(stream, &Activity::new(Instant::now()), &limits).await
}

// [HTTP-20]
#[tokio::test]
async fn the_first_bytes_tell_as_soon_as_they_can_and_stay_unread() {
    let cases: [(&[u8], Version); 6] = [
        (PREFACE, Version::Http2),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore", Version::Http2),
        (b"PO", Version::Http1),
        (b"G", Version::Http1),
        (b"PRI * HTTP/1.1\r\n", Version::Http1),
        (b"\x16\x03\x01", Version::Http1),
    ];
    for (bytes, expected) in cases {
        let (mut client, mut server) = pair().await;
        client.write_all(bytes).await.unwrap();
        assert_eq!(told(&server).await.unwrap(), expected, "{bytes:?}");
        drop(client);
        let mut read = Vec::new();
        server.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, bytes);
    }
}

// [HTTP-20]
#[tokio::test]
async fn a_preface_in_pieces_is_waited_for() {
    let (mut client, server) = pair().await;
    let told = tokio::spawn(async move { told(&server).await.unwrap() });
    for byte in PREFACE {
        assert!(!told.is_finished());
        client.write_all(&[*byte]).await.unwrap();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(told.await.unwrap(), Version::Http2);
}

// [HTTP-20]
#[tokio::test]
async fn a_client_that_goes_in_the_middle_of_a_preface_is_not_waited_for() {
    for sent in [&PREFACE[..0], &PREFACE[..5]] {
        let (mut client, server) = pair().await;
        client.write_all(sent).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(told(&server).await.unwrap(), Version::Http1);
    }
}

// [HTTP-21] [HTTP-22]
#[tokio::test(start_paused = true)]
async fn silence_is_an_error_and_half_a_preface_a_slow_head() {
    let (mut client, server) = pair().await;
    let begun = Instant::now();
    assert_eq!(told(&server).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(begun.elapsed(), 30 * SECOND);
    client.write_all(b"PRI").await.unwrap();
    let begun = Instant::now();
    assert_eq!(told(&server).await.unwrap(), Version::Http1);
    assert!(begun.elapsed() >= 50 * SECOND);
}
