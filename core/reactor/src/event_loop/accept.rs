//! Who is let in, and when.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use poorhttp_http::{Protocol, Reject, RequestParser};
use rustix::io::Errno;

use crate::connection::Connection;
use crate::connection::listener::{Accepted, Listener};
use crate::connection::peer_trust::PeerTrust;
use crate::connection::shared_socket::SharedSocket;
use crate::connection::state::PhaseEvent;
use crate::control::shutdown::Stage;
use crate::event_loop::reactor::{Core, Reactor};
use crate::event_loop::ready_queue;
use crate::limits::REFUSED_AT_ONCE;
use crate::log::error::Level;
use crate::sys::clock;

/// Connections accepted before others have their turn.
const ACCEPTED_AT_ONCE: usize = 64;
/// Milliseconds for which a worker with more connections than another lets that one accept.
const YIELDED: u64 = 2;
/// Milliseconds before accepting is tried again after descriptors have run out.
const EXHAUSTED: u64 = 500;

pub(crate) fn accept(reactor: &Reactor, number: u32) {
    let Some(listener) = reactor.listeners.get(number) else { return };
    let mut limit = ACCEPTED_AT_ONCE;
    if let Some(shares) = &reactor.options.shares {
        limit = 1;
        let mut core = reactor.lock();
        let now = clock::now();
        let live = core.slots.live();
        if core.accepting.yields(now, || shares.should_yield(live)) {
            reactor.queue_time.leave();
            return set_listeners_aside(reactor, &mut core, YIELDED);
        }
    }
    for _ in 0..limit {
        if !makes_room(reactor) {
            return;
        }
        match listener.accept() {
            Accepted::Connection(socket, peer) => add_connection(reactor, number, &listener, socket, peer, 0),
            Accepted::Nobody => return,
            Accepted::Exhausted(error) => return pause_accepting(reactor, error),
        }
    }
    reactor.queue_time.leave();
}

/// Stops accepting for so many milliseconds: those who wait go on waiting in the backlog.
fn set_listeners_aside(reactor: &Reactor, core: &mut Core, milliseconds: u64) {
    reactor.listeners.unwatch(&reactor.poller);
    core.accepting.pause(clock::now() + milliseconds);
    reactor.set_alarm(core);
}

/// Whether another connection may come in, if only to be told that there are too many: of those, only some are there at
/// the same time.
fn makes_room(reactor: &Reactor) -> bool {
    let mut core = reactor.lock();
    let room = core.slots.live() < reactor.most_connections.saturating_add(REFUSED_AT_ONCE);
    if !room {
        reactor.queue_time.leave();
        set_listeners_aside(reactor, &mut core, EXHAUSTED);
    }
    room
}

/// Lets a connection in. If there is no room, the one that has been idle longest goes; if all are busy, the new one is
/// told to come back.
/// `served`: requests on it that a predecessor has answered.
pub(crate) fn add_connection(
    reactor: &Reactor,
    number: u32,
    listener: &Listener,
    socket: OwnedFd,
    peer: Option<SocketAddr>,
    served: u32,
) {
    if reactor.options.raw_tcp {
        return add_raw_tcp_connection(reactor, number, socket, peer);
    }
    let socket = Arc::new(SharedSocket::new(socket, Arc::clone(&reactor.options.spool)));
    let mut core = reactor.lock();
    let mut has_room = true;
    if core.slots.live() >= reactor.most_connections {
        let (now, Core { eviction, slots, .. }) = (clock::now(), &mut *core);
        let oldest = eviction.take_longest_idle(slots, &reactor.options.timeouts, now);
        has_room = oldest.is_some();
        if core.accepting.full.is_worth_a_line(now) {
            let most = reactor.most_connections;
            let message = format!(
                "{most} connections are open (max_connections): a new one costs an idle one its place, or gets 503"
            );
            reactor.options.journal.write(Level::Warning, &message);
        }
        if let Some(oldest) = oldest {
            drop(core);
            ready_queue::close(reactor, oldest);
            core = reactor.lock();
        }
    }
    let (index, generation) = core.slots.occupy(Arc::clone(&socket));
    let mut connection = Connection::new(index, generation, Arc::clone(&socket), number, peer);
    connection.parser = RequestParser::of(listener.protocol);
    connection.served = served;
    connection.set_peer_trust(reactor.options.trust.as_ref(), listener.proxied);
    if listener.protocol != Protocol::Http && connection.peer_trust != PeerTrust::Trusted {
        // It could name any client and any user.
        connection.transition(PhaseEvent::Refuse(Reject { status: 403, reason: "a gateway that is not trusted" }));
    }
    core.looks.let_in(&mut connection);
    if !has_room {
        connection.transition(PhaseEvent::Refuse(Reject { status: 503, reason: "too many connections" }));
    }
    let deadline = clock::now() + reactor.options.timeouts.header;
    let Core { slots, deadlines, .. } = &mut *core;
    let slot = slots.of(index);
    slot.connection = Some(Box::new(connection));
    deadlines.set(&mut slot.deadline, deadline, index, generation);
    // The poller is told of it when there is something to wait for: many connections have come and gone by then.
    core.enqueue(index);
    if core.stopped != Stage::Running {
        // Too late to have been looked at with the others.
        core.look_at(index);
    }
    reactor.set_alarm(&mut core);
    reactor.publish_share(&core);
}

/// Descriptors have run out: we go on with the connections we have.
#[cold]
fn pause_accepting(reactor: &Reactor, error: Errno) {
    let mut core = reactor.lock();
    if core.accepting.is_paused() {
        return;
    }
    if core.accepting.exhausted.is_worth_a_line(clock::now()) {
        let message = format!("connections have to wait to be accepted: {error}");
        reactor.options.journal.write(Level::Error, &message);
    }
    set_listeners_aside(reactor, &mut core, EXHAUSTED);
}

/// Listens no more. If nobody else does, all who wait are let in.
#[cold]
pub(crate) fn stop_accepting(reactor: &Reactor, last: bool) {
    if let Some(bequest) = &reactor.options.bequest {
        // Gone already, if we are told to stop a second time.
        let _ = reactor.poller.remove(bequest.fd());
    }
    for (number, listener) in reactor.listeners.close(&reactor.poller) {
        while last && let Accepted::Connection(socket, peer) = listener.accept() {
            add_connection(reactor, number, &listener, socket, peer, 0);
        }
    }
}

/// Lets a connection in, to be handed out at once. If there is no room it is closed: nothing can be said that every
/// protocol would understand, and none of the others is known to be idle.
pub(crate) fn add_raw_tcp_connection(reactor: &Reactor, listener: u32, socket: OwnedFd, peer: Option<SocketAddr>) {
    let mut core = reactor.lock();
    let most = reactor.most_connections;
    if core.slots.live() >= most {
        if core.accepting.full.is_worth_a_line(clock::now()) {
            let message = format!("{most} connections are open (max_connections): a new one is closed at once");
            reactor.options.journal.write(Level::Warning, &message);
        }
        return;
    }
    let socket = Arc::new(SharedSocket::new(socket, Arc::clone(&reactor.options.spool)));
    let (index, generation) = core.slots.occupy(Arc::clone(&socket));
    let mut connection = Connection::new(index, generation, socket, listener, peer);
    core.looks.let_in(&mut connection);
    core.slots.of(index).connection = Some(Box::new(connection));
    core.enqueue(index);
    reactor.publish_share(&core);
}
