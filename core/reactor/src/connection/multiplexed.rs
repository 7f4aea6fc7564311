//! A connection with many streams: its protocol, its output and the state of its streams, shared by the threads that answer them.
//!
//! Whoever receives or sends on a stream takes the lock for a moment. Nothing here calls back: what has become of other streams is
//! returned, and [`crate::scheduler::streams`] passes it on.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use std::{borrow::Cow, mem};

use poorhttp_http::Reject;
use rustc_hash::FxBuildHasher;

use crate::connection::coalesced::{COALESCED_FOR, CoalescedSender, SendsLater};
use crate::connection::send_queue::{Flushed, Queued};
use crate::connection::stream_protocol::{StreamEvent, StreamProtocol, StreamRequest};
use crate::limits::GATHERED;
use crate::status::Metrics;
use crate::sys::process::forks;
use crate::sys::wakeup::Wakeup;
use crate::sys::{BorrowedFd, Errno, clock};

/// Bytes received in a turn: content stays in the cache of the processor until its stream has its turn.
const ROOM: usize = 64 << 10;

thread_local! {
    /// What is received is taken from here at once.
    static ROOM_OF_THREAD: RefCell<Box<[u8]>> = RefCell::new(vec![0; ROOM].into());
}

/// Streams that send [`crate::limits::SENT_AT_ONCE`] and have more, before others than this connection have their turn.
const LONG_TURNS: u32 = 4;
/// Bytes of a response head, at most: what the largest of other servers is.
const MOST_OF_HEAD: usize = 1 << 20;

/// The socket that carries the bytes of all streams.
pub(crate) trait Carrier: Send + Sync {
    /// Receives into `room`; see [`crate::sys::socket::Transport`].
    fn receive(&self, room: &mut [u8]) -> Result<usize, Errno>;

    /// Whether more may be there, after so many bytes were received into so much room.
    fn may_have_more(&self, received: usize, room: usize) -> bool;

    /// Sends.
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Its descriptor.
    fn fd(&self) -> BorrowedFd<'_>;
}

poorhttp_interface::debug_by_name!(Carrier);

/// What the response of a stream waits in. Called without the lock of the connection, which this locks.
pub(crate) trait ResponseQueue: Send + Sync {
    /// Sends on the stream what it takes.
    fn send_on(&self) -> Flushed;

    /// Whether a function waits for room in it.
    fn is_awaited(&self) -> bool;
}

poorhttp_interface::debug_by_name!(ResponseQueue);

/// Who is told that a stream, or the connection itself, has something to do. Called without the lock of the connection.
pub(crate) trait StreamOwner: Send + Sync {
    fn tell(&self, events: &[Ready]);
}

poorhttp_interface::debug_by_name!(StreamOwner);

/// Index and generation of a slot.
pub(crate) type Slot = (u32, u32);

/// Something has come for what is in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) slot: Slot,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The client has left the stream, or the connection is lost.
    pub(crate) hangup: bool,
}

/// A new stream.
#[derive(Debug)]
pub(crate) enum Begun {
    Request(Box<StreamRequest>),
    Refused { stream: u32, reject: Reject, line: Vec<u8> },
}

/// What a turn has brought.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) begun: Vec<Begun>,
    pub(crate) ready: Vec<Ready>,
    /// More may be there to be received.
    pub(crate) has_more: bool,
    /// Why the connection has failed, if that is news.
    pub(crate) failed: Option<String>,
}

/// What the streams of a connection have in common.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) listener: u32,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) is_trusted: bool,
    pub(crate) is_secure: bool,
    pub(crate) over_tls: bool,
    /// The environ's variables of the TLS session.
    pub(crate) tls_variables: Vec<(Cow<'static, str>, String)>,
}

/// How the client has ended its side of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    Complete,
    /// To be answered with this status.
    Refused(Reject),
    /// It has left.
    Reset,
}

#[derive(Debug, Default)]
struct StreamState {
    slot: Option<Slot>,
    /// The turn in which its client has ended its side.
    turn: u32,
    /// What its response waits in.
    queue: Option<Weak<dyn ResponseQueue>>,
    /// How often the response was sent on from there.
    sent_on: u32,
    /// Content that nobody has received yet, bounded by the window, and how much of it has been.
    input: Vec<u8>,
    taken: usize,
    end: Option<InputEnd>,
    /// The beginning of a response head.
    head: Vec<u8>,
    has_head: bool,
    /// The request is HEAD: a response has no content.
    is_head: bool,
    /// Content that is still to be sent, if the head of the response says how much.
    left: Option<u64>,
    /// The client has got the end of the response with its last bytes.
    is_complete: bool,
    /// The response has ended, or the stream was reset by us.
    has_ended: bool,
    /// Not all content was taken, and nobody has been told since that more would be.
    is_blocked: bool,
}

impl StreamState {
    fn has_input(&self) -> bool {
        self.taken < self.input.len()
    }

    /// Whether its request was complete in this turn, and nothing of the response has come.
    fn is_unanswered(&self, turn: u32) -> bool {
        self.turn == turn && self.may_complete() && !self.has_head && !self.has_ended
    }

    /// Whether the response may end with its last bytes: those that the client still sends would be refused from then on.
    fn may_complete(&self) -> bool {
        self.end == Some(InputEnd::Complete)
    }
}

#[derive(Debug)]
struct State {
    protocol: Box<dyn StreamProtocol>,
    streams: HashMap<u32, StreamState, FxBuildHasher>,
    /// Memory for the content of the next stream that has some; empty while there is no stream.
    spare: Vec<u8>,
    /// Streams so far.
    served: u32,
    /// The client sends nothing more.
    has_ended: bool,
    /// Nothing can be sent any more.
    is_lost: bool,
    is_failed: bool,
    /// Since when the server stops; this and the following times are in milliseconds of [`clock::now`].
    stopping_since: Option<u64>,
    /// Since when there is no stream.
    idle_since: u64,
    /// Since when the client owes the rest of a frame.
    partial_since: Option<u64>,
    /// Up to when the protocol knows that time has passed.
    passed: u64,
    /// The client is not read until output is sent.
    rests: bool,
    /// When something was last received, in microseconds of [`clock::precise_us`].
    active_at: u64,
    /// [`CoalescedSender`] will send what waits.
    is_listed: bool,
    /// A thread sends what waits on the streams.
    is_sending: bool,
    /// Turns of the connection so far; after the last one by a thread that runs no requests.
    turns: u32,
    turns_of_reader: u32,
    /// Threads that wait; one of them waits for the socket.
    waiters: u32,
    has_reader: bool,
    /// Counts what threads may have waited for.
    changes: u64,
}

/// What a thread does that waits for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// It looks again.
    Over,
    /// It waits for the socket, in place of all.
    Reads { reads: bool, writes: bool },
}

/// A connection with many streams.
#[derive(Debug)]
pub(crate) struct Multiplexed {
    carrier: Arc<dyn Carrier>,
    owner: Weak<dyn StreamOwner>,
    sender: Arc<CoalescedSender>,
    /// The slot of the connection itself.
    slot: Slot,
    pub(crate) origin: Origin,
    /// What the responses of its streams hold.
    pub(crate) queued: Arc<Queued>,
    state: Mutex<State>,
    changed: Condvar,
    wakeup: Wakeup,
    metrics: &'static Metrics,
    /// Output waits for the socket; read without the lock.
    is_waiting: AtomicBool,
    /// [`forks`] when it was made.
    forks: u64,
}

impl Multiplexed {
    pub(crate) fn new(
        carrier: Arc<dyn Carrier>,
        owner: Weak<dyn StreamOwner>,
        sender: Arc<CoalescedSender>,
        slot: Slot,
        origin: Origin,
        protocol: Box<dyn StreamProtocol>,
        metrics: &'static Metrics,
    ) -> Result<Self, Errno> {
        let state = State {
            protocol,
            streams: HashMap::default(),
            spare: Vec::new(),
            served: 0,
            has_ended: false,
            is_lost: false,
            is_failed: false,
            stopping_since: None,
            idle_since: clock::now(),
            partial_since: None,
            passed: clock::now(),
            rests: false,
            active_at: 0,
            is_listed: false,
            is_sending: false,
            turns: 0,
            turns_of_reader: 0,
            waiters: 0,
            has_reader: false,
            changes: 0,
        };
        let (state, wakeup) = (Mutex::new(state), Wakeup::new()?);
        let (changed, is_waiting) = (Condvar::new(), AtomicBool::new(false));
        metrics.http2_connections.fetch_add(1, Ordering::Relaxed);
        Ok(Multiplexed {
            carrier,
            owner,
            sender,
            slot,
            origin,
            queued: Arc::default(),
            state,
            changed,
            wakeup,
            metrics,
            is_waiting,
            forks: forks(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot of the connection itself.
    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    /// The descriptor of the socket.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.carrier.fd()
    }

    /// Whether output waits for the socket.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Acquire)
    }
}

/// The connection itself.
impl Multiplexed {
    /// Takes what was received before this was made.
    pub(crate) fn take_received(&self, bytes: &[u8]) -> Turn {
        let (mut turn, mut state) = (Turn::default(), self.lock());
        state.take(bytes, &mut turn);
        self.note_change(&mut state);
        turn
    }

    /// Sends and receives what there is, up to a limit. `hangup`: an end is to be received after the last byte.
    pub(crate) fn turn(&self, hangup: bool) -> Turn {
        ROOM_OF_THREAD.with_borrow_mut(|room| self.turn_with(hangup, room))
    }

    fn turn_with(&self, hangup: bool, room: &mut [u8]) -> Turn {
        let (mut turn, mut total) = (Turn::default(), 0);
        let mut state = self.lock();
        state.note_time();
        state.turns = state.turns.wrapping_add(1);
        self.flush(&mut state);
        if state.has_ended && !matches!(self.carrier.receive(room), Ok(_) | Err(Errno::AGAIN)) {
            // It had ended its side, and is gone now.
            state.is_lost = true;
            state.tell_end(&mut turn);
        }
        while !state.has_ended && !state.is_failed && state.protocol.wants_input() {
            if total >= ROOM {
                turn.has_more = true;
                break;
            }
            match self.carrier.receive(room) {
                Ok(bytes @ 1..) => {
                    total += bytes;
                    state.take(&room[..bytes], &mut turn);
                    if !hangup && !self.carrier.may_have_more(bytes, room.len()) {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Ok(0) => state.has_ended = true,
                Err(_) => (state.has_ended, state.is_lost) = (true, true),
            }
            if state.has_ended {
                state.tell_end(&mut turn);
            }
        }
        // Whatever ends its wait for room is an event of the poller, or is seen here.
        state.rests = !state.has_ended && !state.is_failed && !state.protocol.wants_input();
        self.flush(&mut state);
        if state.rests && state.protocol.wants_input() {
            state.rests = false;
            turn.has_more = true;
            self.note_waiting(&state);
        }
        if total > 0 {
            state.active_at = clock::precise_us();
        }
        state.note_partial();
        self.note_change(&mut state);
        turn
    }

    /// Turns so far; `None`: the last one was by the thread that runs no requests.
    pub(crate) fn turns(&self) -> Option<u32> {
        let state = self.lock();
        (state.turns != state.turns_of_reader).then_some(state.turns)
    }

    /// The last turn was by the thread that runs no requests.
    pub(crate) fn note_reader(&self) {
        let mut state = self.lock();
        state.turns_of_reader = state.turns;
    }

    /// Has the streams send what waits on them, one after the other in the order of the protocol, as long as the socket takes it.
    /// Returns which of them have something else to do, and whether there is more to send.
    pub(crate) fn send_streams(&self) -> (Vec<Ready>, bool) {
        let (mut ready, mut long_turns, mut state) = (Vec::new(), 0, self.lock());
        if mem::replace(&mut state.is_sending, true) {
            // Another thread does, and goes on with what has come by now.
            return (ready, false);
        }
        while long_turns < LONG_TURNS
            && let Some(stream) = state.protocol.next_writable()
        {
            let of_stream = state.streams.get_mut(&stream);
            let queue = of_stream.and_then(|of_stream| {
                of_stream.is_blocked = false;
                of_stream.sent_on = of_stream.sent_on.wrapping_add(1);
                Some((of_stream.slot?, of_stream.queue.as_ref()?.upgrade()?))
            });
            // The queue is locked before the connection, and dropping it locks the connection.
            drop(state);
            let mut has_more = false;
            if let Some((slot, queue)) = queue {
                let flushed = queue.send_on();
                has_more = flushed == Flushed::Paused;
                long_turns += u32::from(has_more);
                if matches!(flushed, Flushed::Everything | Flushed::Broken) || queue.is_awaited() {
                    ready.push(Ready { slot, readable: false, writable: true, hangup: false });
                }
            }
            state = self.lock();
            state.protocol.end_turn(stream, has_more);
        }
        state.is_sending = false;
        (ready, state.protocol.has_writable())
    }

    /// The server stops.
    pub(crate) fn begin_shutdown(&self) {
        let mut state = self.lock();
        state.stopping_since.get_or_insert_with(clock::now);
        state.protocol.begin_shutdown();
        self.flush(&mut state);
    }

    /// No more requests are taken.
    pub(crate) fn finish_shutdown(&self) {
        let mut state = self.lock();
        state.protocol.finish_shutdown();
        self.flush(&mut state);
    }

    /// Whether nothing more is to be done: all streams have ended, and the connection carries no other.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        let is_silent = state.is_lost || state.protocol.output().is_empty();
        let ends = state.is_lost || state.has_ended || state.is_failed || state.protocol.is_finished();
        is_silent && ends && state.streams.is_empty()
    }

    /// Since when the server stops, if it does.
    pub(crate) fn stopping_since(&self) -> Option<u64> {
        self.lock().stopping_since
    }

    /// Since when the client owes the rest of what it has begun without a stream, if it does.
    pub(crate) fn partial_since(&self) -> Option<u64> {
        self.lock().partial_since
    }

    /// Since when there is no stream; `None`: there is one.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        let state = self.lock();
        state.streams.is_empty().then_some(state.idle_since)
    }

    /// Streams so far.
    pub(crate) fn served(&self) -> u32 {
        self.lock().served
    }

    /// Notes the slot of a new stream, and what its response waits in.
    pub(crate) fn set_slot(&self, stream: u32, slot: Slot, queue: Weak<dyn ResponseQueue>) {
        if let Some(stream) = self.lock().streams.get_mut(&stream) {
            (stream.slot, stream.queue) = (Some(slot), Some(queue));
        }
    }

    /// Sends as much of the output as the socket takes. Counts what is there to be counted.
    fn flush(&self, state: &mut State) {
        for (counted, resets) in self.metrics.http2_resets.iter().zip(state.protocol.take_resets()) {
            if resets > 0 {
                counted.fetch_add(resets.into(), Ordering::Relaxed);
            }
        }
        if !state.protocol.output().is_empty() {
            // Before the socket is full: its next event may be seen by another thread before this one has noted that output waits.
            self.is_waiting.store(!state.is_lost, Ordering::Release);
        }
        while !state.is_lost && !state.protocol.output().is_empty() {
            match self.carrier.send(state.protocol.output()) {
                Ok(bytes) => state.protocol.sent(bytes),
                Err(Errno::AGAIN) => break,
                Err(_) => state.is_lost = true,
            }
        }
        self.note_waiting(state);
    }

    /// The same at the end of a response. If responses to requests that came together are about to follow, it is sent with them, or
    /// within a millisecond.
    fn flush_soon(self: &Arc<Self>, state: &mut State) {
        let (length, turn) = (state.protocol.output().len(), state.turns);
        if (1..GATHERED).contains(&length) && state.streams.values().any(|stream| stream.is_unanswered(turn)) {
            if !state.is_listed && clock::precise_us() < state.active_at + COALESCED_FOR {
                state.is_listed = self.sender.push(Arc::downgrade(self) as Weak<dyn SendsLater>);
            }
            if state.is_listed {
                return;
            }
        }
        self.flush(state);
    }

    fn note_waiting(&self, state: &State) {
        let waits = state.rests || !state.protocol.output().is_empty();
        self.is_waiting.store(!state.is_lost && waits, Ordering::Release);
    }

    /// Wakes the threads that wait: what they wait for may have come.
    fn note_change(&self, state: &mut State) {
        state.changes += 1;
        if state.waiters > 0 {
            self.changed.notify_all();
            if state.has_reader {
                self.wakeup.wake();
            }
        }
    }

    /// The same, after streams have been told.
    pub(crate) fn wake_waiters(&self) {
        self.note_change(&mut self.lock());
    }
}

impl State {
    /// Tells the protocol of the seconds that have passed.
    fn note_time(&mut self) {
        let seconds = clock::now().saturating_sub(self.passed) / 1_000;
        if seconds > 0 {
            self.passed += seconds * 1_000;
            self.protocol.pass(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
    }

    /// Notes whether a client without streams has begun something.
    fn note_partial(&mut self) {
        match self.streams.is_empty() && self.protocol.is_mid_frame() {
            true => _ = self.partial_since.get_or_insert_with(clock::now),
            false => self.partial_since = None,
        }
    }

    /// Takes received bytes.
    fn take(&mut self, mut bytes: &[u8], turn: &mut Turn) {
        while !self.is_failed {
            match self.protocol.receive(&mut bytes) {
                StreamEvent::NeedMore => return,
                StreamEvent::Request(request) => {
                    let end = if request.has_content { None } else { Some(InputEnd::Complete) };
                    self.begin(request.stream, end, request.head.method.of(&request.text) == b"HEAD");
                    turn.begun.push(Begun::Request(request));
                }
                StreamEvent::Content { stream, bytes } => match self.streams.get_mut(&stream) {
                    Some(state) => {
                        if !state.has_input() {
                            state.input.clear();
                            state.taken = 0;
                        }
                        if state.input.capacity() == 0 {
                            mem::swap(&mut state.input, &mut self.spare);
                        }
                        state.input.extend_from_slice(bytes);
                        turn.ready.extend(state.slot.map(|slot| Ready {
                            slot,
                            readable: true,
                            writable: false,
                            hangup: false,
                        }));
                    }
                    // Its request was answered before.
                    None => self.protocol.consumed(stream, bytes.len() as u32),
                },
                StreamEvent::Ended { stream } => self.end(stream, InputEnd::Complete, turn),
                StreamEvent::Refused { stream, reject, line } => {
                    if self.streams.contains_key(&stream) {
                        self.end(stream, InputEnd::Refused(reject), turn);
                    } else {
                        self.begin(stream, Some(InputEnd::Complete), line.starts_with(b"HEAD "));
                        turn.begun.push(Begun::Refused { stream, reject, line });
                    }
                }
                StreamEvent::Reset { stream } => self.end(stream, InputEnd::Reset, turn),
                StreamEvent::Failed(reason) => {
                    self.is_failed = true;
                    turn.failed = Some(reason);
                    let slots: Vec<_> = self.streams.keys().copied().collect();
                    slots.into_iter().for_each(|stream| self.end(stream, InputEnd::Reset, turn));
                }
            }
        }
    }

    /// Tells each stream that the client has ended its side of the connection.
    fn tell_end(&self, turn: &mut Turn) {
        let slots = self.streams.values().filter_map(|stream| stream.slot);
        turn.ready.extend(slots.map(|slot| Ready { slot, readable: true, writable: true, hangup: true }));
    }

    fn begin(&mut self, stream: u32, end: Option<InputEnd>, is_head: bool) {
        self.served = self.served.saturating_add(1);
        let turn = self.turns;
        self.streams.insert(stream, StreamState { end, is_head, turn, ..StreamState::default() });
    }

    fn end(&mut self, stream: u32, end: InputEnd, turn: &mut Turn) {
        if let Some(state) = self.streams.get_mut(&stream) {
            (state.end, state.turn) = (Some(end), self.turns);
            let is_reset = end == InputEnd::Reset;
            turn.ready.extend(state.slot.map(|slot| Ready {
                slot,
                readable: true,
                writable: is_reset,
                hangup: is_reset,
            }));
        }
    }
}

/// One stream.
impl Multiplexed {
    /// Receives content. 0: it has ended, see [`Multiplexed::input_end`].
    pub(crate) fn receive(&self, stream: u32, room: &mut [u8]) -> Result<usize, Errno> {
        self.receive_up_to(stream, room.len(), |content| {
            room[..content.len()].copy_from_slice(content);
            Ok(())
        })
    }

    /// Passes content to `take`, at most so many bytes, and returns how many. 0: it has ended, see [`Multiplexed::input_end`].
    pub(crate) fn receive_up_to(
        &self,
        stream: u32,
        most: usize,
        take: impl FnOnce(&[u8]) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(of_stream) = state.streams.get_mut(&stream) else { return Err(Errno::CONNRESET) };
        if of_stream.end == Some(InputEnd::Reset) {
            return Err(Errno::CONNRESET);
        }
        if !of_stream.has_input() {
            return match of_stream.end {
                Some(_) => Ok(0),
                None if state.has_ended || state.is_failed => Err(Errno::CONNRESET),
                None => Err(Errno::AGAIN),
            };
        }
        let bytes = most.min(of_stream.input.len() - of_stream.taken);
        take(&of_stream.input[of_stream.taken..of_stream.taken + bytes])?;
        of_stream.taken += bytes;
        if !of_stream.has_input() {
            // An idle stream keeps no buffer.
            let mut input = mem::take(&mut of_stream.input);
            of_stream.taken = 0;
            if input.capacity() <= 2 * ROOM {
                input.clear();
                state.spare = input;
            }
        }
        state.protocol.consumed(stream, bytes as u32);
        self.flush(state);
        Ok(bytes)
    }

    /// Copies the next bytes of content without taking them.
    pub(crate) fn peek(&self, stream: u32, room: &mut [u8]) -> Result<usize, Errno> {
        let state = self.lock();
        let Some(of_stream) = state.streams.get(&stream) else { return Err(Errno::CONNRESET) };
        let waiting = &of_stream.input[of_stream.taken..];
        let bytes = room.len().min(waiting.len());
        room[..bytes].copy_from_slice(&waiting[..bytes]);
        match of_stream.end {
            None if bytes == 0 => Err(Errno::AGAIN),
            _ => Ok(bytes),
        }
    }

    /// Whether receiving would not be in vain, or the stream is answered: by the thread of the request timeout, for example.
    pub(crate) fn may_receive(&self, stream: u32) -> bool {
        let state = self.lock();
        let is_over = |stream: &StreamState| stream.has_input() || stream.end.is_some() || stream.has_ended;
        state.has_ended || state.is_failed || state.streams.get(&stream).is_none_or(is_over)
    }

    /// How the client has ended its side of the stream, behind the content that is left; `None`: it has not.
    pub(crate) fn input_end(&self, stream: u32) -> Option<InputEnd> {
        let state = self.lock();
        match state.streams.get(&stream) {
            Some(stream) if stream.has_input() => None,
            Some(stream) => stream.end,
            None => Some(InputEnd::Reset),
        }
    }

    /// Whether the client has left the stream, or the connection is lost.
    pub(crate) fn is_gone(&self, stream: u32) -> bool {
        let state = self.lock();
        let is_reset = |stream: &StreamState| stream.end == Some(InputEnd::Reset);
        state.is_lost || state.is_failed || state.streams.get(&stream).is_none_or(is_reset)
    }

    /// Whether what a stream still has to send waits for its client, and not for other streams.
    pub(crate) fn waits_for_client(&self, stream: u32) -> bool {
        let state = self.lock();
        state.is_lost || !state.protocol.output().is_empty() || state.protocol.waits_for_client(stream)
    }

    /// Whether the client has closed its side of the connection.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Bytes of content that a stream may send now.
    pub(crate) fn room(&self, stream: u32) -> usize {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.protocol.room(stream) == 0 {
            self.flush(state);
        }
        state.protocol.room(stream)
    }

    /// Sends bytes of a response: its head as text of HTTP/1.1, perhaps behind interim ones, and then its content without framing.
    /// `more` follows at once.
    pub(crate) fn send(&self, stream: u32, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        let mut state = self.lock();
        let sent = self.send_locked(&mut state, stream, bytes, more);
        // If the socket has taken the output, no event follows by which it is the turn of those that wait.
        let others_wait = !state.is_sending && state.protocol.has_writable();
        drop(state);
        if others_wait {
            self.tell(&[Ready { slot: self.slot, readable: true, writable: false, hangup: false }]);
        }
        sent
    }

    fn send_locked(&self, state: &mut State, stream: u32, bytes: &[u8], more: bool) -> Result<usize, Errno> {
        let is_over = state.is_lost || state.is_failed;
        let Some(of_stream) = state.streams.get_mut(&stream).filter(|_| !is_over) else { return Err(Errno::PIPE) };
        if of_stream.has_ended || of_stream.end == Some(InputEnd::Reset) {
            return Err(Errno::PIPE);
        }
        let mut rest = bytes;
        while !of_stream.has_head && !rest.is_empty() {
            let (before, from) = (of_stream.head.len(), of_stream.head.len().saturating_sub(3));
            of_stream.head.extend_from_slice(rest);
            let Some(end) = of_stream.head[from..].windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
                return if of_stream.head.len() > MOST_OF_HEAD { Err(Errno::PIPE) } else { Ok(bytes.len()) };
            };
            let end = from + end + 4;
            rest = &rest[end - before..];
            let head = mem::take(&mut of_stream.head);
            let (status, fields) = parts_of_head(&head[..end]);
            let is_last = status >= 200;
            of_stream.left = length_of_content(status, fields, of_stream.is_head).filter(|_| is_last);
            let ends = of_stream.left == Some(0) && of_stream.may_complete();
            if !state.protocol.send_head(stream, status, fields, ends) {
                return Err(Errno::PIPE);
            }
            (of_stream.has_head, of_stream.is_complete) = (is_last, ends);
        }
        loop {
            let before = rest.len();
            if !rest.is_empty() {
                let Some(of_stream) = state.streams.get_mut(&stream) else { return Err(Errno::PIPE) };
                let ends = of_stream.left == Some(rest.len() as u64) && of_stream.may_complete();
                let Some(taken) = state.protocol.send_data(stream, rest, ends) else { return Err(Errno::PIPE) };
                rest = &rest[taken..];
                of_stream.left = of_stream.left.map(|left| left.saturating_sub(taken as u64));
                of_stream.is_complete = ends && rest.is_empty();
            }
            if more && rest.is_empty() {
                return Ok(bytes.len());
            }
            self.flush(state);
            if let Some(of_stream) = state.streams.get_mut(&stream) {
                of_stream.is_blocked = !rest.is_empty();
            }
            if rest.is_empty() || rest.len() == before || state.is_lost {
                break;
            }
        }
        match bytes.len() - rest.len() {
            0 if !bytes.is_empty() => Err(Errno::AGAIN),
            taken => Ok(taken),
        }
    }

    /// Ends the response. One without a head is none: the stream is reset.
    pub(crate) fn finish(self: &Arc<Self>, stream: u32) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(of_stream) = state.streams.get_mut(&stream).filter(|stream| !stream.has_ended) else { return };
        of_stream.has_ended = true;
        if !of_stream.has_head {
            state.protocol.close(stream);
        } else if !of_stream.is_complete {
            state.protocol.send_data(stream, b"", true);
        }
        self.flush_soon(state);
        self.note_change(state);
    }

    /// Resets a stream, as failed or because its client `is_slow`. `false`: the client had left before.
    pub(crate) fn reset(&self, stream: u32, is_slow: bool) -> bool {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(of_stream) = state.streams.get_mut(&stream) else { return false };
        let was_there = of_stream.end != Some(InputEnd::Reset);
        (of_stream.has_ended, of_stream.end) = (true, Some(InputEnd::Reset));
        match is_slow {
            true => state.protocol.cancel(stream),
            false => state.protocol.close(stream),
        }
        self.flush(state);
        self.note_change(state);
        was_there
    }

    /// Forgets a stream, which nobody uses any more.
    pub(crate) fn forget(self: &Arc<Self>, stream: u32) {
        if self.forks != forks() {
            // The connection is the parent's, and the lock may be held by a thread that exists only there.
            return;
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.streams.remove(&stream).is_some() {
            self.metrics.http2_streams.fetch_sub(1, Ordering::Relaxed);
        }
        state.protocol.close(stream);
        if state.streams.is_empty() {
            state.idle_since = clock::now();
            state.spare = Vec::new();
            state.note_partial();
        }
        self.flush_soon(state);
        let is_last = state.streams.is_empty()
            && (state.stopping_since.is_some() || state.has_ended || state.is_failed || state.is_lost);
        drop(guard);
        if is_last {
            self.tell(&[Ready { slot: self.slot, readable: true, writable: false, hangup: false }]);
        }
    }

    fn tell(&self, ready: &[Ready]) {
        if let Some(owner) = self.owner.upgrade() {
            owner.tell(ready);
        }
        self.wake_waiters();
    }
}

impl SendsLater for Multiplexed {
    fn send_waiting(&self) -> bool {
        let mut state = self.lock();
        state.is_listed = false;
        self.flush(&mut state);
        // If the socket is full, the poller reports when it is not.
        true
    }
}

impl Drop for Multiplexed {
    fn drop(&mut self) {
        // In a child that the application has forked, the connection is still its parent's.
        if self.forks == forks() {
            self.metrics.http2_connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Threads that wait.
impl Multiplexed {
    /// Counts what threads may wait for, to be read before looking whether it has come.
    pub(crate) fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// Whether a stream may send, as far as is known.
    pub(crate) fn may_send(&self, stream: u32) -> bool {
        self.lock().streams.get(&stream).is_none_or(|stream| !stream.is_blocked || stream.has_ended)
    }

    /// How often the response of a stream was sent on.
    pub(crate) fn turns_of(&self, stream: u32) -> u32 {
        self.lock().streams.get(&stream).map_or(0, |stream| stream.sent_on)
    }

    /// Waits until something has changed since `seen`, at most so long; or has the caller wait for the socket if nobody does, and
    /// call [`Multiplexed::end_read`].
    pub(crate) fn wait(&self, seen: u64, milliseconds: u64) -> Waiting {
        let mut state = self.lock();
        if state.changes != seen {
            return Waiting::Over;
        }
        state.waiters += 1;
        let reads = !state.has_ended && !state.is_failed && state.protocol.wants_input();
        let writes = !state.is_lost && !state.protocol.output().is_empty();
        // The end of the client's side would be reported again and again.
        if (reads || writes) && !mem::replace(&mut state.has_reader, true) {
            return Waiting::Reads { reads, writes };
        }
        let time = Duration::from_millis(milliseconds);
        state = self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
        state.waiters -= 1;
        Waiting::Over
    }

    /// Waits for the socket, as [`Multiplexed::wait`] has said. `true`: a signal has come.
    pub(crate) fn wait_for_socket(&self, reads: bool, writes: bool, milliseconds: u64) -> bool {
        let is_interrupted = self.wakeup.wait_with(self.fd(), reads, writes, milliseconds);
        let mut state = self.lock();
        state.has_reader = false;
        state.waiters -= 1;
        // Another one reads from now on.
        self.changed.notify_all();
        is_interrupted
    }
}

/// Bytes of content behind this head, as far as it says.
fn length_of_content(status: u16, fields: &[u8], to_head: bool) -> Option<u64> {
    const NAME: &[u8] = b"content-length:";
    if to_head || matches!(status, 204 | 304) {
        return Some(0);
    }
    let mut lines = fields.split(|&byte| byte == b'\n');
    let line = lines.find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)))?;
    std::str::from_utf8(line[NAME.len()..].trim_ascii()).ok()?.parse().ok()
}

/// Status, and the lines of the fields.
fn parts_of_head(head: &[u8]) -> (u16, &[u8]) {
    let line = head.iter().position(|&byte| byte == b'\n').map_or(head.len(), |at| at + 1);
    let (status, fields) = head.split_at(line);
    let code = status.split(|&byte| byte == b' ').nth(1).and_then(|code| code.get(..3));
    let code = code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok()).unwrap_or(500);
    (code, fields.strip_suffix(b"\r\n").unwrap_or(fields))
}
