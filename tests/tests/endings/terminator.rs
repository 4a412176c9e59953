//! What stands in front of a scripted provider to make it reachable over TLS or HTTP/2, and passes its endings on.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::column::{Version, Wire};
use crate::gateway;

pub(crate) struct Terminator {
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl Terminator {
    /// Where `wire` is plain HTTP/1.1 there is nothing to end.
    pub(crate) async fn start(wire: Wire, mut identity: ServerConfig, behind: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        if wire.version == Version::Two {
            identity.alpn_protocols = vec!["h2".into()];
        }
        let acceptor = TlsAcceptor::from(Arc::new(identity));
        let server = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                connections.spawn(serve(wire, acceptor.clone(), stream, behind));
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, server }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(wire: Wire, acceptor: TlsAcceptor, stream: TcpStream, behind: SocketAddr) {
    match (wire.version, wire.tls) {
        (Version::One, _) => pass(acceptor, stream, behind).await,
        (Version::Two, false) => gateway::serve(stream, behind).await,
        (Version::Two, true) => {
            if let Ok(secured) = acceptor.accept(stream).await {
                gateway::serve(secured, behind).await;
            }
        }
    }
}

/// Whatever ends one side ends the other in the same way: in order, or by a reset.
async fn pass(acceptor: TlsAcceptor, stream: TcpStream, behind: SocketAddr) {
    let Ok(secured) = acceptor.accept(stream).await else {
        return;
    };
    let Ok(mut plain) = TcpStream::connect(behind).await else {
        return;
    };
    let (mut from_lb, mut to_lb) = tokio::io::split(secured);
    let (mut from_provider, mut to_provider) = plain.split();
    let mut up = vec![0; 64 * 1024];
    let mut down = vec![0; 64 * 1024];
    let reset = loop {
        tokio::select! {
            biased;
            read = from_provider.read(&mut down) => match read {
                Ok(0) => break false,
                Ok(length) => if to_lb.write_all(&down[..length]).await.is_err() { return },
                Err(_) => break true,
            },
            read = from_lb.read(&mut up) => match read {
                Ok(0) | Err(_) => return,
                Ok(length) => if to_provider.write_all(&up[..length]).await.is_err() { return },
            },
        }
    };
    let mut secured = from_lb.unsplit(to_lb);
    if reset {
        // Without lingering, the close that follows is a reset.
        drop(secured.get_ref().0.set_zero_linger());
    } else {
        drop(secured.shutdown().await);
    }
}
