//! Long poll: responses that stay open without a thread, until one call completes them for all clients.
//!
//! Their connections have no deadline. They end when the server stops, when [`crate::Reactor::end_long_polls`] is called, or when
//! the client disconnects. Until then, each chunk of [`crate::Reactor::push_to_long_polls`] is sent to all of them; a client that
//! reads slowly misses some.

use poorhttp_interface::codings::Flush;

use crate::connection::Connection;
use crate::connection::coalesced::Coder;
use crate::connection::send_queue::Flushed;
use crate::connection::state::{After, PhaseEvent};
use crate::scheduler::connections::Again;
use crate::scheduler::state::State;
use crate::scheduler::{put_back, release};
use crate::sys::clock::NEVER;

/// Continues with a connection in [`crate::connection::state::Phase::LongPoll`].
#[cold]
pub(crate) fn continue_long_poll(state: &State, mut connection: Box<Connection>) {
    // Further input is not answered.
    if connection.discard() || (connection.is_behind() && connection.flush() == Flushed::Broken) {
        return put_back::close(state, connection);
    }
    let is_bidden =
        connection.long_poll.as_ref().is_some_and(|long_poll| state.long_polls.have_ended_since(long_poll.since));
    if is_bidden || state.is_stopping() {
        return end_long_poll(state, connection, is_bidden);
    }
    // Chunks do not queue up for a client that does not read them.
    if !connection.is_behind()
        && let Some(long_poll) = &mut connection.long_poll
        && let Some(chunk) = state.long_polls.later_than(&mut long_poll.seen)
    {
        append(&mut connection, &chunk, Flush::Sync);
        if connection.transmit(&[]).is_err() {
            return put_back::close(state, connection);
        }
    }
    let again = if connection.is_readable() { Again::InTurn } else { Again::No };
    put_back::put_back(state, connection, NEVER, again);
}

fn end_long_poll(state: &State, mut connection: Box<Connection>, is_bidden: bool) {
    if let Some(long_poll) = &mut connection.long_poll {
        let last = if is_bidden { std::mem::take(&mut long_poll.final_chunk) } else { Vec::new() };
        append(&mut connection, &last, Flush::Finish);
    }
    if let Some(mut long_poll) = connection.long_poll.take() {
        long_poll.response.end(&mut connection.request.buffers().out);
    }
    connection.transition(PhaseEvent::EndLongPoll);
    let after = if connection.may_be_sending() { After::Linger } else { After::Close };
    release::response_done(state, connection, after);
}

/// Appends a piece of the body to the output.
fn append(connection: &mut Connection, piece: &[u8], then: Flush) {
    let Some(mut long_poll) = connection.long_poll.take() else { return };
    let out = &mut connection.request.buffers().out;
    if let Some(coder) = &long_poll.coder {
        // Without memory for the rest, the client sees that it is missing.
        let _ = Coder::lock(coder).encode(piece, then, out);
    } else {
        let response = &mut long_poll.response;
        let admitted = response.admit(piece.len());
        for part in piece[..admitted].chunks(response.largest_chunk()) {
            response.open_chunk(out, part.len());
            out.extend_from_slice(part);
            out.extend_from_slice(response.end_of_chunk(part.len()));
        }
    }
    connection.long_poll = Some(long_poll);
}
