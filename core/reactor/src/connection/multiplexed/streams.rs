//! The streams of a connection: the state of each, and what received bytes change in them.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Weak};

use poorhttp_http::Reject;
use rustc_hash::FxBuildHasher;

use crate::connection::send_queue::Flushed;
use crate::connection::stream_protocol::{StreamEvent, StreamProtocol, StreamRequest};
use crate::sys::clock;
use crate::sys::wakeup::Wakeup;

/// What the response of a stream waits in. Called without the lock of the connection, which this locks.
pub(crate) trait ResponseQueue: Send + Sync {
    /// Sends on the stream what it takes.
    fn send_on(&self) -> Flushed;

    /// Whether a function waits for room in it.
    fn is_awaited(&self) -> bool;
}

poorhttp_interface::debug_by_name!(ResponseQueue);

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

/// How the client has ended its side of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    Complete,
    /// To be answered with this status.
    Refused(Reject),
    /// It has left.
    Reset,
}

/// Memory in which content of a stream is gathered, from `begin` on; there is room up to `end`.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) bytes: Vec<u8>,
    pub(crate) begin: usize,
    pub(crate) filled: usize,
    pub(crate) end: usize,
}

#[derive(Debug, Default)]
pub(super) struct StreamState {
    pub(super) slot: Option<Slot>,
    /// The turn in which its client has ended its side.
    pub(super) turn: u32,
    /// What its response waits in.
    pub(super) queue: Option<Weak<dyn ResponseQueue>>,
    /// How often the response was sent on from there.
    pub(super) sent_on: u32,
    /// Content that nobody has received yet, bounded by the window, and how much of it has been.
    pub(super) input: Vec<u8>,
    pub(super) taken: usize,
    /// Room of whoever receives, into which content is written at once. In a box, as most streams have none.
    pub(super) lent: Option<Box<Lent>>,
    pub(super) end: Option<InputEnd>,
    /// The beginning of a response head.
    pub(super) head: Vec<u8>,
    pub(super) has_head: bool,
    /// The request is HEAD: a response has no content.
    pub(super) is_head: bool,
    /// Content that is still to be sent, if the head of the response says how much.
    pub(super) left: Option<u64>,
    /// The client has got the end of the response with its last bytes.
    pub(super) is_complete: bool,
    /// Lines of trailer fields, which end the response.
    pub(super) trailers: Vec<u8>,
    /// The response has ended, or the stream was reset by us.
    pub(super) has_ended: bool,
    /// Not all content was taken, and nobody has been told since that more would be.
    pub(super) is_blocked: bool,
}

impl StreamState {
    pub(super) fn has_input(&self) -> bool {
        self.taken < self.input.len() || self.lent.as_ref().is_some_and(|lent| lent.filled > lent.begin)
    }

    /// Adds content: where there is room for it, and else to the input. `spare`: memory for that.
    fn add(&mut self, mut content: &[u8], spare: &mut Vec<u8>) {
        if let Some(lent) = &mut self.lent
            && self.taken == self.input.len()
        {
            let (part, rest) = content.split_at(content.len().min(lent.end - lent.filled));
            lent.bytes[lent.filled..lent.filled + part.len()].copy_from_slice(part);
            lent.filled += part.len();
            content = rest;
        }
        if content.is_empty() {
            return;
        }
        if self.taken == self.input.len() {
            self.input.clear();
            self.taken = 0;
        }
        if self.input.capacity() == 0 {
            mem::swap(&mut self.input, spare);
        }
        self.input.extend_from_slice(content);
    }

    /// Makes what is in the room that was lent input as any other.
    pub(super) fn end_loan(&mut self) {
        if let Some(lent) = self.lent.take() {
            self.input.splice(..self.taken, lent.bytes[lent.begin..lent.filled].iter().copied());
            self.taken = 0;
        }
    }

    /// The client has left, so nobody receives what is left of the content.
    pub(super) fn leave(&mut self) {
        self.end = Some(InputEnd::Reset);
        (self.input, self.taken, self.lent) = (Vec::new(), 0, None);
    }

    /// Whether its request was complete in this turn, and nothing of the response has come.
    pub(super) fn is_unanswered(&self, turn: u32) -> bool {
        self.turn == turn && self.may_complete() && !self.has_head && !self.has_ended
    }

    /// Whether the response may end with its last bytes: those that the client still sends would be refused from then on.
    pub(super) fn may_complete(&self) -> bool {
        self.end == Some(InputEnd::Complete)
    }
}

/// What the lock of a connection guards.
#[derive(Debug)]
pub(super) struct State {
    pub(super) protocol: Box<dyn StreamProtocol>,
    pub(super) streams: HashMap<u32, StreamState, FxBuildHasher>,
    /// Memory for the content of the next stream that has some; empty while there is no stream.
    pub(super) spare: Vec<u8>,
    /// Streams so far.
    pub(super) served: u32,
    /// The client sends nothing more.
    pub(super) has_ended: bool,
    /// Nothing can be sent any more.
    pub(super) is_lost: bool,
    pub(super) is_failed: bool,
    /// Since when the server stops; this and the following times are in milliseconds of [`clock::now`].
    pub(super) stopping_since: Option<u64>,
    /// Since when there is no stream.
    pub(super) idle_since: u64,
    /// Since when the client owes the rest of a frame.
    pub(super) partial_since: Option<u64>,
    /// Up to when the protocol knows that time has passed.
    pub(super) passed: u64,
    /// The client is not read until output is sent.
    pub(super) rests: bool,
    /// Bytes to be received in the next turn.
    pub(super) room: usize,
    /// Until when a response waits for those that follow, in microseconds of [`clock::precise_us`].
    pub(super) coalesced_until: u64,
    /// [`CoalescedSender`] will send what waits.
    pub(super) is_listed: bool,
    /// A thread sends what waits on the streams.
    pub(super) is_sending: bool,
    /// Turns of the connection so far; after the last one by a thread that runs no requests.
    pub(super) turns: u32,
    pub(super) turns_of_reader: u32,
    /// Threads that wait; one of them waits for the socket, and is woken by this. An idle connection has no descriptor for it.
    pub(super) waiters: u32,
    pub(super) reader: Option<Arc<Wakeup>>,
    /// Counts what threads may have waited for.
    pub(super) changes: u64,
}

impl State {
    /// Whether output waits that can still be sent.
    pub(super) fn has_unsent(&self) -> bool {
        !self.is_lost && !self.protocol.output().is_empty()
    }

    /// Tells the protocol of the seconds that have passed.
    pub(super) fn note_time(&mut self) {
        let seconds = clock::now().saturating_sub(self.passed) / 1_000;
        if seconds > 0 {
            self.passed += seconds * 1_000;
            self.protocol.pass(u32::try_from(seconds).unwrap_or(u32::MAX));
        }
    }

    /// Notes whether a client without streams has begun something.
    pub(super) fn note_partial(&mut self) {
        match self.streams.is_empty() && self.protocol.is_mid_frame() {
            true => _ = self.partial_since.get_or_insert_with(clock::now),
            false => self.partial_since = None,
        }
    }

    /// Takes received bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8], turn: &mut Turn) {
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
                        state.add(bytes, &mut self.spare);
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
    pub(super) fn tell_end(&self, turn: &mut Turn) {
        let slots = self.streams.values().filter_map(|stream| stream.slot);
        turn.ready.extend(slots.map(|slot| Ready { slot, readable: true, writable: true, hangup: true }));
    }

    pub(super) fn begin(&mut self, stream: u32, end: Option<InputEnd>, is_head: bool) {
        self.served = self.served.saturating_add(1);
        let turn = self.turns;
        self.streams.insert(stream, StreamState { end, is_head, turn, ..StreamState::default() });
    }

    pub(super) fn end(&mut self, stream: u32, end: InputEnd, turn: &mut Turn) {
        if let Some(state) = self.streams.get_mut(&stream) {
            (state.end, state.turn) = (Some(end), self.turns);
            let is_reset = end == InputEnd::Reset;
            if is_reset {
                // Its window is open again, and all threads may be busy.
                state.leave();
            }
            turn.ready.extend(state.slot.map(|slot| Ready {
                slot,
                readable: true,
                writable: is_reset,
                hangup: is_reset,
            }));
        }
    }
}
