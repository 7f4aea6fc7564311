//! Connections that are not read but handed out as they are, to services that speak something else than HTTP.
//!
//! Until its handler is through with it, the poller knows nothing of such a connection: the handler has a duplicate of its
//! socket. Then we have it for ourselves again, to see to an orderly end.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionbio};
use rustix::net::{RecvFlags, recv};

use crate::connection::{After, Connection};
use crate::event_loop::reactor::Reactor;
use crate::exchange::Exchange;
use crate::sys::poller::Source;

/// What stdin, stdout and stderr have is never given to a connection.
const LEAST_DESCRIPTOR: i32 = 3;

impl Reactor {
    /// Closes a plain connection when its client has finished as well, or has had a moment to do so: what it still sends
    /// would be answered by a reset, which could destroy what was sent to it.
    fn hear_out(&self, mut connection: Box<Connection>) {
        let socket = &connection.link.socket;
        let look = recv(socket, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        let may_send = matches!(look, Ok((_, 1..)) | Err(Errno::AGAIN));
        let source = Source::Connection { index: connection.index, generation: connection.generation };
        let is_heard = may_send && self.poller.add(socket.as_fd(), source).is_ok();
        connection.watched = true;
        connection.served = 1;
        self.settle(connection, if is_heard { After::Linger } else { After::Close });
    }
}

impl Exchange {
    /// Whether it is a connection that was not read.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.reactor.options.plain
    }

    /// A duplicate of the socket of a plain connection, which blocks.
    pub fn duplicate(&self) -> rustix::io::Result<OwnedFd> {
        let connection = self.connection.as_ref().ok_or(Errno::BADF)?;
        let duplicate = fcntl_dupfd_cloexec(&connection.link.socket, LEAST_DESCRIPTOR)?;
        ioctl_fionbio(&duplicate, false)?;
        Ok(duplicate)
    }

    /// Whether the client of a plain connection is gone altogether: by a reset, or because both sides have finished.
    pub fn has_left(&self) -> bool {
        let Some(connection) = &self.connection else { return true };
        let mut sockets = [PollFd::new(&connection.link.socket, PollFlags::empty())];
        let _ = poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        sockets[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// The handler of a plain connection is through with it. If it is not `complete`, its client learns so by a reset.
    pub fn part(&mut self, complete: bool) {
        let Some(connection) = self.take_back(complete && !self.lost) else { return };
        if complete && !self.lost {
            return self.reactor.hear_out(connection);
        }
        connection.link.reset();
        self.reactor.close(connection);
    }
}
