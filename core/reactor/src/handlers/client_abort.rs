//! Requests whose client disconnects before they are run: they are logged with status 499 and dropped.
//!
//! A reset is always a disconnect. A FIN also comes from a client that has closed only its sending half and still waits
//! for the response, so it counts as a disconnect only for a request that had to wait for others
//! ([`crate::Options::abort_on_close`]). A socket is checked only if its request may have waited, and no clock is read for
//! a request that has not.

use std::sync::Arc;

use crate::connection::Connection;
use crate::connection::peer_trust::client_suffix;
use crate::exchange::Exchange;
use crate::scheduler::state::State;
use crate::sys::clock;
use crate::sys::socket::Transport;

/// [`CLIENT_ABORT`](crate::status::CLIENT_ABORT) with its reason.
const STATUS: &str = "499 Client Closed Request";

/// Drops a complete request whose client has disconnected, or returns its connection. `arrived`: earliest time at which its
/// events can have arrived.
#[cold]
pub(crate) fn drop_if_aborted(
    state: &Arc<State>,
    connection: Box<Connection>,
    arrived: u64,
) -> Option<Box<Connection>> {
    let Some(how) = find_abort(state, &connection, arrived) else { return Some(connection) };
    let client = connection.request.client();
    state.queue_timeout.note_left(client.map(|(address, _)| address), clock::now());
    let number = state.next_number();
    let level = connection.departure_level();
    let client = client_suffix(client);
    let mut exchange = Exchange::new(Arc::clone(state), connection, number, false);
    let mut name = exchange.request_name();
    name.line.push_str(&client);
    state.log_about(level, &name, &format!("not run, logged with 499: {how}"));
    // For the log only.
    let _ = exchange.start::<crate::SendError>(STATUS, |_| Ok(()));
    if let Some(stream) = exchange.writer.take_stream(false) {
        stream.close(state);
    }
    None
}

/// How the client has disconnected, if it has.
fn find_abort(state: &State, connection: &Connection, arrived: u64) -> Option<&'static str> {
    let peer = connection.socket.transport.peer_state();
    if peer.is_gone {
        return Some(match connection.is_stream() {
            true => "the client has reset the stream",
            false => "the client has reset the connection",
        });
    }
    // Waiting for earlier requests of the same connection does not count: the client may send its requests without waiting
    // for responses, and this may be the last one.
    if !state.handling.abort_on_close || !state.queue_time.has_waited_since(arrived.max(connection.last_request_end)) {
        return None;
    }
    // A Unix socket reports only a closed half this way.
    if peer.has_finished && connection.request.peer().is_some() && !connection.pipelines {
        return Some("the client has closed the connection while the request waited for others");
    }
    is_aborted_by_gateway(connection).then_some("the web server has aborted it")
}

/// Whether the next record of a FastCGI connection aborts the request.
fn is_aborted_by_gateway(connection: &Connection) -> bool {
    let parser = &connection.request.parser;
    let Some(buffers) = connection.request.buffers.as_ref().filter(|_| parser.is_abortable()) else { return false };
    let mut record = [0; 8];
    match buffers.read_buffer.unread() {
        [] => connection.socket.transport.peek(&mut record) == Ok(record.len()) && parser.is_aborted_by(&record),
        bytes => parser.is_aborted_by(bytes),
    }
}
