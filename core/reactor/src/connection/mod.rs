//! One client's connection: its socket, what it is doing, and what was received; or one stream of a connection that carries many.
//!
//! ```text
//! state.rs            phase of a connection, and the transitions between phases
//! listener.rs         listening sockets
//! long_polls.rs       responses that stay open, and what they share
//! multiplexed/        a connection with many streams: their states, and the output of all
//! notice.rs           notice that a stream may go on
//! peer_trust.rs       PROXY protocol headers and forwarded fields of trusted peers
//! read.rs             reads a request: receives and parses
//! request.rs          the present request: head, body, peer and trusted proxies, output
//! body/               bodies: receiving, minimum rate, temporary files
//! coalesced.rs        pieces of a response that wait a millisecond for the next one
//! send.rs             sends at once and queues what the socket does not take
//! send_queue.rs       unsent bytes and files of a response, in memory or in a temporary file
//! transport/          the socket: plain, or with TLS
//! shared_socket.rs    socket and send queue, shared with other threads
//! stream_protocol.rs  interface to a protocol with many streams on a connection
//! stream_watch.rs     connections with streams that are watched beside the poller
//! timing.rs           what is measured of a connection, where times are taken
//! ```

pub(crate) mod body;
pub(crate) mod coalesced;
pub(crate) mod listener;
pub(crate) mod long_polls;
pub(crate) mod multiplexed;
pub(crate) mod notice;
pub(crate) mod peer_trust;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod send;
pub(crate) mod send_queue;
pub(crate) mod shared_socket;
pub(crate) mod state;
pub(crate) mod stream_protocol;
pub(crate) mod stream_watch;
pub(crate) mod timing;
pub(crate) mod transport;

use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::connection::body::incoming::DIRECT;
use crate::connection::long_polls::LongPoll;
use crate::connection::multiplexed::Multiplexed;
use crate::connection::multiplexed::streams::InputEnd;
use crate::connection::request::Request;
use crate::connection::shared_socket::SharedSocket;
use crate::connection::state::{Phase, PhaseEvent};
use crate::connection::stream_protocol::Negotiation;
use crate::connection::timing::Timing;
use crate::connection::transport::Socket;
use crate::connection::transport::tls::TlsSocket;
use crate::log::entry::Unsent;
use crate::log::error::Level;
use crate::log::request_id::RequestName;
use crate::sys::poller::{Poller, Source};
use crate::sys::socket::Transport;
use crate::sys::{AsFd, BorrowedFd, Errno};
use poorhttp_http::{ReadBuffer, Reject};

/// Returns the bytes sent on a socket that its peer has not acknowledged; `None`: that cannot be had.
pub(crate) type Unacknowledged = Option<fn(BorrowedFd<'_>) -> Option<u64>>;

/// What carries one request at a time: a connection, or one stream of a connection that carries many ([`Connection::of_stream`]).
/// The thread or exchange that holds the box is its only user.
#[derive(Debug)]
pub(crate) struct Connection {
    index: u32,
    generation: u32,
    pub(crate) socket: Arc<SharedSocket>,
    /// The request that is received or answered.
    pub(crate) request: Request,
    /// Changed by [`Connection::transition`] only.
    phase: Phase,
    /// Something may be there to be received.
    readable: bool,
    /// Registered with the poller.
    registered: bool,
    /// The peer has closed its side, so an end is to be received after the last byte.
    hangup: bool,
    expired: bool,
    /// When the head that is being received must be complete, or lingering must end, however slowly bytes arrive, in
    /// milliseconds of [`crate::sys::clock::now`]. 0: neither has begun.
    pub(crate) time_limit: u64,
    /// The send queue is in use; spares its lock if it is not.
    has_send_queue: bool,
    /// Records of TLS without content wait for the socket.
    owes_records: bool,
    /// Bytes that were coalesced since those that wait were last taken.
    coalesced: u64,
    /// The socket may take more of the send queue, and no event will report that.
    paused: bool,
    /// The application has waited for a notice, so events of the poller are noted in its slot.
    awaited: bool,
    /// The client has sent a request before the response to the one before.
    pub(crate) pipelines: bool,
    /// End of the last request, in milliseconds of [`crate::sys::clock::now`]; 0: there was none.
    pub(crate) last_request_end: u64,
    /// Requests answered since other connections last had their turn.
    pub(crate) answered_in_turn: u32,
    /// Number of the poll that let it in, for [`crate::log::slow`].
    pub(crate) accepted_in_poll: u64,
    /// What is measured of it, where times are taken.
    pub(crate) timing: Option<Box<Timing>>,
    /// Bytes received since they were last counted.
    pub(crate) received: u64,
    /// With `request_id`, name of the last request while its response waits for the client.
    pub(crate) last_name: Option<Box<RequestName>>,
    /// Bytes that the kernel has taken, without those of the send queue.
    taken: u64,
    /// Bytes that were dropped because the connection is lost.
    dropped: u64,
    /// Responses that are in the send queue, for the access log once they have been sent.
    pub(crate) unsent: Vec<Unsent>,
    /// It is a stream, and its socket that of the stream.
    is_stream: bool,
    /// Its streams, in [`Phase::Multiplexed`].
    pub(crate) streams: Option<Arc<Multiplexed>>,
    /// How it may come to have streams.
    pub(crate) negotiation: Negotiation,
    /// The application has got the socket, and may still have it.
    pub(crate) was_upgraded: bool,
    /// The response that stays open, in [`Phase::LongPoll`].
    pub(crate) long_poll: Option<Box<LongPoll>>,
}

/// Outcome of receiving once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Something(usize),
    NothingYet,
    /// There is no memory for a buffer.
    NoMemory,
    /// The peer will send nothing more, or the connection is lost.
    End,
}

/// The refusal of a request for which there is no memory ([`Received::NoMemory`]), or no descriptor.
pub(crate) const NO_MEMORY: Reject = Reject { status: 503, reason: "out of memory or descriptors" };

impl Connection {
    pub(crate) fn new(
        index: u32,
        generation: u32,
        socket: Arc<SharedSocket>,
        listener: u32,
        peer: Option<SocketAddr>,
    ) -> Self {
        Connection {
            index,
            generation,
            socket,
            request: Request::new(listener, peer),
            phase: Phase::Serving,
            // Clients send with the handshake or soon after it: trying is cheaper than asking the poller.
            readable: true,
            registered: false,
            hangup: false,
            expired: false,
            time_limit: 0,
            has_send_queue: false,
            owes_records: false,
            coalesced: 0,
            paused: false,
            awaited: false,
            pipelines: false,
            last_request_end: 0,
            answered_in_turn: 0,
            accepted_in_poll: 0,
            timing: None,
            received: 0,
            last_name: None,
            taken: 0,
            dropped: 0,
            unsent: Vec::new(),
            is_stream: false,
            streams: None,
            negotiation: Negotiation::Never,
            was_upgraded: false,
            long_poll: None,
        }
    }

    /// A stream with this request, in a slot of its own.
    pub(crate) fn of_stream(index: u32, generation: u32, socket: Arc<SharedSocket>, request: Request) -> Self {
        let received = request.received();
        // The poller knows only the connection of the stream, from which events of the stream come.
        Connection {
            request,
            readable: false,
            registered: true,
            is_stream: true,
            received,
            ..Connection::new(index, generation, socket, 0, None)
        }
    }

    /// Whether it is a stream of a connection that carries many.
    #[inline]
    pub(crate) fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// How important it is that its client has left before its request was run: on a connection with streams that costs a client
    /// nothing, and a browser does it whenever a page is left.
    #[cold]
    pub(crate) fn departure_level(&self) -> Level {
        if self.is_stream { Level::Debug } else { Level::Info }
    }

    /// After [`Received::End`]: whether that has completed the request, whose stream the client has ended; or why it is refused.
    /// `None`: the client has left.
    #[cold]
    pub(crate) fn end_of_stream(&mut self) -> Option<Result<(), Reject>> {
        match self.socket.transport.stream()?.input_end()? {
            InputEnd::Complete => self.request.parser.end_content().then_some(Ok(())),
            InputEnd::Refused(reject) => Some(Err(reject)),
            InputEnd::Reset => None,
        }
    }

    /// Index and generation of its slot.
    #[inline]
    pub(crate) fn slot(&self) -> (u32, u32) {
        (self.index, self.generation)
    }

    /// What the connection is doing.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Changes the phase. An event that cannot happen in the present phase is a mistake in this crate: it changes nothing.
    pub(crate) fn transition(&mut self, event: PhaseEvent) {
        match self.phase.next(event) {
            Some(phase) => self.phase = phase,
            None => debug_assert!(false, "{event:?} in {:?}", self.phase),
        }
    }

    /// Notes what has happened since it was put back.
    #[inline]
    pub(crate) fn note(&mut self, readable: bool, hangup: bool, expired: bool) {
        self.readable |= readable;
        self.hangup |= hangup;
        self.expired |= expired;
    }

    /// Whether something may be there to be received.
    #[inline]
    pub(crate) fn is_readable(&self) -> bool {
        self.readable
    }

    #[inline]
    pub(crate) fn has_hung_up(&self) -> bool {
        self.hangup
    }

    #[inline]
    pub(crate) fn has_expired(&self) -> bool {
        self.expired
    }

    pub(crate) fn take_expired(&mut self) -> bool {
        mem::take(&mut self.expired)
    }

    #[inline]
    pub(crate) fn is_registered(&self) -> bool {
        self.registered
    }

    /// Notes whether records wait that belong to no content.
    pub(crate) fn note_records(&mut self, tls: &TlsSocket) {
        self.owes_records = tls.owes_records();
        self.readable = self.hangup || tls.may_have_more(0, 0);
    }

    /// Ends our half of the connection in an orderly way. `false`: an event that the socket is writable must come first.
    pub(crate) fn finish(&mut self) -> bool {
        let has_finished = self.socket.transport.finish();
        self.owes_records = !has_finished;
        has_finished
    }

    /// Whether something waits until the socket is writable.
    #[inline]
    pub(crate) fn waits_to_send(&self) -> bool {
        self.has_send_queue | self.owes_records || self.streams.as_ref().is_some_and(|streams| streams.is_waiting())
    }

    /// The application waits for a notice.
    pub(crate) fn note_awaited(&mut self) {
        self.awaited = true;
    }

    /// Whether the application has waited for a notice since the last call.
    #[inline]
    pub(crate) fn take_awaited(&mut self) -> bool {
        self.awaited && mem::take(&mut self.awaited)
    }

    /// The application waits for no notice any more.
    #[inline]
    pub(crate) fn end_notice(&mut self) {
        if self.take_awaited() {
            self.socket.notice.clear();
        }
    }

    /// Registers it with the poller, which reports bytes that have arrived already.
    pub(crate) fn register(&mut self, poller: &Poller) -> Result<(), Errno> {
        self.registered = true;
        poller.add(self.socket.transport.as_fd(), Source::Connection { index: self.index, generation: self.generation })
    }

    /// Removes it from the poller until it is put back.
    #[cold]
    pub(crate) fn unregister(&mut self, poller: &Poller) {
        if !self.is_stream && mem::take(&mut self.registered) {
            let _ = poller.remove(self.socket.transport.as_fd());
        }
    }

    /// Counts bytes that the application has sent itself.
    pub(crate) fn add_taken(&mut self, bytes: u64) {
        self.taken += bytes;
    }

    /// Prepares for the next request: the one in flight has been answered.
    #[inline]
    pub(crate) fn begin_next(&mut self) {
        self.request.begin_next();
        self.time_limit = 0;
    }

    /// Leaves the response open: no thread works on it from now on.
    pub(crate) fn hold_open(&mut self, long_poll: LongPoll) {
        self.request.served = self.request.served.saturating_add(1);
        self.long_poll = Some(Box::new(long_poll));
        self.transition(PhaseEvent::HoldOpen);
        self.request.buffers = None;
    }

    /// Receives once; of a body, at most about so much.
    #[inline]
    pub(crate) fn receive(&mut self, most: usize) -> Received {
        let in_body = self.request.parser.is_in_body();
        if in_body && let Some(received) = self.receive_content(most) {
            return received;
        }
        let buffer = &mut self.request.buffers.get_or_insert_default().read_buffer;
        let room = buffer.room(if in_body { ReadBuffer::MAX_ROOM as u64 } else { 0 });
        if room.is_empty() {
            return Received::NoMemory;
        }
        let (length, transport) = (room.len(), &self.socket.transport);
        let received = note_received(transport.receive(room), transport, length, &mut self.readable, self.hangup);
        if let Received::Something(bytes) = received {
            buffer.received(bytes);
            self.received += bytes as u64;
        }
        received
    }

    /// Receives into `room`, past the read buffer.
    pub(crate) fn receive_into(&mut self, room: &mut [u8]) -> Received {
        let (length, transport) = (room.len(), &self.socket.transport);
        let received = note_received(transport.receive(room), transport, length, &mut self.readable, self.hangup);
        if let Received::Something(bytes) = received {
            self.received += bytes as u64;
        }
        received
    }

    /// Receives a large piece of a body directly into the body's buffer. `None`: framing may come before it.
    // Heads are received without it.
    #[inline(never)]
    fn receive_content(&mut self, most: usize) -> Option<Received> {
        if let Socket::Stream(stream) = &self.socket.transport {
            let expected = self.request.parser.expected();
            let body = self.request.buffers.as_mut()?.body.as_mut()?;
            if body.is_lent()
                && let bytes @ 1.. = body.take_back(stream.take_back())
            {
                self.request.parser.take_content(bytes as u64);
                self.received += bytes as u64;
                self.readable = self.hangup || stream.may_have_more(bytes, bytes);
                return Some(Received::Something(bytes));
            }
            // No more than there is room for, as long as the length is known.
            let most = match body.room(expected) {
                room @ DIRECT.. => most.min(room),
                _ => most.min(ReadBuffer::MAX_ROOM),
            };
            let take = |content: &[u8]| body.append(content).map_err(|_| Errno::NOMEM);
            let received = stream.receive_up_to(most, take);
            if received == Err(Errno::NOMEM) {
                return Some(Received::NoMemory);
            }
            let received = note_received(received, &**stream, most, &mut self.readable, self.hangup);
            if let Received::Something(bytes) = received {
                self.request.parser.take_content(bytes as u64);
                self.received += bytes as u64;
            }
            return Some(received);
        }
        let expected = self.request.parser.expected();
        let buffers = self
            .request
            .buffers
            .as_mut()
            .filter(|buffers| expected >= DIRECT as u64 && buffers.read_buffer.is_drained())?;
        let body = buffers.body.as_mut()?;
        let room = body.room(expected).min(most);
        if room == 0 {
            return None;
        }
        let transport = &self.socket.transport;
        let received = note_received(body.receive(transport, room), transport, room, &mut self.readable, self.hangup);
        if let Received::Something(bytes) = received {
            self.request.parser.take_content(bytes as u64);
            self.received += bytes as u64;
        }
        Some(received)
    }

    /// Has content of its stream written into the body as it comes, if much is to come.
    #[cold]
    pub(crate) fn lend_room(&mut self) {
        let expected = self.request.parser.expected();
        let body = self.request.buffers.as_mut().and_then(|buffers| buffers.body.as_mut());
        if let (Some(stream), Some(body)) = (self.socket.transport.stream(), body)
            && !body.must_be_written(expected, stream.allowed())
            && let Some(lent) = body.lend(expected)
            && let Some(lent) = stream.lend(lent)
        {
            body.take_back(Some(lent));
        }
    }

    /// Receives and drops. `true`: the peer has finished as well.
    pub(crate) fn discard(&mut self) -> bool {
        let mut dropped = [0; 4096];
        // Bounded, so that one fast sender cannot occupy the thread.
        for _ in 0..64 {
            match self.socket.transport.receive(&mut dropped) {
                Ok(1..) => {}
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    return false;
                }
                Ok(0) if self.is_stream => {
                    // The client has sent its request, and waits for the response.
                    self.readable = false;
                    return false;
                }
                Ok(0) | Err(_) => return true,
            }
        }
        false
    }

    /// Whether closing now could destroy what was sent, because the client may be in the middle of sending.
    pub(crate) fn may_be_sending(&self) -> bool {
        self.readable || self.pipelines || self.request.has_unread() || self.request.is_unfinished()
    }

    /// Whether bytes of another request have arrived.
    pub(crate) fn is_followed(&self) -> bool {
        self.request.has_unread() || self.socket.transport.has_input()
    }

    /// Whether it waits for a request of which nothing has been read. A connection of which a proxy has reported anything
    /// does not count, as the report cannot be passed on.
    pub(crate) fn is_untouched(&self) -> bool {
        self.phase() == Phase::Serving && !self.is_behind() && self.request.is_untouched()
    }
}

/// What was received into so much room; notes whether more may be there. `hangup`: an end is to be received after the last
/// byte.
#[inline]
fn note_received(
    received: Result<usize, Errno>,
    transport: &impl Transport,
    room: usize,
    readable: &mut bool,
    hangup: bool,
) -> Received {
    match received {
        Ok(bytes @ 1..) => {
            *readable = hangup || transport.may_have_more(bytes, room);
            Received::Something(bytes)
        }
        Err(Errno::AGAIN) => {
            *readable = false;
            Received::NothingYet
        }
        Ok(0) | Err(_) => Received::End,
    }
}

impl Connection {
    /// Bytes that the kernel has taken so far.
    pub(crate) fn bytes_sent(&self) -> u64 {
        let waiting = if self.has_send_queue {
            self.socket.send_queue().as_ref().map_or(0, |send_queue| send_queue.sent())
        } else {
            0
        };
        self.taken + waiting
    }

    /// Whether nothing that was sent from this position on has reached the client, on a connection that is lost.
    #[cold]
    pub(crate) fn has_lost_all_since(&self, position: u64, unacknowledged: Unacknowledged) -> bool {
        let sent = self.bytes_sent().saturating_sub(position);
        let unacknowledged = || unacknowledged?(self.socket.transport.as_fd());
        sent == 0 || unacknowledged().is_some_and(|bytes| bytes >= sent)
    }

    /// Whether its peer has yet to acknowledge bytes.
    #[cold]
    pub(crate) fn has_unacknowledged(&self, unacknowledged: Unacknowledged) -> bool {
        unacknowledged.and_then(|of| of(self.socket.transport.as_fd())).is_some_and(|bytes| bytes > 0)
    }

    /// Bytes of output that have been produced so far, sent or not.
    #[inline]
    pub(crate) fn end_of_output(&self) -> u64 {
        let waiting = if self.has_send_queue {
            self.socket.send_queue().as_ref().map_or(0, |send_queue| send_queue.queued())
        } else {
            0
        };
        self.taken
            + self.dropped
            + waiting
            + self.coalesced
            + self.request.buffers.as_ref().map_or(0, |buffers| buffers.out.len() as u64)
    }
}
