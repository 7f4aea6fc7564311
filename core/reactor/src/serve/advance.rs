//! Advances a connection: from received bytes to a complete request, or to its end.

use std::io;
use std::sync::Arc;

use crate::connection::body::incoming::IncomingBody;
use crate::connection::body::throughput::Throughput;
use crate::connection::send_queue::Flushed;
use crate::connection::state::{After, Phase, PhaseEvent};
use crate::connection::transport::tls::TlsSocket;
use crate::connection::{Connection, NO_MEMORY, Received};
use crate::event_loop::connections::Again;
use crate::event_loop::finish::{last_request_name, request_name};
use crate::event_loop::reactor::Reactor;
use crate::event_loop::{finish, logging, measuring, poll, ready_queue, shutdown};
use crate::exchange::{Exchange, long_poll};
use crate::handlers::static_files::Outcome;
use crate::handlers::{client_abort, health, https_redirect, queue_timeout, static_files};
use crate::limits::RECEIVED_AT_ONCE;
use crate::log::error::Level;
use crate::serve::{handshake, streamed_bodies};
use crate::sys::Errno;
use crate::sys::clock::{self, NEVER};
use crate::sys::socket::Transport;
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
pub(crate) fn advance(
    reactor: &Arc<Reactor>,
    mut connection: Box<Connection>,
    arrived: u64,
    may_wait: bool,
) -> Advanced {
    if connection.phase() != Phase::Serving || connection.has_expired() {
        match resume(reactor, connection) {
            Some(resumed) => connection = resumed,
            None => return Advanced::Nothing,
        }
    }
    if let Some(fd_handoff) = &reactor.options.fd_handoff
        && reactor.shutdown.passes_connections()
    {
        match shutdown::pass_on(reactor, connection, fd_handoff) {
            Some(kept) => connection = kept,
            None => return Advanced::Nothing,
        }
    }
    if reactor.options.raw_tcp {
        return Advanced::Request(Exchange::new(Arc::clone(reactor), connection, reactor.next_number(), false));
    }
    match read_request(reactor, &mut connection) {
        Step::Request => {
            if let Some(prefix) = &reactor.options.health {
                match health::answer(reactor, connection, prefix) {
                    Some(back) => connection = back,
                    None => return Advanced::Nothing,
                }
            }
            if let Some(port) = reactor.options.https_redirect {
                match https_redirect::answer(reactor, connection, port) {
                    Some(back) => connection = back,
                    None => return Advanced::Nothing,
                }
            }
            if reactor.options.routes.is_some() {
                match static_files::answer(reactor, connection, may_wait) {
                    Outcome::NotStatic(back) => connection = back,
                    Outcome::Answered => return Advanced::Nothing,
                    Outcome::NeedsBlockingIo(back) => {
                        ready_queue::put_back(reactor, back, NEVER, Again::AtOnce);
                        return Advanced::NeedsBlockingIo;
                    }
                }
            }
            if connection.has_hung_up() || reactor.queue_time.has_waited_since(arrived) {
                let remaining = client_abort::drop_if_aborted(reactor, connection, arrived)
                    .and_then(|back| queue_timeout::refuse_if_late(reactor, back, arrived));
                match remaining {
                    Some(back) => connection = back,
                    None => return Advanced::Nothing,
                }
            } else {
                reactor.queue_timeout.note_prompt();
            }
            let caches_head = connection.request.cache_head(&reactor.cached_heads);
            let number = reactor.next_number();
            let asks_server = connection.request.head().is_some_and(|(head, bytes)| head.path().of(bytes) == b"*");
            if !asks_server {
                return Advanced::Request(Exchange::new(Arc::clone(reactor), connection, number, caches_head));
            }
            answer_options(Exchange::new(Arc::clone(reactor), connection, number, caches_head));
        }
        Step::Wait => finish::wait_for_more(reactor, connection),
        Step::Refuse(reject) => finish::refuse(reactor, connection, reject),
        Step::NoRoom(error) => refuse_body(reactor, connection, &error),
        Step::Close if connection.socket.transport.tls().is_some_and(TlsSocket::has_failed) => {
            finish::linger(reactor, connection);
        }
        Step::Close => ready_queue::close(reactor, connection),
    }
    Advanced::Nothing
}

/// Receives until a request is complete, no more input is there, or other connections have their turn.
#[inline]
fn read_request(reactor: &Reactor, connection: &mut Connection) -> Step {
    if connection.request.awaits_proxy_header()
        && let Some(step) = receive_proxy_header(reactor, connection)
    {
        return step;
    }
    let mut received = 0;
    loop {
        let buffers = connection.request.buffers.get_or_insert_default();
        match connection.request.parser.poll(&mut buffers.read_buffer, &reactor.options.limits) {
            Event::Complete => {
                return match &buffers.body {
                    Some(body) if body.is_unwritten() => write_body(reactor, connection),
                    _ => Step::Request,
                };
            }
            Event::Head => {
                if buffers.read_buffer.head.gateway.is_some() {
                    connection.request.set_gateway_peer(reactor.options.trust.as_ref());
                }
                if connection.request.may_be_forwarded()
                    && let Err(reject) = connection.request.read_forwarded_info(reactor.options.trust.as_ref())
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
                    if is_certain && let Some(reject) = static_files::refuses_body(reactor, &connection.request) {
                        return Step::Refuse(reject);
                    }
                    if reactor.options.streamed_bodies.is_some() && streamed_bodies::begin(reactor, connection) {
                        return Step::Request;
                    }
                    let buffers = connection.request.buffers.get_or_insert_default();
                    buffers.body = Some(Box::new(IncomingBody::new(&reactor.body_spool)));
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
                    logging::log_sent(reactor, connection);
                }
                if connection.is_behind() {
                    connection.transition(PhaseEvent::QueueFull(After::Next));
                    return Step::Wait;
                }
                if !connection.is_readable() {
                    return Step::Wait;
                }
                if received >= RECEIVED_AT_ONCE {
                    poll::note_long_turn(reactor);
                    return Step::Wait;
                }
                let expected = connection.request.parser.expected();
                if let Some(body) = connection.request.buffers().body.as_mut()
                    && body.must_be_written(expected)
                {
                    return write_body(reactor, connection);
                }
                match connection.receive(RECEIVED_AT_ONCE - received) {
                    Received::Something(bytes) => received += bytes,
                    Received::NothingYet => return Step::Wait,
                    Received::NoMemory => return Step::Refuse(NO_MEMORY),
                    Received::End => return on_eof(reactor, connection),
                }
            }
        }
    }
}

/// Logs that the client has disconnected in the middle of a request.
#[cold]
fn on_eof(reactor: &Reactor, connection: &Connection) -> Step {
    if connection.request.is_mid_message() {
        let name = request_name(reactor, reactor.next_number(), connection);
        reactor.log_about(Level::Info, &name, "the client left in the middle of it");
    }
    Step::Close
}

/// Advances a connection that is not in [`Phase::Serving`], or whose deadline has passed. `None`: there is nothing more to
/// do for now.
#[cold]
fn resume(reactor: &Reactor, mut connection: Box<Connection>) -> Option<Box<Connection>> {
    let expired = connection.take_expired();
    match connection.phase() {
        Phase::Refused(reject) => {
            connection.transition(PhaseEvent::AnswerRefusal);
            finish::refuse(reactor, connection, reject);
        }
        Phase::Sending(after) => match connection.flush() {
            Flushed::Broken => {
                let lost = connection.fault();
                finish::cut_short(reactor, connection, lost);
            }
            Flushed::Blocked | Flushed::Paused => {
                logging::log_sent(reactor, &mut connection);
                match connection.socket.slow_reader_deadline(reactor.options.timeouts.response_rate()) {
                    Some(deadline) if !expired || !reactor.is_overdue() => {
                        ready_queue::put_back(reactor, connection, deadline, Again::No);
                    }
                    _ => {
                        let name = last_request_name(reactor, &connection);
                        reactor.log_about(Level::Info, &name, "the client does not read its response");
                        connection.socket.transport.reset_on_close();
                        ready_queue::close(reactor, connection);
                    }
                }
            }
            Flushed::Everything => {
                connection.transition(PhaseEvent::AllSent);
                if reactor.takes_times() {
                    measuring::end_wait(reactor, &mut connection);
                    let now = clock::precise_us();
                    let finished = measuring::finished(reactor, &mut connection, now, false);
                    measuring::count(reactor, &mut reactor.lock(), &mut connection, now, false, finished);
                }
                logging::log_sent(reactor, &mut connection);
                match after {
                    After::Next => return Some(connection),
                    After::Close => finish::close_gracefully(reactor, connection),
                    After::Linger => finish::linger(reactor, connection),
                }
            }
        },
        Phase::Lingering => match expired || (finish::has_finished(&mut connection) && connection.discard()) {
            true => ready_queue::close(reactor, connection),
            false => finish::wait_for_more(reactor, connection),
        },
        Phase::Handshake => return handshake::advance(reactor, connection, expired),
        Phase::WritingBody => return resume_body(reactor, connection),
        Phase::LongPoll => long_poll::continue_long_poll(reactor, connection),
        Phase::Serving if reactor.is_overdue() => give_up(reactor, connection),
        // The rest of the request may have arrived just now, before the poller has reported it.
        Phase::Serving => {
            let received = connection.receive(RECEIVED_AT_ONCE);
            connection.note(matches!(received, Received::End | Received::NoMemory), false, false);
            if received != Received::NothingYet {
                return Some(connection);
            }
            match connection.request.is_mid_message() && keeps_up(reactor, &mut connection) {
                true => finish::wait_for_more(reactor, connection),
                false => give_up(reactor, connection),
            }
        }
    }
    None
}

/// Ends a connection whose time is over.
fn give_up(reactor: &Reactor, connection: Box<Connection>) {
    match connection.request.is_mid_message() {
        true => finish::refuse(reactor, connection, Reject { status: 408, reason: "the request did not come in time" }),
        false => finish::close_gracefully(reactor, connection),
    }
}

/// Whether a client whose deadline has passed sends its body as fast as it should.
fn keeps_up(reactor: &Reactor, connection: &mut Connection) -> bool {
    let in_body = connection.request.parser.is_in_body();
    let minimum = reactor.options.timeouts.body_rate();
    in_body
        && connection
            .request
            .buffers
            .as_mut()
            .is_some_and(|buffers| !buffers.throughput.is_too_slow(clock::now(), minimum))
}

/// Refuses a request whose body cannot be stored.
#[cold]
fn refuse_body(reactor: &Reactor, mut connection: Box<Connection>, error: &io::Error) {
    let is_early = connection.request.buffers().body.as_ref().is_some_and(|body| body.is_early());
    let reject = match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN) => NO_MEMORY,
        // It was written only for want of memory.
        _ if is_early => NO_MEMORY,
        _ => Reject { status: 507, reason: "no room for the body" },
    };
    let name = request_name(reactor, reactor.next_number(), &connection);
    let message = format!("refused with {}, a request body cannot be stored: {error}", reject.status);
    reactor.log_about(Level::Error, &name, &message);
    finish::answer_refused(reactor, connection, reject, &name);
}

/// Receives a PROXY protocol header. `None`: it is complete.
#[cold]
pub(super) fn receive_proxy_header(reactor: &Reactor, connection: &mut Connection) -> Option<Step> {
    loop {
        let buffers = connection.request.buffers.get_or_insert_default();
        match buffers.read_buffer.take_proxy_header() {
            Ok(Some(header)) => {
                connection.request.apply_proxy_header(reactor.options.trust.as_ref(), &header);
                // The head gets a time limit of its own.
                connection.time_limit = 0;
                return None;
            }
            Ok(None) if !connection.is_readable() => return Some(Step::Wait),
            Ok(None) => match connection.receive(RECEIVED_AT_ONCE) {
                Received::Something(_) => {}
                Received::NothingYet => return Some(Step::Wait),
                Received::NoMemory => return Some(Step::Refuse(NO_MEMORY)),
                Received::End => return Some(on_eof(reactor, connection)),
            },
            Err(reject) => return Some(Step::Refuse(reject)),
        }
    }
}

/// Gives the received part of a body to the thread that writes it. The connection is advanced again when that is done.
#[cold]
fn write_body(reactor: &Reactor, connection: &mut Connection) -> Step {
    let (index, generation) = connection.slot();
    let Some(body) = &mut connection.request.buffers().body else { return Step::Wait };
    let job = body.write(index, generation);
    poll::note_long_turn(reactor);
    match reactor.body_spool.push(job) {
        Ok(()) => {
            connection.transition(PhaseEvent::WriteBody);
            Step::Wait
        }
        Err(error) => Step::NoRoom(error),
    }
}

/// Advances a connection of whose body a part was written. `None`: there is nothing more to do for now.
#[cold]
fn resume_body(reactor: &Reactor, mut connection: Box<Connection>) -> Option<Box<Connection>> {
    let buffers = connection.request.buffers();
    let Some(written) = buffers.body.as_mut().and_then(|body| body.take_written()) else {
        if reactor.is_overdue() {
            ready_queue::close(reactor, connection);
        } else {
            ready_queue::put_back(reactor, connection, NEVER, Again::No);
        }
        return None;
    };
    if let Ok(lasted) = written {
        // The disk was slow, not the client.
        buffers.throughput.pause(lasted);
    }
    connection.transition(PhaseEvent::BodyWritten);
    reactor.lock().connections.clear_expired(connection.slot().0);
    match written {
        Ok(_) => Some(connection),
        Err(error) => {
            refuse_body(reactor, connection, &error);
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
