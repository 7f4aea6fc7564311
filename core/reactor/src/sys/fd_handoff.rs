//! Open sockets passed from one worker to its successor, with `SCM_RIGHTS` (unix(7)).

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::sys::{ServerFd, net};

/// Version, number of the listener and requests answered, each of 32 bits.
const MESSAGE_LENGTH: usize = 12;

/// Both ends of a pair of stream sockets, through which a worker first receives connections from its predecessor and later
/// passes its own to its successor. Datagram sockets would hold only ten messages (`net.unix.max_dgram_qlen`); on a stream
/// socket, the bytes sent with a descriptor are received separately.
#[derive(Debug)]
pub struct FdHandoff {
    send: ServerFd,
    receive: ServerFd,
    pub(crate) generation: u32,
}

/// A connection on its way.
#[derive(Debug)]
pub(crate) struct PassedConnection {
    /// Generation of the worker that passed it.
    pub(crate) generation: u32,
    pub(crate) listener: u32,
    pub(crate) served: u32,
    pub(crate) socket: OwnedFd,
}

impl FdHandoff {
    /// `send` and `receive` are the ends; neither waits. A successor has a higher `generation`.
    pub fn new(send: OwnedFd, receive: OwnedFd, generation: u32) -> Self {
        FdHandoff { send: send.into(), receive: receive.into(), generation }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.receive.as_fd()
    }

    /// `false`: too many are in transit.
    pub(crate) fn send(&self, listener: u32, served: u32, socket: BorrowedFd<'_>) -> bool {
        let mut message = [0; MESSAGE_LENGTH];
        for (place, number) in message.chunks_exact_mut(4).zip([self.generation, listener, served]) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        let sockets = [socket];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        rights.push(SendAncillaryMessage::ScmRights(&sockets))
            && sendmsg(&self.send, &[IoSlice::new(&message)], &mut rights, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
                .is_ok()
    }

    pub(crate) fn receive(&self) -> Option<PassedConnection> {
        let mut message = [0; MESSAGE_LENGTH];
        let (length, socket) = net::receive_with_fd(&self.receive, &mut message).ok()?;
        let socket = socket?;
        let number = |at: usize| u32::from_ne_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
        let (generation, listener, served) = (number(0), number(4), number(8));
        (length == MESSAGE_LENGTH).then_some(PassedConnection { generation, listener, served, socket })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn handoff() -> FdHandoff {
        let (send, receive) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        FdHandoff::new(send, receive, 5)
    }

    #[test]
    fn unread_bytes_are_passed_with_the_socket() {
        let (handoff, (given, theirs)) = (handoff(), UnixStream::pair().unwrap());
        assert!(handoff.receive().is_none());
        assert_eq!(rustix::io::write(&theirs, b"GET"), Ok(3));
        assert!(handoff.send(3, 7, given.as_fd()));
        drop(given);
        let Some(PassedConnection { generation: 5, listener: 3, served: 7, socket }) = handoff.receive() else {
            panic!("nothing, or another one")
        };
        let mut bytes = [0; 8];
        assert_eq!(rustix::io::read(&socket, &mut bytes), Ok(3));
        assert!(handoff.receive().is_none());
    }

    #[test]
    fn all_connections_in_transit_are_received() {
        let (handoff, (given, _theirs)) = (handoff(), UnixStream::pair().unwrap());
        let mut sent = 0;
        while handoff.send(3, 7, given.as_fd()) {
            sent += 1;
        }
        assert!(sent > 100, "{sent}");
        let received = std::iter::from_fn(|| handoff.receive()).filter(|passed| passed.listener == 3).count();
        assert_eq!(received, sent);
    }
}
