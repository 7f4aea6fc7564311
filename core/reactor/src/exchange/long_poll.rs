//! Long poll: responses that stay open without a thread, until one call completes them for all clients.
//!
//! Their connections have no deadline. They end when the server stops, when [`Reactor::end_long_polls`] is called, or when
//! the client disconnects.

use crate::connection::send_queue::Flushed;
use crate::connection::state::{After, PhaseEvent};
use crate::connection::{Connection, LongPoll};
use crate::event_loop::connections::Again;
use crate::event_loop::reactor::Reactor;
use crate::event_loop::{finish, ready_queue};
use crate::exchange::{Exchange, SendError};
use crate::sys::clock::{self, NEVER};

/// What [`Exchange::hold_open`] does.
pub(crate) fn hold_open(exchange: &mut Exchange, final_chunk: &[u8], missed: u64) -> Result<(), SendError> {
    if exchange.answered_elsewhere {
        return Err(SendError::Over);
    }
    // The end is unknown: a client with another request must not wait for it on this connection.
    exchange.response.close();
    if !exchange.response.is_committed() {
        exchange.commit(None)?;
    }
    if exchange.lost || !exchange.response.has_body() {
        exchange.answered_elsewhere = true;
        return exchange.conclude();
    }
    let Some(stream) = exchange.stream.take() else { return Err(SendError::Over) };
    let mut connection = stream.into_connection();
    exchange.end_timeout();
    exchange.answered_elsewhere = true;
    exchange.reactor.counters.answered(exchange.status());
    if exchange.lost || connection.transmit(&[]).is_err() {
        ready_queue::close(&exchange.reactor, connection);
        return Ok(());
    }
    connection.served = connection.served.saturating_add(1);
    let since = clock::precise_us().saturating_sub(missed.saturating_mul(1_000));
    connection.long_poll =
        Some(Box::new(LongPoll { response: exchange.response.clone(), final_chunk: final_chunk.into(), since }));
    connection.transition(PhaseEvent::HoldOpen);
    connection.buffers = None;
    continue_long_poll(&exchange.reactor, connection);
    Ok(())
}

/// Continues with a connection in [`crate::connection::state::Phase::LongPoll`].
#[cold]
pub(crate) fn continue_long_poll(reactor: &Reactor, mut connection: Box<Connection>) {
    // Further input is not answered.
    if connection.discard() || (connection.has_send_queue && connection.flush() == Flushed::Broken) {
        return ready_queue::close(reactor, connection);
    }
    let is_bidden =
        connection.long_poll.as_ref().is_some_and(|long_poll| reactor.has_ended_long_polls_since(long_poll.since));
    if is_bidden || reactor.is_stopping() {
        return end_long_poll(reactor, connection, is_bidden);
    }
    let again = if connection.readable { Again::InTurn } else { Again::No };
    ready_queue::put_back(reactor, connection, NEVER, again);
}

fn end_long_poll(reactor: &Reactor, mut connection: Box<Connection>, is_bidden: bool) {
    if let Some(mut long_poll) = connection.long_poll.take() {
        let response = &mut long_poll.response;
        let out = &mut connection.buffers().out;
        let admitted = if is_bidden { response.admit(long_poll.final_chunk.len()) } else { 0 };
        for piece in long_poll.final_chunk[..admitted].chunks(response.largest_chunk()) {
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
