//! Advances a connection: from received bytes to a complete request, or to its end.

use std::io;
use std::sync::Arc;

use crate::connection::body::throughput::MinimumRate;
use crate::connection::read::{self, Complete, Read};
use crate::connection::send_queue::Flushed;
use crate::connection::state::{After, Phase, PhaseEvent};
use crate::connection::stream_protocol::Negotiation;
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
use crate::scheduler::{poll, put_back, release, stop, streams};
use crate::sys::Errno;
use crate::sys::clock::{self, NEVER};
use crate::sys::socket::Transport;
use crate::telemetry::timing;
use poorhttp_http::Reject;

/// Outcome of reading a request.
pub(super) enum Step {
    /// A request is complete.
    Request(Complete),
    /// More input or another event is needed.
    Wait,
    /// To be answered with this error, and closed.
    Refuse(Reject),
    /// To be refused because the body cannot be stored.
    NoRoom(io::Error),
    /// Its requests come on streams from now on.
    Streams,
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
        Step::Request(complete) => {
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
            if complete.has_hung_up || state.queue_time.has_waited_since(arrived) {
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
            if !complete.asks_server {
                return Advanced::Request(Exchange::new(Arc::clone(state), connection, number, caches_head));
            }
            answer_options(Exchange::new(Arc::clone(state), connection, number, caches_head));
        }
        Step::Wait => release::wait_for_more(state, connection),
        Step::Streams => {
            connection.transition(PhaseEvent::BeginStreams);
            streams::advance(state, connection);
        }
        Step::Refuse(reject) => release::refuse(state, connection, reject),
        Step::NoRoom(error) => refuse_body(state, connection, &error),
        Step::Close if connection.socket.transport.tls().is_some_and(TlsSocket::has_failed) => {
            release::linger(state, connection);
        }
        Step::Close => put_back::close(state, connection),
    }
    Advanced::Nothing
}

/// Reads until a request is complete, no more input is there, or other connections have their turn.
#[inline]
fn read_request(state: &State, connection: &mut Connection) -> Step {
    let (limits, trust, mut received) = (&state.receiving.limits, state.receiving.trust.as_ref(), 0);
    loop {
        let read = read::read(connection, limits, trust, &mut received);
        if let Read::Request(complete) = read {
            return Step::Request(complete);
        }
        if let Some(step) = act(state, connection, read) {
            return step;
        }
    }
}

/// Does what is to be done with a connection that was read. `None`: reading goes on.
#[cold]
fn act(state: &State, connection: &mut Connection, read: Read) -> Option<Step> {
    match read {
        Read::Request(complete) => return Some(Step::Request(complete)),
        Read::AwaitsProxyHeader => {
            let step = receive_proxy_header(state, connection);
            return step.or_else(|| (connection.negotiation == Negotiation::Always).then_some(Step::Streams));
        }
        Read::Body { is_certain } => {
            if is_certain && let Some(reject) = static_files::refuses_body(&state.handling, &connection.request) {
                return Some(Step::Refuse(reject));
            }
            if state.handling.streamed_bodies.is_some() && streamed_bodies::begin(state, connection) {
                return Some(Step::Request(Complete::of(connection)));
            }
            read::begin_body(connection, &state.body_spool);
        }
        Read::Sent => state.log_sent(connection),
        Read::WriteBody => return Some(write_body(state, connection)),
        Read::Wait { is_long } => {
            if is_long {
                poll::note_long_turn(state);
            }
            return Some(Step::Wait);
        }
        Read::Refuse(reject) => return Some(streams_or_refusal(state, connection, reject)),
        Read::NoRoom(error) => return Some(Step::NoRoom(error)),
        Read::End { is_mid_message } => {
            if is_mid_message {
                let name = state.telemetry.request_name(state.next_number(), connection);
                state.log_about(connection.departure_level(), &name, "the client left in the middle of it");
            }
            return Some(Step::Close);
        }
        Read::Lost => return Some(Step::Close),
    }
    None
}

/// The step for a request that is refused: it may be no request, but the preface of a protocol with streams.
#[cold]
fn streams_or_refusal(state: &State, connection: &Connection, reject: Reject) -> Step {
    const UNTRUSTED: &str =
        "HTTP/2 without TLS, which http2 = trusted takes from trusted_proxies and over Unix sockets only";
    let Some(multiplexing) = &state.receiving.multiplexing else { return Step::Refuse(reject) };
    let request = &connection.request;
    let is_first = request.served == 0 && !request.parser.has_skipped_lines();
    if reject.status != 505 || !is_first || !request.unread().starts_with(multiplexing.preface) {
        return Step::Refuse(reject);
    }
    match connection.negotiation {
        Negotiation::Preface => Step::Streams,
        Negotiation::TrustedPreface => Step::Refuse(Reject { reason: UNTRUSTED, ..reject }),
        Negotiation::Never | Negotiation::Always | Negotiation::Tls => Step::Refuse(reject),
    }
}

/// Advances a connection that is not in [`Phase::Serving`], or whose deadline has passed. `None`: there is nothing more to
/// do for now.
#[cold]
fn resume(state: &Arc<State>, mut connection: Box<Connection>) -> Option<Box<Connection>> {
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
            flushed @ (Flushed::Blocked | Flushed::Paused) => {
                if flushed == Flushed::Paused {
                    poll::note_long_turn(state);
                }
                state.log_sent(&mut connection);
                match connection.socket.slow_reader_deadline(state.timeouts.response_rate()) {
                    Some(deadline) if !expired || !state.is_overdue() => {
                        put_back::put_back(state, connection, deadline, Again::No);
                    }
                    _ => {
                        let name = state.telemetry.last_request_name(&connection);
                        state.log_about(Level::Info, &name, "the client does not read its response");
                        connection.socket.transport.reset_on_close();
                        if connection.is_stream() {
                            connection.socket.transport.shut_down();
                        }
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
        Phase::Lingering if expired => release::end_lingering(state, connection),
        Phase::Lingering => match release::has_finished(&mut connection) && connection.discard() {
            true => put_back::close(state, connection),
            false => release::wait_for_more(state, connection),
        },
        Phase::Handshake => return handshake::advance(state, connection, expired),
        Phase::WritingBody => return resume_body(state, connection),
        Phase::LongPoll => long_poll::continue_long_poll(state, connection),
        Phase::Multiplexed => streams::advance(state, connection),
        Phase::Serving if state.is_overdue() => give_up(state, connection),
        // The rest of the request may have arrived just now, before the poller has reported it.
        Phase::Serving => {
            let received = connection.receive(RECEIVED_AT_ONCE);
            connection.note(matches!(received, Received::End | Received::NoMemory), false, false);
            if received != Received::NothingYet {
                return Some(connection);
            }
            note_hold(&mut connection);
            match connection.request.is_mid_message() && keeps_up(&mut connection, state.timeouts.body_rate()) {
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

/// The client could send nothing of its body while that of another stream was received.
fn note_hold(connection: &mut Connection) {
    if let Some(stream) = connection.socket.transport.stream()
        && stream.is_held()
    {
        stream.check_hold();
        if let Some(buffers) = &mut connection.request.buffers {
            buffers.throughput.pause_until(clock::now());
        }
    }
}

/// Whether a client whose deadline has passed sends its body as fast as it should.
fn keeps_up(connection: &mut Connection, minimum: MinimumRate) -> bool {
    let in_body = connection.request.parser.is_in_body();
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
    let read = read::read_proxy_header(connection, state.receiving.trust.as_ref())?;
    act(state, connection, read)
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
    if exchange.start("204 No Content", |out| out.field("Allow", allowed)).is_ok() {
        let _ = exchange.end();
    }
}
