//! One client of either version over either wire.

use std::io;
use std::pin::Pin;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use lb_tests::PATIENCE;
use lb_tests::client::{End, chat_body};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::column::{Column, Version};

/// What a client got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) body: String,
    pub(crate) end: End,
}

pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A request under way; dropped, its client is gone.
pub(crate) enum Asking {
    One {
        io: Pin<Box<dyn Io>>,
        read: Vec<u8>,
    },
    Two {
        _sender: SendRequest<Bytes>,
        connection: JoinHandle<()>,
        response: Option<ResponseFuture>,
        body: Option<RecvStream>,
        status: u16,
        read: Vec<u8>,
    },
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Self::Two { connection, .. } = self {
            connection.abort();
        }
    }
}

impl Asking {
    /// Asks the model `chat` on a connection of its own.
    pub(crate) async fn begin(column: &Column, version: Version, stream: bool) -> Self {
        let socket = TcpStream::connect(column.lb.data()).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let alpn = match version {
            Version::One => "http/1.1",
            Version::Two => "h2",
        };
        let io: Pin<Box<dyn Io>> = match &column.client_tls {
            None => Box::pin(socket),
            Some(config) => {
                let mut config = (**config).clone();
                config.alpn_protocols = vec![alpn.into()];
                let name = ServerName::try_from("lb.test").unwrap();
                let connector = TlsConnector::from(std::sync::Arc::new(config));
                Box::pin(connector.connect(name, socket).await.unwrap())
            }
        };
        match version {
            Version::One => Self::one(io, stream).await,
            Version::Two => Self::two(io, stream).await,
        }
    }

    async fn one(mut io: Pin<Box<dyn Io>>, stream: bool) -> Self {
        let body = chat_body("chat", stream);
        let length = body.len();
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: lb.test\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        io.write_all(request.as_bytes()).await.unwrap();
        Self::One { io, read: Vec::new() }
    }

    async fn two(io: Pin<Box<dyn Io>>, stream: bool) -> Self {
        let (mut sender, connection) = Builder::new().handshake(io).await.unwrap();
        let connection = tokio::spawn(async move { drop(connection.await) });
        let request = http::Request::post("http://lb.test/v1/chat/completions")
            .body(())
            .unwrap();
        let (response, mut sending) = sender.send_request(request, false).unwrap();
        sending.send_data(chat_body("chat", stream).into(), true).unwrap();
        Self::Two {
            _sender: sender,
            connection,
            response: Some(response),
            body: None,
            status: 0,
            read: Vec::new(),
        }
    }

    /// Reads until this has come.
    pub(crate) async fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(self.so_far()).contains(text) {
            let more = timeout(PATIENCE, self.more()).await;
            let ended = more.unwrap_or_else(|_| panic!("waited in vain for {text:?}"));
            assert_eq!(ended, None, "an end before {text:?}");
        }
    }

    /// All of the answer.
    pub(crate) async fn seen(mut self) -> Seen {
        let end = loop {
            if let Some(end) = timeout(PATIENCE, self.more()).await.expect("an end in time") {
                break end;
            }
        };
        match &self {
            Self::One { read, .. } => parsed(read),
            Self::Two { status, read, .. } => Seen {
                status: *status,
                body: String::from_utf8(read.clone()).unwrap(),
                end,
            },
        }
    }

    fn so_far(&self) -> &[u8] {
        let (Self::One { read, .. } | Self::Two { read, .. }) = self;
        read
    }

    /// Reads once; how it ended, where it has.
    async fn more(&mut self) -> Option<End> {
        match self {
            Self::One { io, read } => match io.read_buf(read).await {
                Ok(1..) => None,
                // How rustls tells an end without close_notify, as a cut connection has.
                Ok(0) => Some(End::Clean),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Some(End::Clean),
                Err(_) => Some(End::Cut),
            },
            Self::Two {
                response,
                body,
                status,
                read,
                ..
            } => {
                if let Some(response) = response.take() {
                    let (parts, stream) = response.await.unwrap().into_parts();
                    *status = parts.status.as_u16();
                    *body = Some(stream);
                }
                let body = body.as_mut().expect("after the head");
                match body.data().await {
                    None => Some(End::Clean),
                    Some(Ok(data)) => {
                        body.flow_control().release_capacity(data.len()).unwrap();
                        read.extend_from_slice(&data);
                        None
                    }
                    Some(Err(error)) => {
                        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
                        Some(End::Cut)
                    }
                }
            }
        }
    }
}

/// A response of HTTP/1.1 from all the bytes of its connection: it ended cleanly if its own framing says so.
fn parsed(read: &[u8]) -> Seen {
    let text = String::from_utf8(read.to_vec()).unwrap();
    let (head, mut rest) = text.split_once("\r\n\r\n").expect("a head");
    let head = head.to_ascii_lowercase();
    let status = head[9..12].parse().unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    if let Some(length) = length {
        let length: usize = length.parse().unwrap();
        let end = if rest.len() == length {
            End::Clean
        } else {
            End::Cut
        };
        let body = rest.to_owned();
        return Seen { status, body, end };
    }
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    let mut body = String::new();
    let end = loop {
        let Some((size, after)) = rest.split_once("\r\n") else {
            break End::Cut;
        };
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break if after == "\r\n" { End::Clean } else { End::Cut };
        }
        let Some(chunk) = after.get(..size) else {
            break End::Cut;
        };
        body.push_str(chunk);
        rest = &after[size + 2..];
    };
    Seen { status, body, end }
}
