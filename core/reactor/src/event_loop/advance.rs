//! Advances a connection: from received bytes to a complete request, or to its end.

use std::io;
use std::sync::Arc;

use crate::connection::body::incoming::IncomingBody;
use crate::connection::body::throughput::Throughput;
use crate::connection::send_queue::Flushed;
use crate::connection::state::{After, Phase, PhaseEvent};
use crate::connection::transport::tls::TlsSocket;
use crate::connection::{Connection, NO_MEMORY, Received};
use crate::event_loop::{handshake, streamed_bodies};
use crate::exchange::{Exchange, long_poll};
use crate::handlers::static_files::Outcome;
use crate::handlers::{client_abort, health, https_redirect, queue_timeout, static_files};
use crate::limits::RECEIVED_AT_ONCE;
use crate::log::error::Level;
use crate::scheduler::connections::Again;
use crate::scheduler::state::State;
use crate::scheduler::{poll, put_back, release, stop};
use crate::sys::Errno;
use crate::sys::clock::{self, NEVER};
use crate::sys::socket::Transport;
use crate::telemetry::timing;
use poorhttp_http::{Event, Reject};

/// Outcome of reading a request.
pub(super) enum Step {
    /// A request is complete.
    Request,
    /// More input or another event is needed.
    Wait,
    /// To be answered with this error, and closed.
    Refuse(Reject),
    /// To be refused because the body cannot be stored.
    NoRoom(io::Error),
    Close,
}

/// Outcome of [`advance`].
#[expect(clippy::large_enum_variant, reason = "moved on at once; a box would be an allocation for each request")]
pub(crate) enum Advanced {
    /// A request for the application.
    Request(Exchange),
    /// No request: it was answered here, waits for more, or is closed.
    Nothing,
    /// To be advanced again by a caller that may wait for the file system.
    NeedsBlockingIo,
}

/// Advances a connection until it carries a request for the application, is put back, or is closed. `arrived`: earliest time
/// at which its events can have arrived.
#[inline]
pub(crate) fn advance(state: &Arc<State>, mut connection: Box<Connection>, arrived: u64, may_wait: bool) -> Advanced {
    if connection.phase() != Phase::Serving || connection.has_expired() {
        match resume(state, connection) {
            Some(resumed) => connection = resumed,
            None => return Advanced::Nothing,
        }
    }
    if let Some(fd_handoff) = &state.running.fd_handoff
        && state.shutdown.passes_connections()
    {
        match stop::pass_on(state, connection, fd_handoff) {
            Some(kept) => connection = kept,
            None => return Advanced::Nothing,
        }
    }
    if state.receiving.raw_tcp {
        return Advanced::Request(Exchange::new(Arc::clone(state), connection, state.next_number(), false));
    }
    match read_request(state, &mut connection) {
        Step::Request => {
            if let Some(prefix) = &state.handling.health {
                match health::answer(state, connection, prefix) {
                    Some(back) => connection = back,
                    None => return Advanced::Nothing,
                }
            }
            if let Some(port) = state.handling.https_redirect {
                match https_redirect::answer(state, connection, port) {
                    Some(back) => connection = back,
                    None => return Advanced::Nothing,
                }
            }
            if state.handling.routes.is_some() {
                match static_files::answer(state, connection, may_wait) {
                    Outcome::NotStatic(back) => connection = back,
                    Outcome::Answered => return Advanced::Nothing,
                    Outcome::NeedsBlockingIo(back) => {
                        put_back::put_back(state, back, NEVER, Again::AtOnce);
                        return Advanced::NeedsBlockingIo;
                    }
                }
            }
            if connection.has_hung_up() || state.queue_time.has_waited_since(arrived) {
                let remaining = client_abort::drop_if_aborted(state, connection, arrived)
                    .and_then(|back| queue_timeout::refuse_if_late(state, back, arrived));
                match remaining {
                    Some(back) => connection = back,
                    None => return Advanced::Nothing,
                }
            } else {
                state.queue_timeout.note_prompt();
            }
            let caches_head = connection.request.cache_head(&state.cached_heads);
            let number = state.next_number();
            let asks_server = connection.request.head().is_some_and(|(head, bytes)| head.path().of(bytes) == b"*");
            if !asks_server {
                return Advanced::Request(Exchange::new(Arc::clone(state), connection, number, caches_head));
            }
            answer_options(Exchange::new(Arc::clone(state), connection, number, caches_head));
        }
        Step::Wait => release::wait_for_more(state, connection),
        Step::Refuse(reject) => release::refuse(state, connection, reject),
        Step::NoRoom(error) => refuse_body(state, connection, &error),
        Step::Close if connection.socket.transport.tls().is_some_and(TlsSocket::has_failed) => {
            release::linger(state, connection);
        }
        Step::Close => put_back::close(state, connection),
    }
    Advanced::Nothing
}

/// Receives until a request is complete, no more input is there, or other connections have their turn.
#[inline]
fn read_request(state: &State, connection: &mut Connection) -> Step {
    if connection.request.awaits_proxy_header()
        && let Some(step) = receive_proxy_header(state, connection)
    {
        return step;
    }
    let mut received = 0;
    loop {
        let buffers = connection.request.buffers.get_or_insert_default();
        match connection.request.parser.poll(&mut buffers.read_buffer, &state.receiving.limits) {
            Event::Complete => {
                return match &buffers.body {
                    Some(body) if body.is_unwritten() => write_body(state, connection),
                    _ => Step::Request,
                };
            }
            Event::Head => {
                if buffers.read_buffer.head.gateway.is_some() {
                    connection.request.set_gateway_peer(state.receiving.trust.as_ref());
                }
                if connection.request.may_be_forwarded()
                    && let Err(reject) = connection.request.read_forwarded_info(state.receiving.trust.as_ref())
                {
                    return Step::Refuse(reject);
                }
                if let Some((head, _)) = connection.request.head()
                    && connection.socket.transport.tls().is_none()
                    && let Err(reject) = head.check_scheme(connection.request.origin())
                {
                    return Step::Refuse(reject);
                }
                let buffers = connection.request.buffers.get_or_insert_default();
                let length = buffers.read_buffer.head.body_length();
                // A FastCGI body ends by a record of its own even if it is empty.
                if length != Some(0) || connection.request.parser.is_in_body() {
                    let is_certain =
                        length.is_some_and(|length| length > 0) || buffers.read_buffer.head.gateway.is_none();
                    if is_certain && let Some(reject) = static_files::refuses_body(state, &connection.request) {
                        return Step::Refuse(reject);
                    }
                    if state.handling.streamed_bodies.is_some() && streamed_bodies::begin(state, connection) {
                        return Step::Request;
                    }
                    let buffers = connection.request.buffers.get_or_insert_default();
                    buffers.body = Some(Box::new(IncomingBody::new(&state.body_spool)));
                    buffers.throughput = Throughput::begin(clock::now());
                    if buffers.read_buffer.head.expects_continue && buffers.read_buffer.is_drained() {
                        buffers.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    }
                }
            }
            Event::Content(content) => {
                if let Some(body) = &mut buffers.body
                    && let Err(error) = body.append(content)
                {
                    return Step::NoRoom(error);
                }
            }
            Event::ManagementReply(answer) => buffers.out.extend_from_slice(&answer),
            Event::Rejected(reject) => return Step::Refuse(reject),
            Event::NeedMore => {
                if !buffers.out.is_empty() {
                    if connection.transmit(&[]).is_err() {
                        return Step::Close;
                    }
                    state.log_sent(connection);
                }
                if connection.is_behind() {
                    connection.transition(PhaseEvent::QueueFull(After::Next));
                    return Step::Wait;
                }
                if !connection.is_readable() {
                    return Step::Wait;
                }
                if received >= RECEIVED_AT_ONCE {
                    poll::note_long_turn(state);
                    return Step::Wait;
                }
                let expected = connection.request.parser.expected();
                if let Some(body) = connection.request.buffers().body.as_mut()
                    && body.must_be_written(expected)
                {
                    return write_body(state, connection);
                }
                match connection.receive(RECEIVED_AT_ONCE - received) {
                    Received::Something(bytes) => received += bytes,
                    Received::NothingYet => return Step::Wait,
                    Received::NoMemory => return Step::Refuse(NO_MEMORY),
                    Received::End => return on_eof(state, connection),
                }
            }
        }
    }
}

/// Logs that the client has disconnected in the middle of a request.
#[cold]
fn on_eof(state: &State, connection: &Connection) -> Step {
    if connection.request.is_mid_message() {
        let name = state.telemetry.request_name(state.next_number(), connection);
        state.log_about(Level::Info, &name, "the client left in the middle of it");
    }
    Step::Close
}

/// Advances a connection that is not in [`Phase::Serving`], or whose deadline has passed. `None`: there is nothing more to
/// do for now.
#[cold]
fn resume(state: &State, mut connection: Box<Connection>) -> Option<Box<Connection>> {
    let expired = connection.take_expired();
    match connection.phase() {
        Phase::Refused(reject) => {
            connection.transition(PhaseEvent::AnswerRefusal);
            release::refuse(state, connection, reject);
        }
        Phase::Sending(after) => match connection.flush() {
            Flushed::Broken => {
                let lost = connection.fault();
                release::cut_short(state, connection, lost);
            }
            Flushed::Blocked | Flushed::Paused => {
                state.log_sent(&mut connection);
                match connection.socket.slow_reader_deadline(state.timeouts.response_rate()) {
                    Some(deadline) if !expired || !state.is_overdue() => {
                        put_back::put_back(state, connection, deadline, Again::No);
                    }
                    _ => {
                        let name = state.telemetry.last_request_name(&connection);
                        state.log_about(Level::Info, &name, "the client does not read its response");
                        connection.socket.transport.reset_on_close();
                        put_back::close(state, connection);
                    }
                }
            }
            Flushed::Everything => {
                connection.transition(PhaseEvent::AllSent);
                if state.takes_times() {
                    timing::end_wait(&state.telemetry, &mut connection);
                    let now = clock::precise_us();
                    let finished = timing::finished(&state.telemetry, &mut connection, now, false);
                    let shared = state.lock();
                    timing::count(&state.telemetry, shared.connections.ready(), &mut connection, now, false, finished);
                }
                state.log_sent(&mut connection);
                match after {
                    After::Next => return Some(connection),
                    After::Close => release::close_gracefully(state, connection),
                    After::Linger => release::linger(state, connection),
                }
            }
        },
        Phase::Lingering => match expired || (release::has_finished(&mut connection) && connection.discard()) {
            true => put_back::close(state, connection),
            false => release::wait_for_more(state, connection),
        },
        Phase::Handshake => return handshake::advance(state, connection, expired),
        Phase::WritingBody => return resume_body(state, connection),
        Phase::LongPoll => long_poll::continue_long_poll(state, connection),
        Phase::Serving if state.is_overdue() => give_up(state, connection),
        // The rest of the request may have arrived just now, before the poller has reported it.
        Phase::Serving => {
            let received = connection.receive(RECEIVED_AT_ONCE);
            connection.note(matches!(received, Received::End | Received::NoMemory), false, false);
            if received != Received::NothingYet {
                return Some(connection);
            }
            match connection.request.is_mid_message() && keeps_up(state, &mut connection) {
                true => release::wait_for_more(state, connection),
                false => give_up(state, connection),
            }
        }
    }
    None
}

/// Ends a connection whose time is over.
fn give_up(state: &State, connection: Box<Connection>) {
    match connection.request.is_mid_message() {
        true => release::refuse(state, connection, Reject { status: 408, reason: "the request did not come in time" }),
        false => release::close_gracefully(state, connection),
    }
}

/// Whether a client whose deadline has passed sends its body as fast as it should.
fn keeps_up(state: &State, connection: &mut Connection) -> bool {
    let in_body = connection.request.parser.is_in_body();
    let minimum = state.timeouts.body_rate();
    in_body
        && connection
            .request
            .buffers
            .as_mut()
            .is_some_and(|buffers| !buffers.throughput.is_too_slow(clock::now(), minimum))
}

/// Refuses a request whose body cannot be stored.
#[cold]
fn refuse_body(state: &State, mut connection: Box<Connection>, error: &io::Error) {
    let is_early = connection.request.buffers().body.as_ref().is_some_and(|body| body.is_early());
    let reject = match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN) => NO_MEMORY,
        // It was written only for want of memory.
        _ if is_early => NO_MEMORY,
        _ => Reject { status: 507, reason: "no room for the body" },
    };
    let name = state.telemetry.request_name(state.next_number(), &connection);
    let message = format!("refused with {}, a request body cannot be stored: {error}", reject.status);
    state.log_about(Level::Error, &name, &message);
    release::answer_refused(state, connection, reject, &name);
}

/// Receives a PROXY protocol header. `None`: it is complete.
#[cold]
pub(super) fn receive_proxy_header(state: &State, connection: &mut Connection) -> Option<Step> {
    loop {
        let buffers = connection.request.buffers.get_or_insert_default();
        match buffers.read_buffer.take_proxy_header() {
            Ok(Some(header)) => {
                connection.request.apply_proxy_header(state.receiving.trust.as_ref(), &header);
                // The head gets a time limit of its own.
                connection.time_limit = 0;
                return None;
            }
            Ok(None) if !connection.is_readable() => return Some(Step::Wait),
            Ok(None) => match connection.receive(RECEIVED_AT_ONCE) {
                Received::Something(_) => {}
                Received::NothingYet => return Some(Step::Wait),
                Received::NoMemory => return Some(Step::Refuse(NO_MEMORY)),
                Received::End => return Some(on_eof(state, connection)),
            },
            Err(reject) => return Some(Step::Refuse(reject)),
        }
    }
}

/// Gives the received part of a body to the thread that writes it. The connection is advanced again when that is done.
#[cold]
fn write_body(state: &State, connection: &mut Connection) -> Step {
    let (index, generation) = connection.slot();
    let Some(body) = &mut connection.request.buffers().body else { return Step::Wait };
    let job = body.write(index, generation);
    poll::note_long_turn(state);
    match state.body_spool.push(job) {
        Ok(()) => {
            connection.transition(PhaseEvent::WriteBody);
            Step::Wait
        }
        Err(error) => Step::NoRoom(error),
    }
}

/// Advances a connection of whose body a part was written. `None`: there is nothing more to do for now.
#[cold]
fn resume_body(state: &State, mut connection: Box<Connection>) -> Option<Box<Connection>> {
    let buffers = connection.request.buffers();
    let Some(written) = buffers.body.as_mut().and_then(|body| body.take_written()) else {
        if state.is_overdue() {
            put_back::close(state, connection);
        } else {
            put_back::put_back(state, connection, NEVER, Again::No);
        }
        return None;
    };
    if let Ok(lasted) = written {
        // The disk was slow, not the client.
        buffers.throughput.pause(lasted);
    }
    connection.transition(PhaseEvent::BodyWritten);
    state.lock().connections.clear_expired(connection.slot().0);
    match written {
        Ok(_) => Some(connection),
        Err(error) => {
            refuse_body(state, connection, &error);
            None
        }
    }
}

/// `OPTIONS *` asks the server, not a resource (RFC 9110 section 9.3.7).
#[cold]
fn answer_options(mut exchange: Exchange) {
    let allowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    if exchange.start("204 No Content", |field| field("Allow", allowed)).is_ok() {
        let _ = exchange.end();
    }
}
