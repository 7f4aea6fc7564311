//! Accepts connections, refuses those beyond the limits, and leaves them to workers with fewer connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use poorhttp_http::{Protocol, Reject, RequestParser};

use crate::connection::Connection;
use crate::connection::listener::Listener;
use crate::connection::shared_socket::SharedSocket;
use crate::connection::state::PhaseEvent;
use crate::connection::stream_protocol::Negotiation;
use crate::connection::transport::Socket;
use crate::connection::transport::tls::TlsSocket;
use crate::limits::REFUSED_AT_ONCE;
use crate::log::error::Level;
use crate::overload::accept_balance::AcceptBalance;
use crate::scheduler::put_back;
use crate::scheduler::state::{Shared, State};
use crate::shutdown::Stage;
use crate::sys::net::NotAccepted;
use crate::sys::{Errno, OwnedFd, clock};

/// Connections accepted before others have their turn.
const ACCEPTED_AT_ONCE: usize = 64;
/// Milliseconds for which a worker with more connections than another lets that one accept.
const YIELD_TIME: u64 = 2;
/// Milliseconds before accepting is tried again after descriptors have run out.
const RETRY_TIME: u64 = 500;

pub(crate) fn accept(state: &State, number: u32) {
    let Some(listener) = state.listeners.get(number) else { return };
    let Some(accept_balance) = &state.running.accept_balance else {
        return accept_while(state, number, &listener, ACCEPTED_AT_ONCE, |_| true);
    };
    let mut shared = state.lock();
    let now = clock::now();
    let live = shared.connections.live();
    if shared.accepting.yields(now, || accept_balance.should_yield(live)) {
        state.queue_time.note_rest();
        return pause_listeners(state, &mut shared, YIELD_TIME);
    }
    // An idle worker accepts one connection, so that other workers get their share of a burst. A busy worker accepts more:
    // it polls again only after the connections in its ready queue, and the backlog would wait for as long.
    let most = if shared.connections.ready() == 0 { 1 } else { ACCEPTED_AT_ONCE };
    drop(shared);
    accept_while(state, number, &listener, most, |live| !accept_balance.should_yield(live));
    let shared = state.lock();
    // The loop of another library waits for our poller, and so is woken for each connection anyway. A worker that stops has
    // withdrawn under this lock, and another one may have its place.
    let may_take_turns = !state.running.external_loop && !state.is_stopping();
    if may_take_turns && accept_balance.decide(shared.connections.live()) && !shared.accepting.is_paused() {
        state.listeners.unwatch(&state.poller);
        watch_listeners(state);
    }
}

/// Registers all listening sockets with the poller, so that connections wake this worker.
pub(crate) fn watch_listeners(state: &State) {
    let in_turn = state.running.accept_balance.as_ref().is_some_and(AcceptBalance::takes_turns);
    let _ = state.listeners.watch(&state.poller, in_turn);
}

/// Accepts a connection, and others until there are `most` or `goes_on` says no to the number of all connections.
fn accept_while(state: &State, number: u32, listener: &Listener, most: usize, goes_on: impl Fn(usize) -> bool) {
    for accepted in 0..most {
        if accepted > 0 && !goes_on(state.lock().connections.live()) {
            break;
        }
        if !has_room(state) {
            return;
        }
        match listener.accept() {
            Ok((socket, peer)) => {
                state.counters.metrics.accepted.fetch_add(1, Ordering::Relaxed);
                add_connection(state, number, listener, socket, peer, 0);
            }
            Err(NotAccepted::Empty) => return,
            Err(NotAccepted::Exhausted(error)) => return on_exhausted(state, error),
        }
    }
    state.queue_time.note_rest();
}

/// Stops accepting for so many milliseconds; new connections wait in the backlog.
fn pause_listeners(state: &State, shared: &mut Shared, milliseconds: u64) {
    state.listeners.unwatch(&state.poller);
    shared.accepting.pause(clock::now() + milliseconds);
    state.set_timer(shared);
}

/// Whether another connection may be accepted, if only to be refused; of the refused ones, only some are open at the
/// same time.
fn has_room(state: &State) -> bool {
    let mut shared = state.lock();
    let room = shared.connections.live() < state.max_connections.saturating_add(REFUSED_AT_ONCE);
    if !room {
        state.queue_time.note_rest();
        pause_listeners(state, &mut shared, RETRY_TIME);
    }
    room
}

/// Adds an accepted connection. If there is no room, the longest-idle one is closed; if all are busy, the new one gets 503.
/// `served`: requests on it that a predecessor has answered.
pub(crate) fn add_connection(
    state: &State,
    number: u32,
    listener: &Listener,
    socket: OwnedFd,
    peer: Option<SocketAddr>,
    served: u32,
) {
    if state.receiving.raw_tcp {
        return add_raw_tcp_connection(state, number, listener, socket, peer);
    }
    let Some(socket) = transport(state, listener, socket) else { return };
    let socket = Arc::new(SharedSocket::new(socket, Arc::clone(&state.running.spool)));
    let mut shared = state.lock();
    let mut has_room = true;
    if shared.connections.live() >= state.max_connections {
        let (now, Shared { eviction, connections, .. }) = (clock::now(), &mut *shared);
        let oldest = eviction.take_longest_idle(connections, &state.timeouts, now);
        has_room = oldest.is_some();
        warn_full(state, &mut shared, "a new one replaces an idle one, or gets 503");
        if let Some(mut oldest) = oldest {
            drop(shared);
            if let Some(streams) = &oldest.streams {
                streams.finish_shutdown();
            }
            if oldest.socket.transport.tls().is_some() {
                oldest.finish();
            }
            put_back::close(state, oldest);
            shared = state.lock();
        }
    }
    if !has_room && let Some(tls) = socket.transport.tls() {
        drop(shared);
        // A response would cost a handshake.
        return tls.refuse();
    }
    let (index, generation) = shared.connections.occupy(Arc::clone(&socket));
    let mut connection = Connection::new(index, generation, Arc::clone(&socket), number, peer);
    connection.request.parser = RequestParser::of(listener.protocol);
    connection.request.served = served;
    connection.request.over_tls = listener.tls.is_some();
    connection.request.set_peer_trust(state.receiving.trust.as_ref(), listener.proxied);
    connection.negotiation = match listener.streams {
        // As the peer is, not the client that a PROXY protocol header names.
        Negotiation::TrustedPreface if peer.is_none() || connection.request.is_from_trusted_proxy() => {
            Negotiation::Preface
        }
        negotiation => negotiation,
    };
    if socket.transport.tls().is_some() {
        connection.request.set_secure();
        connection.transition(PhaseEvent::BeginHandshake);
    } else if listener.streams == Negotiation::Always && !connection.request.awaits_proxy_header() && has_room {
        connection.transition(PhaseEvent::BeginStreams);
    }
    if listener.protocol != Protocol::Http && !connection.request.is_from_trusted_proxy() {
        // It could name any client and any user.
        connection.transition(PhaseEvent::Refuse(Reject { status: 403, reason: "an untrusted gateway" }));
    }
    shared.poll_times.note_accepted(&mut connection);
    if !has_room {
        connection.transition(PhaseEvent::Refuse(Reject { status: 503, reason: "too many connections" }));
    }
    let deadline = clock::now() + state.timeouts.header;
    shared.connections.of(index).connection = Some(Box::new(connection));
    shared.set_deadline(index, generation, deadline);
    // It is registered with the poller when it has to wait: many connections have ended by then.
    shared.connections.enqueue(index);
    if shared.stopping.stage() != Stage::Running {
        // The stage was entered before, so this connection was not marked with the others.
        shared.connections.mark_readable(index);
    }
    state.publish_connections(&shared);
}

/// The transport of a new connection. `None`: it cannot be made.
#[inline]
fn transport(state: &State, listener: &Listener, socket: OwnedFd) -> Option<Socket> {
    let Some(config) = &listener.tls else { return Some(socket.into()) };
    match config.session() {
        Ok(session) => Some(Socket::Tls(Box::new(TlsSocket::new(socket, session)))),
        Err(error) => {
            state.log(Level::Error, &format!("a connection is closed, because TLS cannot begin: {error}"));
            None
        }
    }
}

#[cold]
fn warn_full(state: &State, shared: &mut Shared, consequence: &str) {
    if shared.accepting.full.is_due() {
        let most = state.max_connections;
        state.log(Level::Warning, &format!("{most} connections are open (max_connections): {consequence}"));
    }
}

/// Descriptors have run out: we go on with the connections we have.
#[cold]
fn on_exhausted(state: &State, error: Errno) {
    let mut shared = state.lock();
    if shared.accepting.is_paused() {
        return;
    }
    if shared.accepting.exhausted.is_due() {
        state.log(Level::Error, &format!("connections have to wait to be accepted: {error}"));
    }
    pause_listeners(state, &mut shared, RETRY_TIME);
}

/// Stops listening. `last`: no other process listens, so all connections in the backlog are accepted.
#[cold]
pub(crate) fn stop_accepting(state: &State, last: bool) {
    if let Some(fd_handoff) = &state.running.fd_handoff {
        // Removed already at a second request to stop.
        let _ = state.poller.remove(fd_handoff.fd());
    }
    for (number, listener) in state.listeners.close(&state.poller) {
        while last && let Ok((socket, peer)) = listener.accept() {
            state.counters.metrics.accepted.fetch_add(1, Ordering::Relaxed);
            add_connection(state, number, &listener, socket, peer, 0);
        }
    }
}

/// Adds a raw TCP connection, to be handed out at once. If there is no room it is closed, as no answer fits every
/// protocol, and no other connection is known to be idle.
fn add_raw_tcp_connection(state: &State, number: u32, listener: &Listener, socket: OwnedFd, peer: Option<SocketAddr>) {
    let Some(socket) = transport(state, listener, socket) else { return };
    let mut shared = state.lock();
    if shared.connections.live() >= state.max_connections {
        return warn_full(state, &mut shared, "a new one is closed at once");
    }
    let socket = Arc::new(SharedSocket::new(socket, Arc::clone(&state.running.spool)));
    let (index, generation) = shared.connections.occupy(Arc::clone(&socket));
    let mut connection = Connection::new(index, generation, socket, number, peer);
    if connection.socket.transport.tls().is_some() {
        connection.transition(PhaseEvent::BeginHandshake);
    }
    shared.poll_times.note_accepted(&mut connection);
    shared.connections.of(index).connection = Some(Box::new(connection));
    if listener.tls.is_some() {
        shared.set_deadline(index, generation, clock::now() + state.timeouts.header);
    }
    shared.connections.enqueue(index);
    state.publish_connections(&shared);
}
