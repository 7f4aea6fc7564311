//! Connections that are not read but handed out as they are, to services that speak something else than HTTP.
//!
//! Until its handler is through with it, the poller knows nothing of such a connection: the handler has a duplicate of its
//! socket. Then we have it for ourselves again, to see to an orderly end.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionbio};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

use crate::connection::shared_socket::Link;
use crate::connection::{After, Connection};
use crate::exchange::Exchange;
use crate::log::error::Level;
use crate::reactor::Reactor;
use crate::sys::clock;
use crate::sys::poller::Source;

/// What stdin, stdout and stderr have is never given to a connection.
const LEAST_DESCRIPTOR: i32 = 3;

impl Reactor {
    /// Lets a connection in, to be handed out at once. If there is no room it is closed: nothing can be said that every
    /// protocol would understand, and none of the others is known to be idle.
    pub(crate) fn welcome_plain(&self, listener: u32, socket: OwnedFd, peer: Option<SocketAddr>) {
        let mut core = self.lock();
        let most = self.most_connections;
        if core.slots.live() >= most {
            if core.crowded.is_worth_a_line(clock::now()) {
                let message = format!("{most} connections are open (max_connections): a new one is closed at once");
                self.options.journal.write(Level::Warning, &message);
            }
            return;
        }
        let link = Arc::new(Link::new(socket, Arc::clone(&self.options.spool)));
        let (index, generation) = core.slots.occupy(Arc::clone(&link));
        let mut connection = Connection::new(index, generation, link, listener, peer);
        core.looks.let_in(&mut connection);
        core.slots.of(index).connection = Some(Box::new(connection));
        core.enqueue(index);
        self.publish_share(&core);
    }

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

    /// Lets handlers end when the time to stop is over, even if all threads wait for clients: those will say nothing more.
    pub(crate) fn stop_plain(self: &Arc<Self>, graceful: bool) {
        let patience = if graceful { self.options.timeouts.graceful } else { 0 };
        if patience == 0 {
            return self.cut_off();
        }
        let reactor = Arc::downgrade(self);
        let cut_off_then = move || {
            thread::sleep(Duration::from_millis(patience));
            if let Some(reactor) = Weak::upgrade(&reactor) {
                reactor.cut_off();
            }
        };
        if thread::Builder::new().name("poorhttp-stop".to_owned()).spawn(cut_off_then).is_err() {
            let message = "connections are not shut down when graceful_timeout is over: no thread can be had for it";
            self.options.journal.write(Level::Error, message);
        }
    }

    /// Shuts down every connection. What was sent on it is still delivered.
    fn cut_off(&self) {
        let mut core = self.lock();
        let open = core.slots.occupied().filter_map(|(_, slot)| slot.link.as_ref());
        let shut = open.filter(|link| shutdown(&link.socket, Shutdown::Both).is_ok()).count();
        drop(core);
        if shut > 0 {
            let plural = if shut == 1 { "connection was" } else { "connections were" };
            let message = format!("the time to stop is over, and {shut} {plural} shut down");
            self.options.journal.write(Level::Info, &message);
        }
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

/// What is told of a plain connection, behind its number: there is no request line.
#[cold]
pub(crate) fn line_of_plain(connection: &Connection) -> String {
    match connection.peer {
        Some(peer) => format!("of {peer}"),
        None => "over a Unix socket".to_owned(),
    }
}
