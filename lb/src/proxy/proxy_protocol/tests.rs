use std::net::{Ipv4Addr, SocketAddr};

use proxy_header::ProxiedAddress;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

fn binary(source: &str) -> Vec<u8> {
    let (source, target) = (
        source.parse().expect("an address"),
        "192.0.2.9:1".parse().expect("an address"),
    );
    let target = if SocketAddr::is_ipv6(&source) {
        "[2001:db8::9]:1".parse().expect("an address")
    } else {
        target
    };
    let mut bytes = vec![0; 512];
    let length = ProxyHeader::with_address(ProxiedAddress::stream(source, target))
        .encode_to_slice_v2(&mut bytes)
        .expect("it fits");
    bytes.truncate(length);
    bytes
}

/// What is said of a connection on which these pieces come, and what is left on it.
async fn told(pieces: &[&[u8]], form: ProxyProtocol) -> (io::Result<Option<IpAddr>>, Vec<u8>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let mut client = TcpStream::connect(address).await.expect("accepted");
    client.set_nodelay(true).expect("TCP");
    let (mut server, _) = listener.accept().await.expect("a connection");
    let send = async {
        for piece in pieces {
            client.write_all(piece).await.expect("room");
            // Lets the reader look at each piece by itself.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        client.shutdown().await.expect("open");
    };
    let (said, ()) = tokio::join!(read(&mut server, form, LIMIT), send);
    let mut rest = Vec::new();
    server.read_to_end(&mut rest).await.expect("readable");
    (said, rest)
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

const TEXT: &[u8] = b"PROXY TCP4 203.0.113.7 192.0.2.9 4711 443\r\n";

// [LIMIT-6]
#[tokio::test]
async fn both_forms_name_the_client_and_leave_everything_behind_them() {
    let second = [&binary("203.0.113.8:4711"), &b"GET /"[..]].concat();
    let sixth = [&binary("[2001:db8::7]:4711"), &b"\x16\x03\x01"[..]].concat();
    let first = [TEXT, b"GET /"].concat();
    let cases: [(&[u8], ProxyProtocol, &str, &[u8]); 6] = [
        (&first, ProxyProtocol::V1, "203.0.113.7", b"GET /"),
        (&first, ProxyProtocol::Any, "203.0.113.7", b"GET /"),
        (&second, ProxyProtocol::V2, "203.0.113.8", b"GET /"),
        (&second, ProxyProtocol::Any, "203.0.113.8", b"GET /"),
        (&sixth, ProxyProtocol::Any, "2001:db8::7", b"\x16\x03\x01"),
        (
            b"PROXY TCP6 2001:db8::8 2001:db8::9 1 2\r\nx",
            ProxyProtocol::V1,
            "2001:db8::8",
            b"x",
        ),
    ];
    for (bytes, form, client, behind) in cases {
        let (said, rest) = told(&[bytes], form).await;
        assert_eq!(said.expect("a header"), Some(ip(client)));
        assert_eq!(rest, behind);
    }
}

// [LIMIT-6]
#[tokio::test]
async fn where_a_header_is_cut_changes_nothing() {
    for whole in [
        [TEXT, b"GET /"].concat(),
        [&binary("203.0.113.7:1"), &b"GET /"[..]].concat(),
    ] {
        for at in 1..whole.len() {
            let (said, rest) = told(&[&whole[..at], &whole[at..]], ProxyProtocol::Any).await;
            assert_eq!(said.expect("a header"), Some(ip("203.0.113.7")), "cut at {at}");
            assert_eq!(rest, b"GET /");
        }
    }
}

// [LIMIT-6]
#[tokio::test]
async fn a_proxy_that_speaks_for_itself_is_its_own_client() {
    let mut local = binary("203.0.113.7:4711");
    local[12] = 0x20;
    for bytes in [
        &b"PROXY UNKNOWN\r\n"[..],
        b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n",
        &local,
    ] {
        let (said, rest) = told(&[bytes], ProxyProtocol::Any).await;
        assert_eq!(said.expect("a header"), None, "{bytes:?}");
        assert!(rest.is_empty());
    }
}

// [LIMIT-6]
#[tokio::test]
async fn what_is_no_header_of_the_form_expected_is_an_error() {
    let mut version = binary("203.0.113.7:1");
    version[12] = 0x31;
    let mut long = binary("203.0.113.7:1");
    long[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    let short = &binary("203.0.113.7:1")[..20];
    let many = [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat();
    let cases: [(&[u8], ProxyProtocol); 12] = [
        (b"", ProxyProtocol::Any),
        (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", ProxyProtocol::Any),
        (b"PROX", ProxyProtocol::Any),
        (b"PROXY TCP4 203.0.113.7 192.0.2.9 4711", ProxyProtocol::Any),
        (
            b"PROXY TCP4 203.0.113.777 192.0.2.9 4711 443\r\n",
            ProxyProtocol::Any,
        ),
        (b"PROXY TCP4 203.0.113.7 192.0.2.9 4711 443\n", ProxyProtocol::Any),
        (TEXT, ProxyProtocol::V2),
        (&binary("203.0.113.7:1"), ProxyProtocol::V1),
        (&version, ProxyProtocol::Any),
        (&long, ProxyProtocol::Any),
        (short, ProxyProtocol::Any),
        (&many, ProxyProtocol::Any),
    ];
    for (bytes, form) in cases {
        let (said, _) = told(&[bytes], form).await;
        assert!(said.is_err(), "{said:?} of {:?}", String::from_utf8_lossy(bytes));
    }
}

// [LIMIT-6]
#[tokio::test(start_paused = true)]
async fn silence_is_an_error_after_the_limit() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("bound"))
        .await
        .expect("accepted");
    let (mut server, _) = listener.accept().await.expect("a connection");
    let begun = tokio::time::Instant::now();
    let said = read(&mut server, ProxyProtocol::Any, LIMIT).await;
    assert_eq!(said.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
    assert_eq!(begun.elapsed(), LIMIT);
    drop(client);
}
