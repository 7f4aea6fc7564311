//! What a worker and its main process tell each other: single octets on a socket between them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// The main process asks whether this worker still answers.
const QUESTION: u8 = b'?';
/// This worker does.
const ANSWER: u8 = b'.';
/// The main process has somebody else for what comes from now on.
const RETIRE: u8 = b'r';
/// The same, and what is idle is theirs as well.
const HAND_OVER: u8 = b'H';
/// The main process will stop this worker soon.
const DRAIN: u8 = b'd';
/// What clients wait for in parked answers has happened.
const FAREWELL: u8 = b'l';
/// This worker has begun as many requests as it was made for.
pub(crate) const MADE_FOR: u8 = b'm';
/// All slots of this worker are taken, and nobody checks that.
pub(crate) const FULL: u8 = b'f';
/// A request of this worker cannot be interrupted.
pub(crate) const STUCK: u8 = b't';

/// Octets read at once.
const ROOM: usize = 64;

/// A worker's end of the socket. Nobody ever waits for it.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

/// What the main process wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing that was not done yet.
    Nothing,
    /// Nobody new should come.
    Drain,
    /// Others listen on: those who wait to be let in are theirs.
    Retire,
    /// The same, and they get the connections that are idle.
    HandOver,
    /// There is no main process any more.
    End,
}

/// What was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) wish: Wish,
    /// Parked answers are to end.
    pub(crate) farewell: bool,
}

impl Channel {
    /// `socket` is a stream socket to the main process.
    pub fn new(socket: OwnedFd) -> Self {
        Channel { socket }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Tells the main process something. If there is no room for it, it has not listened for long, and if it has gone,
    /// nobody misses it.
    pub(crate) fn tell(&self, octets: &[u8]) {
        let _ = send(&self.socket, octets, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// Hears everything that was said, and answers what was asked.
    #[cold]
    pub(crate) fn hear(&self) -> Heard {
        let mut heard = Heard { wish: Wish::Nothing, farewell: false };
        let mut room = [0; ROOM];
        loop {
            match recv(&self.socket, &mut room, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Heard { wish: Wish::End, ..heard },
                Ok((octets, _)) => {
                    let said = &room[..octets];
                    let wish = &mut heard.wish;
                    heard.farewell |= said.contains(&FAREWELL);
                    if said.contains(&QUESTION) {
                        self.tell(&[ANSWER]);
                    }
                    if said.contains(&HAND_OVER) {
                        *wish = Wish::HandOver;
                    } else if said.contains(&RETIRE) && *wish != Wish::HandOver {
                        *wish = Wish::Retire;
                    } else if said.contains(&DRAIN) && *wish == Wish::Nothing {
                        *wish = Wish::Drain;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return heard,
                Err(_) => return Heard { wish: Wish::End, ..heard },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (Channel, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Channel::new(ours.into()), theirs)
    }

    #[test]
    fn a_question_is_answered_and_a_wish_is_heard() {
        let (ours, mut theirs) = pair();
        assert_eq!(ours.hear().wish, Wish::Nothing);
        theirs.write_all(b"?").unwrap();
        assert_eq!(ours.hear().wish, Wish::Nothing);
        theirs.write_all(b"what it does not know, ?r").unwrap();
        assert_eq!(ours.hear().wish, Wish::Retire);
        theirs.write_all(b"d").unwrap();
        assert_eq!(ours.hear().wish, Wish::Drain);
        theirs.write_all(b"rd").unwrap();
        assert_eq!(ours.hear().wish, Wish::Retire);
        theirs.write_all(b"rHd").unwrap();
        assert_eq!(ours.hear().wish, Wish::HandOver);
        drop(ours);
        let mut answers = Vec::new();
        theirs.read_to_end(&mut answers).unwrap();
        assert_eq!(answers, b"..");
    }

    #[test]
    fn the_end_of_the_main_process_goes_before_what_it_said() {
        let (ours, mut theirs) = pair();
        theirs.write_all(b"r").unwrap();
        drop(theirs);
        assert_eq!(ours.hear().wish, Wish::End);
        ours.tell(b"m");
    }

    #[test]
    fn who_does_not_listen_keeps_nobody_waiting() {
        let (ours, _theirs) = pair();
        (0..1_000_000).for_each(|_| ours.tell(b"m"));
    }
}
