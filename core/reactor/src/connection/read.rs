//! Reads a request: receives and parses until it is complete, or the connection waits, is refused or ends.

use std::io;
use std::sync::Arc;

use crate::connection::body::incoming::IncomingBody;
use crate::connection::body::spool::BodySpool;
use crate::connection::body::throughput::Throughput;
use crate::connection::state::{After, PhaseEvent};
use crate::connection::{Connection, NO_MEMORY, Received};
use crate::limits::RECEIVED_AT_ONCE;
use crate::sys::clock;
use poorhttp_http::{Event, Limits, Reject, TrustedProxies};

/// What is to be done with a connection that was read.
#[derive(Debug)]
pub(crate) enum Read {
    /// A request is complete.
    Request(Complete),
    /// A head is complete, and a body follows: it is refused, streamed, or [begun](begin_body); then reading goes on.
    /// `is_certain`: the body is not empty.
    Body { is_certain: bool },
    /// Output was sent, which is to be logged; then reading goes on.
    Sent,
    /// A part of the body is to be written to disk; nothing is received meanwhile.
    WriteBody,
    /// More input or another event is needed. `is_long`: the connection has had a long turn.
    Wait { is_long: bool },
    /// A PROXY protocol header comes before anything else.
    AwaitsProxyHeader,
    /// To be answered with this error, and closed.
    Refuse(Reject),
    /// To be refused because the body cannot be stored.
    NoRoom(io::Error),
    /// The client has left. `is_mid_message`: in the middle of a request.
    End { is_mid_message: bool },
    /// The output cannot be sent.
    Lost,
}

/// What the loop asks about a complete request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Complete {
    /// The peer has closed its side.
    pub(crate) has_hung_up: bool,
    /// It asks the server, not a resource (`OPTIONS *`).
    pub(crate) asks_server: bool,
}

impl Complete {
    pub(crate) fn of(connection: &Connection) -> Self {
        Complete { has_hung_up: connection.has_hung_up(), asks_server: connection.request.asks_server() }
    }
}

/// Receives until a request is complete, no more input is there, or other connections have their turn. `received`: bytes in this
/// turn so far.
#[inline]
pub(crate) fn read(
    connection: &mut Connection,
    limits: &Limits,
    trust: Option<&TrustedProxies>,
    received: &mut usize,
) -> Read {
    if connection.request.awaits_proxy_header() {
        return Read::AwaitsProxyHeader;
    }
    loop {
        let buffers = connection.request.buffers.get_or_insert_default();
        match connection.request.parser.poll(&mut buffers.read_buffer, limits) {
            Event::Complete => {
                return match &buffers.body {
                    Some(body) if body.is_unwritten() => Read::WriteBody,
                    _ => Read::Request(Complete::of(connection)),
                };
            }
            Event::Head => {
                if buffers.read_buffer.head.gateway.is_some() {
                    connection.request.set_gateway_peer(trust);
                }
                if connection.request.may_be_forwarded()
                    && let Err(reject) = connection.request.read_forwarded_info(trust)
                {
                    return Read::Refuse(reject);
                }
                if let Some((head, _)) = connection.request.head()
                    && !connection.request.over_tls
                    && let Err(reject) = head.check_scheme(connection.request.origin())
                {
                    return Read::Refuse(reject);
                }
                let buffers = connection.request.buffers.get_or_insert_default();
                let length = buffers.read_buffer.head.body_length();
                // A FastCGI body ends by a record of its own even if it is empty.
                if length != Some(0) || connection.request.parser.is_in_body() {
                    let is_certain =
                        length.is_some_and(|length| length > 0) || buffers.read_buffer.head.gateway.is_none();
                    return Read::Body { is_certain };
                }
                return Read::Request(Complete::of(connection));
            }
            Event::Content(content) => {
                if let Some(body) = &mut buffers.body
                    && let Err(error) = body.append(content)
                {
                    return Read::NoRoom(error);
                }
            }
            Event::ManagementReply(answer) => buffers.out.extend_from_slice(&answer),
            Event::Rejected(reject) => return Read::Refuse(reject),
            Event::NeedMore => {
                if !buffers.out.is_empty() {
                    return if connection.transmit(&[]).is_err() { Read::Lost } else { Read::Sent };
                }
                if connection.is_behind() {
                    connection.transition(PhaseEvent::QueueFull(After::Next));
                    return Read::Wait { is_long: false };
                }
                if !connection.is_readable() {
                    if connection.is_stream() {
                        connection.lend_room();
                    }
                    return Read::Wait { is_long: false };
                }
                if *received >= RECEIVED_AT_ONCE {
                    return Read::Wait { is_long: true };
                }
                if let Some(body) = connection.request.buffers.as_mut().and_then(|buffers| buffers.body.as_mut()) {
                    let expected = connection.request.parser.expected();
                    let allowed = connection.socket.transport.stream().map_or(expected, |stream| stream.allowed());
                    if body.must_be_written(expected, allowed) {
                        return Read::WriteBody;
                    }
                }
                match connection.receive(RECEIVED_AT_ONCE - *received) {
                    Received::Something(bytes) => *received += bytes,
                    Received::NothingYet => return Read::Wait { is_long: false },
                    Received::NoMemory => return Read::Refuse(NO_MEMORY),
                    Received::End => match connection.end_of_stream() {
                        Some(Ok(())) => {}
                        Some(Err(reject)) => return Read::Refuse(reject),
                        None => return Read::End { is_mid_message: connection.request.is_mid_message() },
                    },
                }
            }
        }
    }
}

/// Makes room for the body of the request whose head is complete.
pub(crate) fn begin_body(connection: &mut Connection, body_spool: &Arc<BodySpool>) {
    let buffers = connection.request.buffers();
    buffers.body = Some(Box::new(IncomingBody::new(body_spool)));
    buffers.throughput = Throughput::begin(clock::now());
    // A client that knows the length sends all of it without waiting, as long as there is memory for it.
    if buffers.read_buffer.head.body_length().is_some()
        && !body_spool.is_exceeded()
        && let Some(stream) = connection.socket.transport.stream()
    {
        stream.widen();
    }
    if buffers.read_buffer.head.expects_continue && buffers.read_buffer.is_drained() {
        buffers.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
    }
}

/// Receives a PROXY protocol header. `None`: it is complete.
#[cold]
pub(crate) fn read_proxy_header(connection: &mut Connection, trust: Option<&TrustedProxies>) -> Option<Read> {
    loop {
        let buffers = connection.request.buffers.get_or_insert_default();
        match buffers.read_buffer.take_proxy_header() {
            Ok(Some(header)) => {
                connection.request.apply_proxy_header(trust, &header);
                // The head gets a time limit of its own.
                connection.time_limit = 0;
                return None;
            }
            Ok(None) if !connection.is_readable() => return Some(Read::Wait { is_long: false }),
            Ok(None) => match connection.receive(RECEIVED_AT_ONCE) {
                Received::Something(_) => {}
                Received::NothingYet => return Some(Read::Wait { is_long: false }),
                Received::NoMemory => return Some(Read::Refuse(NO_MEMORY)),
                Received::End => {
                    return Some(Read::End { is_mid_message: connection.request.is_mid_message() });
                }
            },
            Err(reject) => return Some(Read::Refuse(reject)),
        }
    }
}
