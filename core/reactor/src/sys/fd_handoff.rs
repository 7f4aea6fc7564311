//! Idle connections that outlive the worker which has let them in.
//!
//! Where the next request must be answered by a new version of the application, and none may be lost, it does not do to
//! close what is idle: the client may be sending at this very moment. So the socket itself goes to the successor, with
//! whatever has arrived on it unread.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use poorhttp_http::Protocol;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    getpeername, recvmsg, sendmsg,
};

use crate::connection::{Connection, Phase};
use crate::reactor::Reactor;

/// Connections taken before others have their turn.
const TAKEN_AT_ONCE: usize = 64;
/// Version, number of the listener and requests answered, each of 32 bits.
const MESSAGE: usize = 12;

/// The way from one worker to the next: both ends of a pair of stream sockets. Each worker has both, for it inherits first
/// and gives on later. Sockets that keep messages apart would hold ten of them (`net.unix.max_dgram_qlen`); on a stream, what
/// comes with a descriptor is read by itself.
#[derive(Debug)]
pub struct Bequest {
    give: OwnedFd,
    take: OwnedFd,
    version: u32,
}

/// A connection on its way.
#[derive(Debug)]
struct Heirloom {
    /// Of who has given it.
    version: u32,
    listener: u32,
    served: u32,
    socket: OwnedFd,
}

impl Bequest {
    /// `give` and `take` are the ends; neither waits. A successor has a higher `version`.
    pub fn new(give: OwnedFd, take: OwnedFd, version: u32) -> Self {
        Bequest { give, take, version }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.take.as_fd()
    }

    /// `false`: there are too many on the way.
    fn give(&self, listener: u32, served: u32, socket: BorrowedFd<'_>) -> bool {
        let mut message = [0; MESSAGE];
        for (place, number) in message.chunks_exact_mut(4).zip([self.version, listener, served]) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        let sockets = [socket];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        rights.push(SendAncillaryMessage::ScmRights(&sockets))
            && sendmsg(&self.give, &[IoSlice::new(&message)], &mut rights, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
                .is_ok()
    }

    fn take(&self) -> Option<Heirloom> {
        let mut message = [0; MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.take, &mut [IoSliceMut::new(&mut message)], &mut rights, flags).ok()?;
        let socket = rights.drain().find_map(|right| match right {
            RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
            _ => None,
        })?;
        let number = |at: usize| u32::from_ne_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
        let (version, listener, served) = (number(0), number(4), number(8));
        (received.bytes == MESSAGE).then_some(Heirloom { version, listener, served, socket })
    }
}

impl Reactor {
    /// Gives a connection to the successor if nothing has been read of its next request. `None`: that is done.
    #[cold]
    pub(crate) fn bequeath(&self, connection: Box<Connection>, bequest: &Bequest) -> Option<Box<Connection>> {
        let socket = connection.link.socket.as_fd();
        if !connection.is_untouched() || !bequest.give(connection.listener, connection.served, socket) {
            return Some(connection);
        }
        if connection.watched {
            // It stays open, so the poller would go on telling us of it.
            let _ = self.poller.remove(connection.link.socket.as_fd());
        }
        self.close(connection);
        None
    }

    /// Lets in what a predecessor has given.
    #[cold]
    pub(crate) fn inherit(self: &Arc<Self>, bequest: &Bequest) {
        for _ in 0..TAKEN_AT_ONCE {
            if self.is_stopping() {
                // It is the next one's.
                return;
            }
            let Some(Heirloom { version, listener: number, served, socket }) = bequest.take() else { return };
            if version >= bequest.version {
                // A sibling has been told before us that there is a successor, for whom this is.
                let _ = bequest.give(number, served, socket.as_fd());
                return self.hand_over();
            }
            let Some(listener) = self.listeners.get(number) else {
                // Another thread has just been told to stop.
                let _ = bequest.give(number, served, socket.as_fd());
                return;
            };
            let peer = getpeername(&socket).ok().flatten().and_then(|peer| SocketAddr::try_from(peer).ok());
            self.welcome(number, &listener, socket, peer, served);
        }
    }
}

impl Connection {
    /// Whether it waits for a request of which nothing has been read, and nobody but its peer has said anything of it: what
    /// a proxy has said of the whole connection cannot be handed on.
    fn is_untouched(&self) -> bool {
        let work = self.work.as_ref();
        self.phase == Phase::Serving
            && !self.has_outlet
            && self.inbound.dialect().protocol == Protocol::Http
            && !self.inbound.is_mid_message(work.map(|work| &work.intake))
            && work.is_none_or(|work| work.is_idle())
            && !(self.awaits_preamble || self.is_secure || self.said.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::connection::shared_socket::Link;

    fn bequest() -> Bequest {
        let (give, take) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        Bequest::new(give, take, 5)
    }

    fn connection(served: u32) -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(0, 0, Arc::new(Link::new(ours.into(), Arc::default())), 3, None);
        connection.served = served;
        (connection, theirs)
    }

    #[test]
    fn what_has_arrived_goes_with_the_socket() {
        let (way, (given, theirs)) = (bequest(), connection(7));
        assert!(way.take().is_none());
        assert_eq!(rustix::io::write(&theirs, b"GET"), Ok(3));
        assert!(way.give(given.listener, given.served, given.link.socket.as_fd()));
        drop(given);
        let Some(Heirloom { version: 5, listener: 3, served: 7, socket }) = way.take() else {
            panic!("nothing, or another one")
        };
        let mut octets = [0; 8];
        assert_eq!(rustix::io::read(&socket, &mut octets), Ok(3));
        assert!(way.take().is_none());
    }

    #[test]
    fn there_are_never_too_many_on_the_way() {
        let (way, (given, _theirs)) = (bequest(), connection(0));
        let mut ways = 0;
        while way.give(given.listener, given.served, given.link.socket.as_fd()) {
            ways += 1;
        }
        assert!(ways > 100, "{ways}");
        let taken = std::iter::from_fn(|| way.take()).filter(|heirloom| heirloom.listener == 3).count();
        assert_eq!(taken, ways);
    }
}
