//! Who is let in, and when.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::clock;
use crate::connection::{Connection, Link};
use crate::deadlines::NEVER;
use crate::journal::Level;
use crate::listener::Accepted;
use crate::poller::Source;
use crate::reactor::{Core, Reactor};

/// Connections accepted before others have their turn.
const ACCEPTED_AT_ONCE: usize = 64;
/// Milliseconds for which a worker with more connections than another lets that one accept.
const YIELDED: u64 = 2;
/// Milliseconds for which it accepts freely when the other one did not: it must be busy.
const UNYIELDING: u64 = 50;
/// Milliseconds before accepting is tried again after descriptors have run out.
const EXHAUSTED: u64 = 500;
/// Milliseconds between two complaints that descriptors have run out.
const BETWEEN_COMPLAINTS: u64 = 60_000;

impl Reactor {
    pub(crate) fn accept(&self, number: u32) {
        let Some(listener) = self.listeners.get(number) else { return };
        let mut limit = ACCEPTED_AT_ONCE;
        if let Some(shares) = &self.options.shares {
            limit = 1;
            let mut core = self.lock();
            let now = clock::now();
            let should_yield = core.unyielding <= now && shares.should_yield(core.slots.live());
            match (should_yield, core.has_yielded) {
                (false, _) => core.has_yielded = false,
                (true, true) => core.unyielding = now + UNYIELDING,
                (true, false) => {
                    core.has_yielded = true;
                    return self.set_listeners_aside(&mut core, YIELDED);
                }
            }
        }
        for _ in 0..limit {
            match listener.accept() {
                Accepted::Connection(socket, peer) => self.welcome(number, socket, peer),
                Accepted::Nobody => return,
                Accepted::Exhausted(error) => return self.pause_accepting(error),
            }
        }
    }

    /// Stops accepting for so many milliseconds: those who wait go on waiting in the backlog.
    fn set_listeners_aside(&self, core: &mut Core, milliseconds: u64) {
        self.listeners.unwatch(&self.poller);
        core.resume_accepting = clock::now() + milliseconds;
        self.set_alarm(core);
    }

    fn welcome(&self, listener: u32, socket: OwnedFd, peer: Option<SocketAddr>) {
        let link = Arc::new(Link::new(socket));
        let mut core = self.lock();
        let (index, generation) = core.slots.occupy(Arc::clone(&link));
        let connection = Connection::new(index, generation, Arc::clone(&link), listener, peer);
        let deadline = clock::now() + self.options.timeouts.header;
        let Core { slots, deadlines, .. } = &mut *core;
        let slot = slots.of(index);
        slot.connection = Some(Box::new(connection));
        deadlines.set(&mut slot.deadline, deadline, index, generation);
        self.set_alarm(&mut core);
        self.publish_share(&core);
        // The edge of what has arrived already comes with the registration.
        if let Err(error) = self.poller.add(link.socket.as_fd(), Source::Connection { index, generation }) {
            core.slots.vacate(index);
            drop(core);
            self.options.journal.write(Level::Error, &format!("a connection cannot be watched: {error}"));
        }
    }

    /// Descriptors have run out: we go on with the connections we have.
    #[cold]
    fn pause_accepting(&self, error: Errno) {
        let mut core = self.lock();
        if core.resume_accepting != NEVER {
            return;
        }
        let now = clock::now();
        if core.complained + BETWEEN_COMPLAINTS <= now || core.complained == 0 {
            core.complained = now;
            let message = format!("connections have to wait to be accepted: {error}");
            self.options.journal.write(Level::Error, &message);
        }
        self.set_listeners_aside(&mut core, EXHAUSTED);
    }

    /// Lets in all who wait, and listens no more.
    #[cold]
    pub(crate) fn accept_the_last(&self) {
        self.listeners.unwatch(&self.poller);
        for (number, listener) in self.listeners.close() {
            while let Accepted::Connection(socket, peer) = listener.accept() {
                self.welcome(number, socket, peer);
            }
        }
    }
}
