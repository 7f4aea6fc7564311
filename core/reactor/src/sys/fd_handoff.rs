//! Open sockets passed from one worker to its successor, with `SCM_RIGHTS` (unix(7)).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// Version, number of the listener and requests answered, each of 32 bits.
const MESSAGE: usize = 12;

/// The way from one worker to the next: both ends of a pair of stream sockets. Each worker has both, for it inherits first
/// and gives on later. Sockets that keep messages apart would hold ten of them (`net.unix.max_dgram_qlen`); on a stream, what
/// comes with a descriptor is read by itself.
#[derive(Debug)]
pub struct Bequest {
    give: OwnedFd,
    take: OwnedFd,
    pub(crate) version: u32,
}

/// A connection on its way.
#[derive(Debug)]
pub(crate) struct Heirloom {
    /// Of who has given it.
    pub(crate) version: u32,
    pub(crate) listener: u32,
    pub(crate) served: u32,
    pub(crate) socket: OwnedFd,
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
    pub(crate) fn give(&self, listener: u32, served: u32, socket: BorrowedFd<'_>) -> bool {
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

    pub(crate) fn take(&self) -> Option<Heirloom> {
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn bequest() -> Bequest {
        let (give, take) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        Bequest::new(give, take, 5)
    }

    #[test]
    fn what_has_arrived_goes_with_the_socket() {
        let (way, (given, theirs)) = (bequest(), UnixStream::pair().unwrap());
        assert!(way.take().is_none());
        assert_eq!(rustix::io::write(&theirs, b"GET"), Ok(3));
        assert!(way.give(3, 7, given.as_fd()));
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
        let (way, (given, _theirs)) = (bequest(), UnixStream::pair().unwrap());
        let mut ways = 0;
        while way.give(3, 7, given.as_fd()) {
            ways += 1;
        }
        assert!(ways > 100, "{ways}");
        let taken = std::iter::from_fn(|| way.take()).filter(|heirloom| heirloom.listener == 3).count();
        assert_eq!(taken, ways);
    }
}
