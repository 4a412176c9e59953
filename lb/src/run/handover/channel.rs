//! Messages between two processes on one machine, with descriptors in them.
//!
//! The socket keeps the bounds of messages, so that no descriptor is ever separated from the words that belong to it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net as unix;
use std::path::Path;

use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};

/// Descriptors in one message; the kernel takes 253.
pub(super) const MOST: usize = 200;

/// Bytes of one message.
const LONGEST: usize = 256 * 1024;

/// One end of a conversation. To the runtime it is a stream; here it is only ever used by messages.
#[derive(Debug)]
pub(super) struct Channel(UnixStream);

/// Where conversations begin.
#[derive(Debug)]
pub(super) struct Door(UnixListener);

impl Channel {
    /// Speaks to whoever listens at `path`.
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        let socket = socket()?;
        net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        let socket = UnixStream::from_std(unix::UnixStream::from(socket))?;
        Ok(Self(socket))
    }

    /// Sends one message with at most [`MOST`] sockets.
    pub(super) async fn send(&self, text: &str, sockets: &[TcpListener]) -> io::Result<()> {
        let descriptors: Vec<BorrowedFd<'_>> = sockets.iter().map(TcpListener::as_fd).collect();
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if descriptors.len() > MOST {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let text = [IoSlice::new(text.as_bytes())];
            Ok(net::sendmsg(&self.0, &text, &mut control, SendFlags::NOSIGNAL)?)
        };
        self.0.async_io(Interest::WRITABLE, send).await.map(drop)
    }

    /// The next message; an error at the end of the conversation.
    pub(super) async fn receive(&self) -> io::Result<(String, Vec<TcpListener>)> {
        let receive = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut text = vec![0; LONGEST];
            let message = net::recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut text)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            )?;
            let mut sockets = Vec::new();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    sockets.extend(descriptors.map(TcpListener::from));
                }
            }
            text.truncate(message.bytes);
            Ok((text, sockets))
        };
        let (text, sockets) = self.0.async_io(Interest::READABLE, receive).await?;
        if text.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8(text).map_err(|_invalid| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok((text, sockets))
    }
}

impl Door {
    /// Listens at `path`, where nothing is yet; only this user may come in.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let socket = socket()?;
        net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        net::listen(&socket, 16)?;
        let socket = UnixListener::from_std(unix::UnixListener::from(socket))?;
        Ok(Self(socket))
    }

    /// The next conversation.
    pub(super) async fn next(&self) -> io::Result<Channel> {
        let (socket, _) = self.0.accept().await?;
        Ok(Channel(socket))
    }
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

#[cfg(test)]
mod tests;
