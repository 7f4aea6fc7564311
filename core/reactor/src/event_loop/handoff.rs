//! Idle connections that outlive the worker which has accepted them.
//!
//! Where the next request must be answered by a new version of the application, and none may be lost, it does not do to
//! close what is idle: the client may be sending at this very moment. So the socket itself goes to the successor, with
//! whatever has arrived on it unread.

use std::sync::Arc;

use poorhttp_http::Protocol;

use crate::connection::Connection;
use crate::connection::state::Phase;
use crate::event_loop::reactor::Reactor;
use crate::event_loop::{accept, ready_queue, shutdown};
use crate::sys::fd_handoff::{FdHandoff, PassedConnection};
use crate::sys::{AsFd, net};

/// Connections taken before others have their turn.
const TAKEN_AT_ONCE: usize = 64;

/// Gives a connection to the successor if nothing has been read of its next request. `None`: that is done.
#[cold]
pub(crate) fn pass_on(
    reactor: &Reactor,
    connection: Box<Connection>,
    fd_handoff: &FdHandoff,
) -> Option<Box<Connection>> {
    let socket = connection.socket.transport.as_fd();
    if !connection.is_untouched() || !fd_handoff.send(connection.listener, connection.served, socket) {
        return Some(connection);
    }
    if connection.watched {
        // It stays open, so the poller would go on telling us of it.
        let _ = reactor.poller.remove(connection.socket.transport.as_fd());
    }
    ready_queue::close(reactor, connection);
    None
}

/// Lets in what a predecessor has given.
#[cold]
pub(crate) fn receive_passed(reactor: &Arc<Reactor>, fd_handoff: &FdHandoff) {
    for _ in 0..TAKEN_AT_ONCE {
        if reactor.is_stopping() {
            // It is the next one's.
            return;
        }
        let Some(PassedConnection { generation, listener: number, served, socket }) = fd_handoff.receive() else {
            return;
        };
        if generation >= fd_handoff.generation {
            // A sibling has been told before us that there is a successor, for whom this is.
            let _ = fd_handoff.send(number, served, socket.as_fd());
            return shutdown::detach(reactor);
        }
        let Some(listener) = reactor.listeners.get(number) else {
            // Another thread has just been told to stop.
            let _ = fd_handoff.send(number, served, socket.as_fd());
            return;
        };
        let peer = net::peer(&socket);
        accept::add_connection(reactor, number, &listener, socket, peer, served);
    }
}

impl Connection {
    /// Whether it waits for a request of which nothing has been read, and nobody but its peer has said anything of it: what
    /// a proxy has said of the whole connection cannot be handed on.
    fn is_untouched(&self) -> bool {
        let buffers = self.buffers.as_ref();
        self.phase() == Phase::Serving
            && !self.has_send_queue
            && self.parser.dialect().protocol == Protocol::Http
            && !self.parser.is_mid_message(buffers.map(|buffers| &buffers.read_buffer))
            && buffers.is_none_or(|buffers| buffers.is_idle())
            && !(self.awaits_proxy_header || self.is_secure || self.forwarded.is_some())
    }
}
