//! One client's connection: its socket, what it is doing, and what was received.
//!
//! ```text
//! state.rs            phase of a connection, and the transitions between phases
//! listener.rs         listening sockets
//! accept_balance.rs   connections of each worker, so that workers accept evenly; pauses of accepting
//! peer_trust.rs       PROXY protocol headers and forwarded fields of trusted peers
//! body.rs             buffer of a request body while it is received
//! body_spool.rs       thread that writes large request bodies to temporary files
//! temp_file.rs        temporary files of request bodies and of unsent responses
//! head_cache.rs       parsed heads that repeat on a connection
//! send.rs             sends at once and queues what the socket does not take
//! send_queue.rs       unsent bytes and files of a response, in memory or in a temporary file
//! shared_socket.rs    socket and send queue, shared with other threads
//! throughput.rs       minimum rate of uploads and downloads
//! ```

pub(crate) mod accept_balance;
pub(crate) mod body;
pub(crate) mod body_spool;
pub(crate) mod head_cache;
pub(crate) mod listener;
pub(crate) mod peer_trust;
pub(crate) mod send;
pub(crate) mod send_queue;
pub(crate) mod shared_socket;
pub(crate) mod state;
pub(crate) mod temp_file;
pub(crate) mod throughput;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::connection::body::{DIRECT, IncomingBody};
use crate::connection::head_cache::CachedHead;
use crate::connection::peer_trust::{ForwardedInfo, PeerTrust};
use crate::connection::shared_socket::SharedSocket;
use crate::connection::state::Phase;
use crate::connection::throughput::Throughput;
use crate::limits::MAX_CACHE_MISSES;
use crate::log::entry::{Answer, Unsent};
use crate::log::slow::Answered;
use crate::sys::Errno;
use crate::sys::socket::Transport;
use poorhttp_http::{ReadBuffer, RequestParser, Response};

/// Buffers that a connection needs only while a request is received or answered.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) read_buffer: ReadBuffer,
    /// Output that was not sent yet.
    pub(crate) out: Vec<u8>,
    /// The response to the request in flight, for the access log once it has been sent.
    pub(crate) answer: Option<Answer>,
    /// Body of the request in flight, if it has one.
    pub(crate) body: Option<Box<IncomingBody>>,
    /// How fast the body is received.
    pub(crate) throughput: Throughput,
}

impl Buffers {
    /// Whether another connection may use them.
    pub(crate) fn is_idle(&self) -> bool {
        !self.read_buffer.is_in_use() && self.out.is_empty() && self.body.is_none()
    }

    /// Makes them ready for another connection.
    pub(crate) fn clear(&mut self) {
        self.read_buffer.clear();
        self.out.clear();
        (self.body, self.throughput) = (None, Throughput::default());
    }

    /// Whether they have grown so much that they are not worth keeping.
    pub(crate) fn is_oversized(&self) -> bool {
        self.read_buffer.capacity() > 2 * ReadBuffer::ROOM || self.out.capacity() > 64 << 10
    }
}

/// A response that stays open until it is completed for all clients at once.
#[derive(Debug)]
pub(crate) struct LongPoll {
    pub(crate) response: Response,
    /// The last piece of the body, sent if [`crate::Reactor::end_long_polls`] completes the response.
    pub(crate) final_chunk: Vec<u8>,
    /// A call of `end_long_polls` after this time is meant for it, too; in microseconds of
    /// [`crate::sys::clock::precise_us`].
    pub(crate) since: u64,
}

/// A connection. The thread or exchange that holds the box is its only user.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) index: u32,
    pub(crate) generation: u32,
    pub(crate) socket: Arc<SharedSocket>,
    /// Changed by [`Connection::transition`] only.
    phase: Phase,
    /// Something may be there to be received.
    pub(crate) readable: bool,
    /// Registered with the poller.
    pub(crate) registered: bool,
    /// The peer has closed its side, so an end is to be received after the last byte.
    pub(crate) hangup: bool,
    pub(crate) expired: bool,
    /// When the head that is being received must be complete, or lingering must end, however slowly bytes arrive, in
    /// milliseconds of [`crate::sys::clock::now`]. 0: neither has begun.
    pub(crate) time_limit: u64,
    /// The send queue is in use; spares its lock if it is not.
    pub(crate) has_send_queue: bool,
    /// The socket may take more of the send queue, and no event will report that.
    pub(crate) paused: bool,
    /// Requests answered so far.
    pub(crate) served: u32,
    /// Number of the last request.
    pub(crate) number: u64,
    /// The client has sent a request before the response to the one before.
    pub(crate) pipelines: bool,
    /// End of the last request, in milliseconds of [`crate::sys::clock::now`]; 0: there was none.
    pub(crate) last_request_end: u64,
    /// Requests answered since other connections last had their turn.
    pub(crate) answered_in_turn: u32,
    /// Number of the listener that accepted the connection.
    pub(crate) listener: u32,
    pub(crate) parser: RequestParser,
    pub(crate) buffers: Option<Box<Buffers>>,
    /// Unknown for a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) peer_trust: PeerTrust,
    /// A PROXY protocol header is to come before anything else.
    pub(crate) awaits_proxy_header: bool,
    /// The PROXY protocol header says that the client speaks TLS.
    pub(crate) is_secure: bool,
    /// What proxies report of the requests; none before they have reported anything.
    pub(crate) forwarded: Option<Box<ForwardedInfo>>,
    pub(crate) cached_head: Option<CachedHead>,
    /// Requests whose head was not the cached one.
    pub(crate) cache_misses: u8,
    /// The look at the poller that let it in, and since when there is something to be read; both for [`crate::log::slow`].
    pub(crate) accepted_in_poll: u64,
    pub(crate) since: u64,
    /// Timing of the last request for the slow log, until the response was sent.
    pub(crate) answered: Option<Box<Answered>>,
    /// Bytes that the kernel has taken, without those of the send queue.
    pub(crate) taken: u64,
    /// Bytes that were dropped because the connection is lost.
    pub(crate) dropped: u64,
    /// Responses that are in the send queue, for the access log once they have been sent.
    pub(crate) unsent: Vec<Unsent>,
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
            phase: Phase::Serving,
            // Clients send with the handshake or soon after it: trying is cheaper than asking the poller.
            readable: true,
            registered: false,
            hangup: false,
            expired: false,
            time_limit: 0,
            has_send_queue: false,
            paused: false,
            served: 0,
            number: 0,
            pipelines: false,
            last_request_end: 0,
            answered_in_turn: 0,
            listener,
            parser: RequestParser::default(),
            buffers: None,
            peer,
            peer_trust: PeerTrust::NotConfigured,
            awaits_proxy_header: false,
            is_secure: false,
            forwarded: None,
            cached_head: None,
            cache_misses: 0,
            accepted_in_poll: 0,
            since: 0,
            answered: None,
            taken: 0,
            dropped: 0,
            unsent: Vec::new(),
            long_poll: None,
        }
    }

    pub(crate) fn buffers(&mut self) -> &mut Buffers {
        self.buffers.get_or_insert_default()
    }

    /// Prepares for the next request: the one in flight has been answered.
    #[inline]
    pub(crate) fn begin_next(&mut self) {
        self.clear_origin();
        let buffers = self.buffers.get_or_insert_default();
        self.parser.next_message(&mut buffers.read_buffer);
        buffers.body = None;
        self.time_limit = 0;
    }

    /// Receives once.
    #[inline]
    pub(crate) fn receive(&mut self) -> Received {
        let in_body = self.parser.is_in_body();
        if in_body && let Some(received) = self.receive_content() {
            return received;
        }
        let buffer = &mut self.buffers.get_or_insert_default().read_buffer;
        let room = buffer.room(if in_body { ReadBuffer::MAX_ROOM as u64 } else { 0 });
        if room.is_empty() {
            return Received::NoMemory;
        }
        let received = receive_into(&self.socket.transport, room, &mut self.readable, self.hangup);
        if let Received::Something(bytes) = received {
            buffer.received(bytes);
        }
        received
    }

    /// Receives a large piece of a body directly into the body's buffer. `None`: framing may come before it.
    fn receive_content(&mut self) -> Option<Received> {
        let expected = self.parser.expected();
        let buffers =
            self.buffers.as_mut().filter(|buffers| expected >= DIRECT as u64 && buffers.read_buffer.is_drained())?;
        let body = buffers.body.as_mut()?;
        let room = body.room(expected);
        if room.is_empty() {
            return None;
        }
        let received = receive_into(&self.socket.transport, room, &mut self.readable, self.hangup);
        if let Received::Something(bytes) = received {
            body.fill(bytes);
            self.parser.take_content(bytes as u64);
        }
        Some(received)
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
                Ok(0) | Err(_) => return true,
            }
        }
        false
    }

    /// Whether closing now could destroy what was sent, because the client may be in the middle of sending.
    pub(crate) fn may_be_sending(&self) -> bool {
        self.readable || self.pipelines || self.has_unread()
    }

    fn has_unread(&self) -> bool {
        self.buffers.as_ref().is_some_and(|buffers| !buffers.read_buffer.is_drained())
    }

    /// Whether bytes of another request have arrived.
    pub(crate) fn is_followed(&self) -> bool {
        self.has_unread() || self.socket.transport.has_input()
    }

    /// Caches the head of the current request, if the client sends several requests and few cached heads were in vain.
    #[inline]
    pub(crate) fn cache_head(&mut self, cached_heads: &Arc<AtomicUsize>) -> bool {
        let Some(buffers) = &self.buffers else { return false };
        if buffers.read_buffer.repeated || self.served == 0 || self.cache_misses > MAX_CACHE_MISSES {
            return false;
        }
        self.cache_misses += 1;
        self.cached_head = self.cached_head.take().or_else(|| CachedHead::new(cached_heads));
        let Some(cached_head) = &mut self.cached_head else { return false };
        cached_head.made = None;
        let caches_head = self.parser.remember(&buffers.read_buffer);
        self.cache_origin();
        caches_head
    }
}

/// Receives into `room`, and notes whether more may be there. `hangup`: an end is to be received after the last byte.
#[inline]
fn receive_into(transport: &impl Transport, room: &mut [u8], readable: &mut bool, hangup: bool) -> Received {
    let length = room.len();
    match transport.receive(room) {
        Ok(bytes @ 1..) => {
            *readable = hangup || transport.may_have_more(bytes, length);
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

    /// Bytes of output that have been produced so far, sent or not.
    #[inline]
    pub(crate) fn end_of_output(&self) -> u64 {
        let waiting = if self.has_send_queue {
            self.socket.send_queue().as_ref().map_or(0, |send_queue| send_queue.queued())
        } else {
            0
        };
        self.taken + self.dropped + waiting + self.buffers.as_ref().map_or(0, |buffers| buffers.out.len() as u64)
    }
}

/// How log lines name a raw TCP connection, which has no request line.
#[cold]
pub(crate) fn raw_tcp_name(connection: &Connection) -> String {
    match connection.peer {
        Some(peer) => format!("of {peer}"),
        None => "over a Unix socket".to_owned(),
    }
}

pub(crate) fn line_of(connection: &Connection) -> String {
    let Some(buffers) = &connection.buffers else { return raw_tcp_name(connection) };
    let (head, bytes) = (&buffers.read_buffer.head, buffers.read_buffer.head_bytes());
    format!("{} {}", head.method.of(bytes).escape_ascii(), head.target.of(bytes).escape_ascii())
}
