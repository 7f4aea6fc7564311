//! A connection with many streams: its protocol, its output and the state of its streams, shared by the threads that answer them.
//!
//! ```text
//! streams.rs   the state of each stream, and what received bytes change in them
//! turns.rs     receives for all streams, and has them send
//! stream.rs    receives and sends on one stream, resets it
//! mod.rs       the connection: what it sends, how it ends, and threads that wait for a stream
//! ```
//!
//! Whoever receives or sends on a stream takes the lock for a moment. Nothing here calls back: what has become of other streams is
//! returned, and [`crate::scheduler::streams`] passes it on.

pub(crate) mod stream;
pub(crate) mod streams;
mod turns;

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::connection::coalesced::{CoalescedSender, SendsLater};
use crate::connection::multiplexed::streams::{Ready, ResponseQueue, Slot, State};
use crate::connection::send_queue::Queued;
use crate::connection::stream_protocol::StreamProtocol;
use crate::limits::GATHERED;
use crate::status::Metrics;
use crate::sys::process::forks;
use crate::sys::wakeup::Wakeup;
use crate::sys::{BorrowedFd, Errno, clock};

/// The socket that carries the bytes of all streams.
pub(crate) trait Carrier: Send + Sync {
    /// Receives into `room`; see [`crate::sys::socket::Transport`].
    fn receive(&self, room: &mut [u8]) -> Result<usize, Errno>;

    /// Whether more may be there, after so many bytes were received into so much room.
    fn may_have_more(&self, received: usize, room: usize) -> bool;

    /// Sends. `more` follows at once.
    fn send(&self, bytes: &[u8], more: bool) -> Result<usize, Errno>;

    /// Whether the kernel can send a file.
    fn sends_files(&self) -> bool;

    /// Sends at most so many bytes of a file; see [`crate::sys::socket::Transport`].
    fn send_file(&self, file: BorrowedFd<'_>, at: &mut u64, most: usize) -> Result<usize, Errno>;

    /// Its descriptor.
    fn fd(&self) -> BorrowedFd<'_>;
}

poorhttp_interface::debug_by_name!(Carrier);

/// Who is told that a stream, or the connection itself, has something to do. Called without the lock of the connection.
pub(crate) trait StreamOwner: Send + Sync {
    fn tell(&self, events: &[Ready]);
}

poorhttp_interface::debug_by_name!(StreamOwner);

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

/// What a thread does that waits for a stream.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// It looks again.
    Over,
    /// It waits for the socket, in place of all.
    Reads { reads: bool, writes: bool, wakeup: Arc<Wakeup> },
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
    ) -> Self {
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
            room: turns::LEAST_ROOM,
            coalesced_until: 0,
            is_listed: false,
            is_sending: false,
            turns: 0,
            turns_of_reader: 0,
            waiters: 0,
            reader: None,
            changes: 0,
        };
        let (state, changed, is_waiting) = (Mutex::new(state), Condvar::new(), AtomicBool::new(false));
        metrics.http2_connections.fetch_add(1, Ordering::Relaxed);
        Multiplexed {
            carrier,
            owner,
            sender,
            slot,
            origin,
            queued: Arc::default(),
            state,
            changed,
            metrics,
            is_waiting,
            forks: forks(),
        }
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
        let ends = state.is_lost || state.has_ended || state.is_failed || state.protocol.is_finished();
        !state.has_unsent() && ends && state.streams.is_empty()
    }

    /// Whether the client has closed its side of the connection.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Since when the server stops, if it does.
    pub(crate) fn stopping_since(&self) -> Option<u64> {
        self.lock().stopping_since
    }

    /// Since when the client owes the rest of what it has begun without a stream, if it does.
    pub(crate) fn partial_since(&self) -> Option<u64> {
        self.lock().partial_since
    }

    /// Since when there is no stream and nothing to be sent; `None`: there is.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        let state = self.lock();
        (state.streams.is_empty() && !state.has_unsent()).then_some(state.idle_since)
    }

    /// Since when there is no stream, but the end of responses that the socket has yet to take; `None`: nothing of the kind.
    pub(crate) fn unsent_since(&self) -> Option<u64> {
        let state = self.lock();
        (state.streams.is_empty() && state.has_unsent()).then_some(state.idle_since)
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
        while state.has_unsent() {
            match self.carrier.send(state.protocol.output(), false) {
                Ok(bytes) => state.protocol.sent(bytes),
                Err(Errno::AGAIN) => break,
                Err(_) => state.is_lost = true,
            }
        }
        self.note_waiting(state);
    }

    /// The same at the end of a response. If responses to requests that came together are about to follow, it is sent with them, or
    /// within a millisecond. They are if those have come within the last millisecond, or if one response follows the
    /// other.
    fn flush_soon(self: &Arc<Self>, state: &mut State) {
        let (length, turn) = (state.protocol.output().len(), state.turns);
        if (1..GATHERED).contains(&length) && state.streams.values().any(|stream| stream.is_unanswered(turn)) {
            if !state.is_listed {
                let now = clock::precise_us();
                if self.sender.follows(now) || now < state.coalesced_until {
                    state.is_listed = self.sender.push(Arc::downgrade(self) as Weak<dyn SendsLater>);
                }
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
            if let Some(reader) = &state.reader {
                reader.wake();
            }
        }
    }

    /// The same, after streams have been told.
    pub(crate) fn wake_waiters(&self) {
        self.note_change(&mut self.lock());
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

/// Threads that wait for a stream: one of them waits for the socket, in place of all.
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
    /// call [`Multiplexed::wait_for_socket`].
    pub(crate) fn wait(&self, seen: u64, milliseconds: u64) -> Waiting {
        let mut state = self.lock();
        if state.changes != seen {
            return Waiting::Over;
        }
        state.waiters += 1;
        let reads = !state.has_ended && !state.is_failed && state.protocol.wants_input();
        let writes = !state.is_lost && !state.protocol.output().is_empty();
        // The end of the client's side would be reported again and again.
        if (reads || writes)
            && state.reader.is_none()
            && let Ok(wakeup) = Wakeup::new().map(Arc::new)
        {
            state.reader = Some(Arc::clone(&wakeup));
            return Waiting::Reads { reads, writes, wakeup };
        }
        let time = Duration::from_millis(milliseconds);
        state = self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
        state.waiters -= 1;
        Waiting::Over
    }

    /// Waits for the socket, as [`Multiplexed::wait`] has said. `true`: a signal has come.
    pub(crate) fn wait_for_socket(&self, wakeup: &Wakeup, reads: bool, writes: bool, milliseconds: u64) -> bool {
        let is_interrupted = wakeup.wait_with(self.fd(), reads, writes, milliseconds);
        let mut state = self.lock();
        state.reader = None;
        state.waiters -= 1;
        // Another one reads from now on.
        self.changed.notify_all();
        is_interrupted
    }
}
