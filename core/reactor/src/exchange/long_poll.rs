//! Long poll: responses that stay open without a thread, until one call completes them for all clients.
//!
//! Their connections have no deadline. They end when the server stops, when [`Reactor::end_long_polls`] is called, or when
//! the client disconnects.

use poorhttp_compress::Flush;

use crate::connection::Connection;
use crate::connection::postponed::Coder;
use crate::connection::send_queue::Flushed;
use crate::connection::state::{After, PhaseEvent};
use crate::event_loop::connections::Again;
use crate::event_loop::reactor::Reactor;
use crate::event_loop::{finish, ready_queue};
use crate::sys::clock::NEVER;

/// Continues with a connection in [`crate::connection::state::Phase::LongPoll`].
#[cold]
pub(crate) fn continue_long_poll(reactor: &Reactor, mut connection: Box<Connection>) {
    // Further input is not answered.
    if connection.discard() || (connection.is_behind() && connection.flush() == Flushed::Broken) {
        return ready_queue::close(reactor, connection);
    }
    let is_bidden =
        connection.long_poll.as_ref().is_some_and(|long_poll| reactor.has_ended_long_polls_since(long_poll.since));
    if is_bidden || reactor.is_stopping() {
        return end_long_poll(reactor, connection, is_bidden);
    }
    let again = if connection.is_readable() { Again::InTurn } else { Again::No };
    ready_queue::put_back(reactor, connection, NEVER, again);
}

fn end_long_poll(reactor: &Reactor, mut connection: Box<Connection>, is_bidden: bool) {
    if let Some(mut long_poll) = connection.long_poll.take() {
        let response = &mut long_poll.response;
        let out = &mut connection.request.buffers().out;
        let last = if is_bidden { &long_poll.final_chunk[..] } else { &[] };
        if let Some(coder) = &long_poll.coder {
            // Without memory for the end, the client sees that it is missing.
            let _ = Coder::lock(coder).encode(last, Flush::Finish, out);
        }
        let admitted = if long_poll.coder.is_some() { 0 } else { response.admit(last.len()) };
        for piece in last[..admitted].chunks(response.largest_chunk()) {
            response.open_chunk(out, piece.len());
            out.extend_from_slice(piece);
            out.extend_from_slice(response.end_of_chunk(piece.len()));
        }
        response.end(out);
    }
    connection.transition(PhaseEvent::EndLongPoll);
    let after = if connection.may_be_sending() { After::Linger } else { After::Close };
    finish::response_done(reactor, connection, after);
}
