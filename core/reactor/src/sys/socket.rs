//! The interface through which a connection reads and writes, and the plain socket that implements it.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Result, retry_on_intr};
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, connect_unspec, recv, send, sendmsg, shutdown};

use crate::sys::{ServerFd, net};

/// The bytes of one connection, in both directions.
///
/// - Nothing blocks: what cannot be done at once is [`rustix::io::Errno::AGAIN`]. Interrupted calls are repeated.
/// - One thread at a time receives, and one at a time sends; they need not be the same, so an implementation with a state
///   of its own (TLS) keeps it behind a lock.
/// - Its descriptor is for the poller and for waiting only; bytes go through the methods.
///
/// [`crate::connection::shared_socket::SharedSocket`] names the one implementation, so calls are dispatched statically.
pub(crate) trait Transport: AsFd {
    /// Receives into `room`, which is not empty. 0: the peer will send nothing more.
    fn receive(&self, room: &mut [u8]) -> Result<usize>;

    /// Whether more may be there after so many bytes were received into so large a room: if not, the poller reports
    /// what comes next.
    fn may_have_more(&self, received: usize, room: usize) -> bool;

    /// Copies the next bytes into `room` without taking them.
    fn peek(&self, room: &mut [u8]) -> Result<usize>;

    /// Whether bytes are there to be received.
    fn has_input(&self) -> bool {
        matches!(self.peek(&mut [0]), Ok(1..))
    }

    /// Sends. `more` follows at once, so a packet that is not full may wait for it.
    fn send(&self, bytes: &[u8], more: bool) -> Result<usize>;

    /// Sends `first` and `rest` as one.
    fn send_vectored(&self, first: &[u8], rest: &[&[u8]]) -> Result<usize>;

    /// Sends at most so many bytes of a file and moves the position `at`. 0: the file ends there.
    fn send_file(&self, file: BorrowedFd<'_>, at: &mut u64, most: usize) -> Result<usize>;

    /// Ends our half in an orderly way, behind everything that was sent. `false`: something must be sent first; to be called
    /// again when the socket is writable.
    fn finish(&self) -> bool;

    /// Ends both halves; what was sent is still delivered. `false`: the peer was gone already.
    fn shut_down(&self) -> bool;

    /// Ends the connection so that its peer cannot take what was sent for a complete response.
    fn reset(&self);

    /// Makes the end of the connection a reset. Otherwise the kernel would go on for many minutes with what it has accepted
    /// for a client that takes nothing, and that client would never learn of the end.
    fn reset_on_close(&self);

    /// The state of the peer, without receiving.
    fn peer_state(&self) -> PeerState;
}

/// The state of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerState {
    /// Both halves are closed, or the connection was reset.
    pub(crate) is_gone: bool,
    /// The peer has closed its sending half at least.
    pub(crate) has_finished: bool,
}

/// Waits until a socket is readable (if that is `input`) or writable (`output`), has ended, the time is over, or a signal has come.
pub(crate) fn wait(socket: BorrowedFd<'_>, input: bool, output: bool, milliseconds: u64) {
    let mut events = PollFlags::empty();
    events.set(PollFlags::IN, input);
    events.set(PollFlags::OUT, output);
    let timeout = Timespec { tv_sec: (milliseconds / 1_000) as i64, tv_nsec: (milliseconds % 1_000 * 1_000_000) as _ };
    let _ = poll(&mut [PollFd::from_borrowed_fd(socket, events)], Some(&timeout));
}

/// Whether the next record of TLS that has come is something else than an alert (RFC 8446 section 5). Where it is encrypted, all
/// that is as short as an alert counts as one: no request is.
pub(crate) fn has_record(socket: BorrowedFd<'_>) -> bool {
    const ALERT: u8 = 21;
    const CONTENT: u8 = 23;
    /// Level, description, type and tag.
    const LONGEST_ALERT: u16 = 2 + 1 + 16;
    let mut head = [0; 5];
    match recv(socket, &mut head, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((5, _)) => match head {
            [ALERT, ..] => false,
            [CONTENT, _, _, high, low] => u16::from_be_bytes([high, low]) > LONGEST_ALERT,
            _ => true,
        },
        Ok((received, _)) => received > 0,
        Err(_) => false,
    }
}

/// A socket whose bytes are those of the protocol.
#[derive(Debug)]
pub(crate) struct PlainSocket(ServerFd);

impl From<OwnedFd> for PlainSocket {
    fn from(socket: OwnedFd) -> Self {
        PlainSocket(socket.into())
    }
}

impl AsFd for PlainSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

// No call may block, even though the handler of a raw TCP connection may have made its socket blocking.
impl Transport for PlainSocket {
    #[inline]
    fn receive(&self, room: &mut [u8]) -> Result<usize> {
        retry_on_intr(|| recv(&self.0, &mut *room, RecvFlags::DONTWAIT).map(|(_, bytes)| bytes))
    }

    #[inline]
    fn may_have_more(&self, received: usize, room: usize) -> bool {
        received == room
    }

    fn peek(&self, room: &mut [u8]) -> Result<usize> {
        net::peek(&self.0, room)
    }

    #[inline]
    fn send(&self, bytes: &[u8], more: bool) -> Result<usize> {
        let more = if more { SendFlags::MORE } else { SendFlags::empty() };
        retry_on_intr(|| send(&self.0, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT | more))
    }

    fn send_vectored(&self, first: &[u8], rest: &[&[u8]]) -> Result<usize> {
        const MOST: usize = 4;
        let mut slices = [IoSlice::new(&[]); MOST];
        let mut used = 0;
        for part in [first].iter().chain(rest).filter(|part| !part.is_empty()).take(MOST) {
            slices[used] = IoSlice::new(part);
            used += 1;
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        retry_on_intr(|| sendmsg(&self.0, &slices[..used], &mut SendAncillaryBuffer::default(), flags))
    }

    fn send_file(&self, file: BorrowedFd<'_>, at: &mut u64, most: usize) -> Result<usize> {
        retry_on_intr(|| rustix::fs::sendfile(&self.0, file, Some(at), most))
    }

    fn finish(&self) -> bool {
        let _ = shutdown(&self.0, Shutdown::Write);
        true
    }

    fn shut_down(&self) -> bool {
        net::end(self.0.as_fd())
    }

    fn reset(&self) {
        self.reset_on_close();
        // Its owner will close it some time later. A Unix socket has no resets.
        if connect_unspec(&self.0).is_err() {
            self.shut_down();
        }
    }

    fn reset_on_close(&self) {
        let _ = set_socket_linger(&self.0, Some(Duration::ZERO));
    }

    fn peer_state(&self) -> PeerState {
        let mut sockets = [PollFd::new(&self.0, PollFlags::RDHUP)];
        // Should it fail, the peer is taken to be there.
        let _ = poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let seen = sockets[0].revents();
        PeerState {
            is_gone: seen.intersects(PollFlags::HUP | PollFlags::ERR),
            has_finished: seen.contains(PollFlags::RDHUP),
        }
    }
}
