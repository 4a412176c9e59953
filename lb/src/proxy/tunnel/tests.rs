use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;

fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut out = HeaderMap::new();
    for (name, value) in pairs {
        out.append(
            http::HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    out
}

// [TUNNEL-1]
#[test]
fn an_upgrade_is_asked_for_in_both_fields_and_to_one_protocol_that_is_not_http() {
    let asked = |connection, upgrade| asked(&fields(&[("connection", connection), ("upgrade", upgrade)]));
    for protocol in ["websocket", "WebSocket", "tcp", "SPDY/3.1"] {
        assert_eq!(
            asked("keep-alive, Upgrade", protocol).expect("asked for"),
            protocol
        );
    }
    for protocol in ["h2c", "H2C", "HTTP/2.0", "TLS/1.0", "websocket, h2c", "", "a b"] {
        assert_eq!(asked("upgrade", protocol), None, "{protocol}");
    }
    assert_eq!(asked("keep-alive", "websocket"), None);
    let twice = [("connection", "upgrade"), ("upgrade", "a"), ("upgrade", "b")];
    assert_eq!(super::asked(&fields(&twice)), None);
    assert_eq!(super::asked(&fields(&[("connection", "upgrade")])), None);
}

/// A tunnel's ends, and how it will end.
fn carried(
    ahead: &'static [u8],
    idle: Option<Duration>,
) -> (
    DuplexStream,
    DuplexStream,
    tokio::task::JoinHandle<(End, [u64; 2])>,
) {
    let (client, near) = duplex(64);
    let (far, provider) = duplex(64);
    let carrying = carry(near, Bytes::from_static(ahead), far, idle, std::future::pending());
    (client, provider, tokio::spawn(carrying))
}

// [TUNNEL-2] [ACCESS-1]
#[tokio::test]
async fn bytes_go_both_ways_untouched_and_what_the_client_sent_ahead_goes_first() {
    let (mut client, mut provider, end) = carried(b"ahead ", None);
    let sent: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let (to, from) = (sent.clone(), sent.clone());
    let there = async {
        client.write_all(&to).await.expect("open");
        let mut back = vec![0; from.len()];
        client.read_exact(&mut back).await.expect("open");
        assert!(back == from);
        client.shutdown().await.expect("open");
        assert_eq!(client.read(&mut [0; 8]).await.expect("an end"), 0);
    };
    let and_back = async {
        let mut got = vec![0; 6 + from.len()];
        provider.read_exact(&mut got).await.expect("open");
        assert!(got == [b"ahead ", &from[..]].concat());
        provider.write_all(&from).await.expect("open");
        assert_eq!(
            provider.read(&mut [0; 8]).await.expect("an end"),
            0,
            "half a close is passed on"
        );
        provider.shutdown().await.expect("open");
    };
    tokio::join!(there, and_back);
    let taken = [6 + sent.len(), sent.len()].map(|length| length as u64);
    assert_eq!(end.await.expect("no panic"), (End::Closed, taken));
}

// [TUNNEL-3]
#[tokio::test(start_paused = true)]
async fn silence_of_both_sides_ends_it_and_a_word_of_either_does_not() {
    let limit = Duration::from_mins(1);
    let (mut client, mut provider, end) = carried(b"", Some(limit));
    let begun = Instant::now();
    for side in [&mut client, &mut provider] {
        tokio::time::sleep(limit / 2 + Duration::from_secs(1)).await;
        side.write_all(b"x").await.expect("open");
    }
    let spoken = begun.elapsed();
    assert_eq!(end.await.expect("no panic").0, End::Idle);
    assert_eq!(begun.elapsed().as_secs(), (spoken + limit).as_secs());
}

/// A side that takes what it is sent, says a word after a while, and is reset after another.
struct Reset {
    /// Until it is said.
    word: Option<Pin<Box<tokio::time::Sleep>>>,
    end: Pin<Box<tokio::time::Sleep>>,
    kind: io::ErrorKind,
}

impl Reset {
    fn after(word: u64, end: u64, kind: io::ErrorKind) -> Self {
        let [word, end] =
            [word, end].map(|seconds| Box::pin(tokio::time::sleep(Duration::from_secs(seconds))));
        let word = Some(word);
        Self { word, end, kind }
    }
}

impl AsyncRead for Reset {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(word) = &mut self.word {
            ready!(word.as_mut().poll(cx));
            self.word = None;
            buf.put_slice(b"bye");
            return Poll::Ready(Ok(()));
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(Err(self.kind.into()))
    }
}

impl AsyncWrite for Reset {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

// [TUNNEL-3]
#[tokio::test(start_paused = true)]
async fn a_reset_over_what_the_client_sent_is_nobodys_fault() {
    use io::ErrorKind::{ConnectionReset, TimedOut};
    let end = async |ahead: &'static [u8], upstream| {
        let (_far, near) = duplex(64);
        carry(
            near,
            Bytes::from_static(ahead),
            upstream,
            None,
            std::future::pending(),
        )
        .await
        .0
    };
    // Unread when it closed, whatever it said before.
    assert_eq!(
        end(b"x", Reset::after(1, 2, ConnectionReset)).await,
        End::UpstreamLeft
    );
    // Its last word answers what had come long before.
    assert_eq!(
        end(b"x", Reset::after(1, 12, ConnectionReset)).await,
        End::UpstreamBroke
    );
    // The client had sent nothing.
    assert_eq!(
        end(b"", Reset::after(1, 2, ConnectionReset)).await,
        End::UpstreamBroke
    );
    // This is no closing.
    assert_eq!(end(b"x", Reset::after(1, 2, TimedOut)).await, End::UpstreamBroke);
    // It could not be sent at all any more.
    let (_far, near) = duplex(64);
    let carrying = carry(
        near,
        Bytes::from_static(b"x"),
        Broken,
        None,
        std::future::pending(),
    );
    assert_eq!(carrying.await.0, End::UpstreamLeft);
}

/// A side that fails.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

impl AsyncWrite for Broken {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

// [TUNNEL-3]
#[tokio::test]
async fn whoever_breaks_it_off_is_told_apart() {
    let (_far, near) = duplex(64);
    let (end, _) = carry(near, Bytes::new(), Broken, None, std::future::pending()).await;
    assert_eq!(end, End::UpstreamBroke);
    let (_far, near) = duplex(64);
    let (end, _) = carry(Broken, Bytes::new(), near, None, std::future::pending()).await;
    assert_eq!(end, End::ClientGone);
    let (_far, near) = duplex(64);
    let (_client, side) = duplex(64);
    let (end, _) = carry(side, Bytes::new(), near, None, std::future::ready(())).await;
    assert_eq!(end, End::Drained);
}
