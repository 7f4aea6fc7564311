//! The transport of a connection: a plain socket, TLS on a socket, or one stream of a connection that carries many.
//!
//! ```text
//! tls.rs       TLS on a socket: records, handshake, orderly end
//! outgoing.rs  content on its way into records, and these on their way to the kernel
//! stream_socket.rs  one stream
//! ```

mod outgoing;
pub(crate) mod stream_socket;
pub(crate) mod tls;

use std::borrow::Cow;

use crate::connection::transport::stream_socket::StreamSocket;
use crate::connection::transport::tls::TlsSocket;
use crate::sys::socket::{PeerState, PlainSocket, Transport};
use crate::sys::{AsFd, BorrowedFd, Errno, OwnedFd};

/// The socket of a connection. One branch that is always the same for a connection, instead of a call through a table.
#[derive(Debug)]
pub(crate) enum Socket {
    /// Its bytes are those of the protocol.
    Plain(PlainSocket),
    /// They are in TLS records. Boxed, so that plain connections are no larger.
    Tls(Box<TlsSocket>),
    /// They are in the frames of a protocol that carries others as well.
    Stream(Box<StreamSocket>),
}

impl From<OwnedFd> for Socket {
    fn from(socket: OwnedFd) -> Self {
        Socket::Plain(socket.into())
    }
}

impl Socket {
    /// Its TLS, if it has.
    #[inline]
    pub(crate) fn tls(&self) -> Option<&TlsSocket> {
        match self {
            Socket::Plain(_) | Socket::Stream(_) => None,
            Socket::Tls(tls) => Some(tls),
        }
    }

    /// The stream, if it is one.
    #[inline]
    pub(crate) fn stream(&self) -> Option<&StreamSocket> {
        match self {
            Socket::Plain(_) | Socket::Tls(_) => None,
            Socket::Stream(stream) => Some(stream),
        }
    }

    /// The environ's variables of its TLS; none without.
    pub(crate) fn tls_variables(&self) -> &[(Cow<'static, str>, String)] {
        match self {
            Socket::Plain(_) => &[],
            Socket::Tls(tls) => tls.variables(),
            Socket::Stream(stream) => stream.tls_variables(),
        }
    }

    /// Strict-Transport-Security with this value as a line of a response on this socket; empty if there is no value, or the
    /// response is not encrypted (RFC 6797 section 7.2).
    pub(crate) fn hsts_line(&self, hsts: &str) -> String {
        let is_encrypted = match self {
            Socket::Plain(_) => false,
            Socket::Tls(tls) => tls.is_encrypted(),
            Socket::Stream(stream) => stream.is_encrypted(),
        };
        match is_encrypted && !hsts.is_empty() {
            true => format!("Strict-Transport-Security: {hsts}\r\n"),
            false => String::new(),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Plain(socket) => socket.as_fd(),
            Socket::Tls(socket) => socket.as_fd(),
            Socket::Stream(socket) => socket.as_fd(),
        }
    }
}

impl Transport for Socket {
    #[inline]
    fn receive(&self, room: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Socket::Plain(socket) => socket.receive(room),
            Socket::Tls(socket) => socket.receive(room),
            Socket::Stream(socket) => socket.receive(room),
        }
    }

    #[inline]
    fn may_have_more(&self, received: usize, room: usize) -> bool {
        match self {
            Socket::Plain(socket) => socket.may_have_more(received, room),
            Socket::Tls(socket) => socket.may_have_more(received, room),
            Socket::Stream(socket) => socket.may_have_more(received, room),
        }
    }

    fn peek(&self, room: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Socket::Plain(socket) => socket.peek(room),
            Socket::Tls(socket) => socket.peek(room),
            Socket::Stream(socket) => socket.peek(room),
        }
    }

    fn has_input(&self) -> bool {
        match self {
            Socket::Plain(socket) => socket.has_input(),
            Socket::Tls(socket) => socket.has_input(),
            Socket::Stream(socket) => socket.has_input(),
        }
    }

    #[inline]
    fn send(&self, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        match self {
            Socket::Plain(socket) => socket.send(bytes, more),
            Socket::Tls(socket) => socket.send(bytes, more),
            Socket::Stream(socket) => socket.send(bytes, more),
        }
    }

    fn send_vectored(&self, first: &[u8], rest: &[&[u8]]) -> Result<usize, Errno> {
        match self {
            Socket::Plain(socket) => socket.send_vectored(first, rest),
            Socket::Tls(socket) => socket.send_vectored(first, rest),
            Socket::Stream(socket) => socket.send_vectored(first, rest),
        }
    }

    fn send_file(&self, file: BorrowedFd<'_>, at: &mut u64, most: usize) -> Result<usize, Errno> {
        match self {
            Socket::Plain(socket) => socket.send_file(file, at, most),
            Socket::Tls(socket) => socket.send_file(file, at, most),
            Socket::Stream(socket) => socket.send_file(file, at, most),
        }
    }

    fn finish(&self) -> bool {
        match self {
            Socket::Plain(socket) => socket.finish(),
            Socket::Tls(socket) => socket.finish(),
            Socket::Stream(socket) => socket.finish(),
        }
    }

    fn shut_down(&self) -> bool {
        match self {
            Socket::Plain(socket) => socket.shut_down(),
            Socket::Tls(socket) => socket.shut_down(),
            Socket::Stream(socket) => socket.shut_down(),
        }
    }

    fn reset(&self) {
        match self {
            Socket::Plain(socket) => socket.reset(),
            Socket::Tls(socket) => socket.reset(),
            Socket::Stream(socket) => socket.reset(),
        }
    }

    fn reset_on_close(&self) {
        match self {
            Socket::Plain(socket) => socket.reset_on_close(),
            Socket::Tls(socket) => socket.reset_on_close(),
            Socket::Stream(socket) => socket.reset_on_close(),
        }
    }

    fn peer_state(&self) -> PeerState {
        match self {
            Socket::Plain(socket) => socket.peer_state(),
            Socket::Tls(socket) => socket.peer_state(),
            Socket::Stream(socket) => socket.peer_state(),
        }
    }
}
