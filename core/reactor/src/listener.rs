//! Listening sockets. They are opened by the Python side and never closed here.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};

/// One listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
}

/// What `accept` had.
#[derive(Debug)]
pub(crate) enum Accepted {
    Connection(OwnedFd, Option<SocketAddr>),
    /// Nobody is waiting.
    Nobody,
    /// Descriptors or memory are used up: those who wait must go on waiting.
    Exhausted(Errno),
}

impl Listener {
    /// `socket` is non-blocking, and has TCP_NODELAY, which Linux passes on to accepted connections.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Listener { socket }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn accept(&self) -> Accepted {
        loop {
            match acceptfrom_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((socket, peer)) => {
                    return Accepted::Connection(socket, peer.and_then(|peer| SocketAddr::try_from(peer).ok()));
                }
                Err(Errno::AGAIN) => return Accepted::Nobody,
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    return Accepted::Exhausted(error);
                }
                // The connection died while it waited, or a signal came: there may be others.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::NETDOWN | Errno::HOSTUNREACH) => {}
                Err(_) => return Accepted::Nobody,
            }
        }
    }
}
