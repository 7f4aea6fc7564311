//! Ends a response: sends the rest, then keeps its connection or closes it; sets the deadline of a connection that waits.

use poorhttp_http::{Protocol, Reject, Response, ServerFields};

use crate::connection::Connection;
use crate::connection::multiplexed::stream::HELD_FOR;
use crate::connection::send_queue::Lost;
use crate::connection::state::{After, Phase, PhaseEvent};
use crate::connection::transport::stream_socket::StreamSocket;
use crate::limits::{BURST, GATHERED, LAST_CHANCE, LINGER};
use crate::log::error::Level;
use crate::log::request_id::RequestName;
use crate::scheduler::connections::Again;
use crate::scheduler::put_back;
use crate::scheduler::state::State;
use crate::sys::clock::{self, NEVER};
use crate::sys::process::has_children;
use crate::telemetry::{logging, timing};

pub(crate) fn answer_refused(state: &State, mut connection: Box<Connection>, reject: Reject, name: &RequestName) {
    connection.request.number = name.number;
    connection.request.drop_stale_origin();
    let dialect = connection.request.parser.dialect();
    state.counters.answered(reject.status);
    let start = connection.end_of_output();
    let hsts = connection.socket.transport.hsts_line(&state.responding.hsts);
    let buffers = connection.request.buffers();
    let response = Response::to_refused(dialect, buffers.read_buffer.is_head_request(), buffers.out.len());
    let server = &name.with_response_field(&state.responding.server_line);
    let size = clock::with_time_of_day(|time| {
        let server_fields = ServerFields { date: &time.date_line, server, closing: true };
        response.refuse(&mut buffers.out, reject, hsts.as_bytes(), &server_fields)
    });
    logging::note_refusal(&state.telemetry, &mut connection, reject.status, size, start, name);
    let sent = connection.end_of_output() - start;
    let reason = state.receiving.limits.explain(reject);
    timing::count_refusal(&state.telemetry, &connection.request, name, reject, &reason, Some(sent));
    if state.takes_times() {
        timing::end_wait(&state.telemetry, &mut connection);
    }
    response_done(state, connection, After::Linger);
}

/// Answers a request that is not run, and closes.
#[cold]
pub(crate) fn refuse(state: &State, connection: Box<Connection>, reject: Reject) {
    let number = state.next_number();
    let name = state.telemetry.request_name(number, &connection);
    state.log_about(
        Level::Info,
        &name,
        &format!("refused with {} ({})", reject.status, state.receiving.limits.explain(reject)),
    );
    answer_refused(state, connection, reject, &name);
}

/// Sees to a connection whose request has been answered.
#[inline]
pub(crate) fn response_done(state: &State, mut connection: Box<Connection>, mut after: After) {
    if after == After::Next {
        let answered_in_turn = connection.answered_in_turn;
        let buffers = connection.request.buffers.get_or_insert_default();
        if !buffers.read_buffer.is_drained() {
            // Pipelined requests wait: their answers are gathered, and sent before anybody has to wait for more.
            connection.answered_in_turn += 1;
            connection.pipelines = true;
            if answered_in_turn < BURST
                && buffers.out.len() < GATHERED
                && !connection.is_behind()
                && !state.waiters.is_stalling()
            {
                logging::log_later(&mut connection);
                connection.begin_next();
                return put_back::put_back(state, connection, NEVER, Again::AtOnce);
            }
        }
        connection.answered_in_turn = 0;
    } else if connection.is_stream() {
        // The end of a stream destroys nothing.
        after = After::Close;
    }
    let sent = if after == After::Close { connection.transmit_last() } else { connection.transmit(&[]) };
    if let Err(lost) = sent {
        return cut_short(state, connection, lost);
    }
    state.log_sent(&mut connection);
    if connection.is_behind() {
        if state.takes_times() {
            timing::keep_name(&state.telemetry, &mut connection);
        }
        if state.telemetry.request_ids.is_some() {
            connection.last_name = Some(Box::new(state.telemetry.last_request_name(&connection)));
        }
        if after == After::Next {
            connection.begin_next();
        }
        connection.transition(PhaseEvent::QueueFull(after));
        if state.takes_times() {
            timing::note_wait(&state.telemetry, &mut connection, false);
        }
        state.queue_time.end(clock::now());
        let deadline = connection.socket.deadline(state.timeouts.response_rate());
        return put_back::put_back(state, connection, deadline, Again::No);
    }
    match after {
        After::Next => {
            connection.begin_next();
            let more = connection.is_readable() || connection.request.has_unread();
            let again = if more || state.is_stopping() { Again::InTurn } else { Again::No };
            let now = clock::now();
            state.queue_time.end(now);
            connection.last_request_end = now;
            put_back::put_back(state, connection, now + state.timeouts.keepalive, again);
        }
        After::Close => close_gracefully(state, connection),
        After::Linger => linger(state, connection),
    }
}

/// Closes a connection on which a response cannot be sent to its end, and logs the reason if the client is not at
/// fault.
#[cold]
pub(crate) fn cut_short(state: &State, mut connection: Box<Connection>, lost: Lost) {
    match lost {
        Lost::Failed(error) => {
            let name = state.telemetry.last_request_name(&connection);
            state.log_about(Level::Error, &name, &format!("the response is cut short: {error}"));
        }
        Lost::ClientGone => timing::note_client_abort(&state.telemetry, &mut connection),
    }
    put_back::close(state, connection);
}

/// Closes a connection on which everything was sent. A child that the application has forked may have it open as well,
/// and so has the thread of the request timeout until the application is through; the client shall not wait for them.
/// And a client that has sent more than we have read is reset by the close: bytes that the kernel still held back would
/// be lost. A web server sends nothing behind its only request.
pub(crate) fn close_gracefully(state: &State, mut connection: Box<Connection>) {
    let is_silent = matches!(connection.request.parser.dialect().protocol, Protocol::Uwsgi | Protocol::Scgi);
    let must_finish = !is_silent || has_children() || state.request_timeouts.is_some();
    if must_finish && !connection.finish() {
        return linger_until_finished(state, connection);
    }
    put_back::close(state, connection);
}

pub(crate) fn linger(state: &State, mut connection: Box<Connection>) {
    if !connection.finish() {
        return linger_until_finished(state, connection);
    }
    connection.transition(PhaseEvent::Linger);
    let now = clock::now();
    state.queue_time.end(now);
    connection.time_limit = now + LINGER;
    connection.last_request_end = now;
    connection.request.buffers = None;
    match connection.discard() {
        true => put_back::close(state, connection),
        false => wait_for_more(state, connection),
    }
}

/// The time of a connection that lingers is over. If its client has yet to acknowledge bytes, and goes on sending, as clients of
/// HTTP/2 do that read, closing would destroy them: it gets more time, but no more than to take a response.
#[cold]
pub(crate) fn end_lingering(state: &State, mut connection: Box<Connection>) {
    let now = clock::now();
    let most = connection.last_request_end.saturating_add(state.timeouts.write);
    let awaits_nothing = connection.streams.is_none() || state.is_overdue() || now >= most;
    if awaits_nothing || !connection.has_unacknowledged(state.telemetry.unacknowledged) || connection.discard() {
        return put_back::close(state, connection);
    }
    connection.time_limit = most.min(now + LINGER);
    wait_for_more(state, connection);
}

/// The socket does not even take the alert that ends TLS: a slow client is given its time for that.
#[cold]
fn linger_until_finished(state: &State, mut connection: Box<Connection>) {
    if connection.phase() == Phase::Handshake {
        return put_back::close(state, connection);
    }
    connection.transition(PhaseEvent::Linger);
    connection.time_limit = clock::now() + state.timeouts.write;
    connection.request.buffers = None;
    wait_for_more(state, connection);
}

/// Whether our half of a connection that lingers has ended, now or before.
pub(crate) fn has_finished(connection: &mut Connection) -> bool {
    if connection.waits_to_send() && connection.finish() {
        connection.last_request_end = clock::now();
        connection.time_limit = connection.last_request_end + LINGER;
    }
    !connection.waits_to_send()
}

/// Puts a connection back until something happens, with the deadline that fits what it is doing.
pub(crate) fn wait_for_more(state: &State, mut connection: Box<Connection>) {
    let timeouts = &state.timeouts;
    let now = clock::now();
    let in_body = connection.request.parser.is_in_body();
    let is_mid_message = connection.request.is_mid_message();
    if connection.phase() == Phase::Serving && !is_mid_message {
        // Only an empty line had begun: the next head has a time of its own.
        connection.time_limit = 0;
    }
    if state.takes_times() {
        timing::note_wait(&state.telemetry, &mut connection, is_mid_message || in_body);
    }
    let deadline = match connection.phase() {
        Phase::Refused(_) => now + timeouts.write,
        Phase::Sending(_) => connection.socket.deadline(timeouts.response_rate()),
        Phase::Lingering => connection.time_limit,
        // From the connection to the end of the handshake, however slowly its bytes arrive.
        Phase::Handshake => {
            let most = if state.is_stopping() { timeouts.drain.max(LAST_CHANCE) } else { timeouts.header };
            if connection.time_limit == 0 || connection.time_limit > now + most {
                connection.time_limit = now + most;
            }
            connection.time_limit
        }
        // `streams.rs` sets that of a connection with streams.
        Phase::LongPoll | Phase::WritingBody | Phase::Multiplexed => NEVER,
        Phase::Serving if in_body => connection.request.buffers.as_mut().map_or(now, |buffers| {
            if let Some(body) = &mut buffers.body {
                buffers.throughput.note(body.received(), now);
                body.rest();
            }
            buffers.read_buffer.shrink();
            let is_held = connection.socket.transport.stream().is_some_and(StreamSocket::is_held);
            let deadline = buffers.throughput.deadline(timeouts.body_rate());
            if is_held { deadline.min(now + HELD_FOR) } else { deadline }
        }),
        // However slowly its bytes arrive, the head must be complete in time.
        Phase::Serving if is_mid_message => {
            if connection.time_limit == 0 {
                connection.time_limit = now + timeouts.header;
            }
            connection.time_limit
        }
        // A request may be under way.
        Phase::Serving if state.is_stopping() => match state.is_overdue() {
            true => return close_gracefully(state, connection),
            false if connection.request.served == 0 => now + timeouts.drain.max(LAST_CHANCE),
            false => now + timeouts.drain,
        },
        Phase::Serving if connection.request.served == 0 => now + timeouts.header,
        Phase::Serving => now + timeouts.keepalive,
    };
    // Its socket may not be empty yet: no new edge would report the rest.
    let reads = matches!(connection.phase(), Phase::Serving | Phase::Handshake | Phase::Lingering);
    let more = reads && connection.is_readable();
    put_back::put_back(state, connection, deadline, if more { Again::InTurn } else { Again::No });
}
