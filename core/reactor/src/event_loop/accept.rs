//! Who is let in, and when.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use poorhttp_http::{Inbound, Protocol, Reject};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::connection::listener::{Accepted, Listener};
use crate::connection::peer_trust::Standing;
use crate::connection::shared_socket::Link;
use crate::connection::{Connection, Phase};
use crate::event_loop::reactor::{Core, Reactor};
use crate::event_loop::shutdown::RUNNING;
use crate::limits::REFUSED_AT_ONCE;
use crate::log::error::Level;
use crate::sys::clock::{self, NEVER};

/// Connections accepted before others have their turn.
const ACCEPTED_AT_ONCE: usize = 64;
/// Milliseconds for which a worker with more connections than another lets that one accept.
const YIELDED: u64 = 2;
/// How often in a row it lets the other one go first in vain, and takes one itself: on a busy machine it takes some time
/// until who was woken runs.
const MOST_VAIN: u32 = 16;
/// Milliseconds for which it accepts freely then: the other one must be busy.
const UNYIELDING: u64 = 200;
/// Milliseconds before accepting is tried again after descriptors have run out.
const EXHAUSTED: u64 = 500;
/// Milliseconds between two complaints that there is no room.
const BETWEEN_COMPLAINTS: u64 = 60_000;
/// Descriptors that are left for everything that is no connection, at least: logs, the application's files, bodies on disk.
const DESCRIPTORS_FOR_OTHERS: u64 = 64;

/// A complaint that would be repeated for everybody who comes.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    next: u64,
}

impl Complaint {
    pub(crate) fn is_worth_a_line(&mut self, now: u64) -> bool {
        let worth = self.next <= now;
        if worth {
            self.next = now + BETWEEN_COMPLAINTS;
        }
        worth
    }
}

/// How many connections may be open where nobody has said: most of the descriptors that this process may have.
pub(crate) fn most_by_descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = limit.saturating_sub((limit / 20).max(DESCRIPTORS_FOR_OTHERS)).max(1);
    usize::try_from(most).unwrap_or(usize::MAX)
}

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
                (false, _) => (core.has_yielded, core.vain) = (false, 0),
                (true, true) => {
                    core.has_yielded = false;
                    core.vain += 1;
                    if core.vain >= MOST_VAIN {
                        core.unyielding = now + UNYIELDING;
                    }
                }
                (true, false) => {
                    core.has_yielded = true;
                    self.queue_time.leave();
                    return self.set_listeners_aside(&mut core, YIELDED);
                }
            }
        }
        for _ in 0..limit {
            if !self.makes_room() {
                return;
            }
            match listener.accept() {
                Accepted::Connection(socket, peer) => self.welcome(number, &listener, socket, peer, 0),
                Accepted::Nobody => return,
                Accepted::Exhausted(error) => return self.pause_accepting(error),
            }
        }
        self.queue_time.leave();
    }

    /// Stops accepting for so many milliseconds: those who wait go on waiting in the backlog.
    fn set_listeners_aside(&self, core: &mut Core, milliseconds: u64) {
        self.listeners.unwatch(&self.poller);
        core.resume_accepting = clock::now() + milliseconds;
        self.set_alarm(core);
    }

    /// Whether another connection may come in, if only to be told that there are too many: of those, only some are there at
    /// the same time.
    fn makes_room(&self) -> bool {
        let mut core = self.lock();
        let room = core.slots.live() < self.most_connections.saturating_add(REFUSED_AT_ONCE);
        if !room {
            self.queue_time.leave();
            self.set_listeners_aside(&mut core, EXHAUSTED);
        }
        room
    }

    /// Lets a connection in. If there is no room, the one that has been idle longest goes; if all are busy, the new one is
    /// told to come back.
    /// `served`: requests on it that a predecessor has answered.
    pub(crate) fn welcome(
        &self,
        number: u32,
        listener: &Listener,
        socket: OwnedFd,
        peer: Option<SocketAddr>,
        served: u32,
    ) {
        if self.options.plain {
            return self.welcome_plain(number, socket, peer);
        }
        let link = Arc::new(Link::new(socket, Arc::clone(&self.options.spool)));
        let mut core = self.lock();
        let mut is_welcome = true;
        if core.slots.live() >= self.most_connections {
            let (now, Core { crowd, slots, .. }) = (clock::now(), &mut *core);
            let oldest = crowd.take_oldest(slots, &self.options.timeouts, now);
            is_welcome = oldest.is_some();
            if core.crowded.is_worth_a_line(now) {
                let most = self.most_connections;
                let message = format!(
                    "{most} connections are open (max_connections): a new one costs an idle one its place, or gets 503"
                );
                self.options.journal.write(Level::Warning, &message);
            }
            if let Some(oldest) = oldest {
                drop(core);
                self.close(oldest);
                core = self.lock();
            }
        }
        let (index, generation) = core.slots.occupy(Arc::clone(&link));
        let mut connection = Connection::new(index, generation, Arc::clone(&link), number, peer);
        connection.inbound = Inbound::of(listener.protocol);
        connection.served = served;
        connection.introduce(self.options.trust.as_ref(), listener.proxied);
        if listener.protocol != Protocol::Http && connection.standing != Standing::Trusted {
            // It could name any client and any user.
            connection.phase = Phase::Unwelcome(Reject { status: 403, reason: "a gateway that is not trusted" });
        }
        core.looks.let_in(&mut connection);
        if !is_welcome {
            connection.phase = Phase::Unwelcome(Reject { status: 503, reason: "too many connections" });
        }
        let deadline = clock::now() + self.options.timeouts.header;
        let Core { slots, deadlines, .. } = &mut *core;
        let slot = slots.of(index);
        slot.connection = Some(Box::new(connection));
        deadlines.set(&mut slot.deadline, deadline, index, generation);
        // The poller is told of it when there is something to wait for: many connections have come and gone by then.
        core.enqueue(index);
        if core.stopped != RUNNING {
            // Too late to have been looked at with the others.
            core.look_at(index);
        }
        self.set_alarm(&mut core);
        self.publish_share(&core);
    }

    /// Descriptors have run out: we go on with the connections we have.
    #[cold]
    fn pause_accepting(&self, error: Errno) {
        let mut core = self.lock();
        if core.resume_accepting != NEVER {
            return;
        }
        if core.exhausted.is_worth_a_line(clock::now()) {
            let message = format!("connections have to wait to be accepted: {error}");
            self.options.journal.write(Level::Error, &message);
        }
        self.set_listeners_aside(&mut core, EXHAUSTED);
    }

    /// Listens no more. If nobody else does, all who wait are let in.
    #[cold]
    pub(crate) fn stop_accepting(&self, last: bool) {
        if let Some(bequest) = &self.options.bequest {
            // Gone already, if we are told to stop a second time.
            let _ = self.poller.remove(bequest.fd());
        }
        for (number, listener) in self.listeners.close(&self.poller) {
            while last && let Accepted::Connection(socket, peer) = listener.accept() {
                self.welcome(number, &listener, socket, peer, 0);
            }
        }
    }

    pub(crate) fn publish_share(&self, core: &Core) {
        self.tally.set_connections(core.slots.live());
        if let Some(shares) = &self.options.shares
            && !self.is_stopping()
        {
            shares.publish(core.slots.live());
        }
    }

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
}
