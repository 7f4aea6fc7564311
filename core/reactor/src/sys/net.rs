//! System calls on sockets other than clients': listening sockets, control channel, log daemons.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, Result, fcntl_dupfd_cloexec, ioctl_fionbio, retry_on_intr};
pub(crate) use rustix::net::SocketAddrUnix;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType,
    acceptfrom_with, connect, getpeername, recv, recvmsg, sendto, shutdown, socket_with, socketpair,
};

/// Why no connection was accepted.
#[derive(Debug)]
pub(crate) enum NotAccepted {
    /// None is waiting.
    Empty,
    /// Descriptors or memory are used up: those that wait must go on waiting.
    Exhausted(Errno),
}

/// Accepts a connection, which does not block.
pub(crate) fn accept(listener: &impl AsFd) -> std::result::Result<(OwnedFd, Option<SocketAddr>), NotAccepted> {
    loop {
        match acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok((socket, peer)) => return Ok((socket, peer.and_then(|peer| SocketAddr::try_from(peer).ok()))),
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                return Err(NotAccepted::Exhausted(error));
            }
            // The connection ended while it waited, or a signal came: there may be others.
            Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::NETDOWN | Errno::HOSTUNREACH) => {}
            Err(_) => return Err(NotAccepted::Empty),
        }
    }
}

/// A duplicate of a socket, which blocks; so do the others of the same socket then. It gets no number of standard input,
/// output or error.
pub(crate) fn blocking_duplicate(socket: impl AsFd) -> Result<OwnedFd> {
    let duplicate = fcntl_dupfd_cloexec(socket, 3)?;
    ioctl_fionbio(&duplicate, false)?;
    Ok(duplicate)
}

/// Both ends of a pair of sockets, which block.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// The address of a TCP peer.
pub(crate) fn peer(socket: &OwnedFd) -> Option<SocketAddr> {
    getpeername(socket).ok().flatten().and_then(|peer| SocketAddr::try_from(peer).ok())
}

/// Receives without waiting, perhaps with a descriptor that was sent along. 0: the peer has closed the socket.
pub(crate) fn receive_with_fd(socket: &impl AsFd, buffer: &mut [u8]) -> Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut rights, flags))?;
    let fd = rights.drain().find_map(|right| match right {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok((received.bytes, fd))
}

/// Copies what can be received without taking it. 0: the peer has closed the socket.
pub(crate) fn peek(socket: &impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
    retry_on_intr(|| recv(socket, &mut *buffer, flags).map(|(_, length)| length))
}

/// Waits until something can be received, or the peer has closed the socket.
pub(crate) fn wait_readable(socket: &impl AsFd) -> Result<()> {
    retry_on_intr(|| poll(&mut [PollFd::new(socket, PollFlags::IN)], None)).map(drop)
}

/// Sends; `wait`: until there is room, as long as the timeout of the socket allows.
pub(crate) fn send(socket: &impl AsFd, bytes: &[u8], wait: bool) -> Result<usize> {
    retry_on_intr(|| rustix::net::send(socket, bytes, flags(wait)))
}

/// The same to an address.
pub(crate) fn send_to(socket: &OwnedFd, bytes: &[u8], address: &SocketAddrUnix, wait: bool) -> Result<usize> {
    retry_on_intr(|| sendto(socket, bytes, flags(wait), address))
}

/// Sends what the socket takes at once.
pub(crate) fn send_now(socket: impl AsFd, bytes: &[u8]) -> Result<usize> {
    retry_on_intr(|| rustix::net::send(&socket, bytes, flags(false)))
}

/// Ends the input of a socket: who waits for it gets the end.
pub(crate) fn end_input(socket: BorrowedFd<'_>) {
    let _ = shutdown(socket, Shutdown::Read);
}

/// Ends both halves; what was sent is still delivered. `false`: the peer was gone already.
pub(crate) fn end(socket: BorrowedFd<'_>) -> bool {
    shutdown(socket, Shutdown::Both).is_ok()
}

fn flags(wait: bool) -> SendFlags {
    SendFlags::NOSIGNAL | if wait { SendFlags::empty() } else { SendFlags::DONTWAIT }
}

pub(crate) fn set_send_timeout(socket: &OwnedFd, timeout: Duration) -> Result<()> {
    set_socket_timeout(socket, Timeout::Send, Some(timeout))
}

/// An unconnected datagram socket, if a daemon listens at `address`.
pub(crate) fn datagram_socket(address: &SocketAddrUnix) -> Result<OwnedFd> {
    let open = || socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    connect(open()?, address)?;
    open()
}
