//! State of a stream, and the streams of a connection (RFC 9113 section 5.1).

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use crate::error::ErrorCode;
use crate::options::Options;
use crate::priority::Priority;

/// What comes from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// Content, perhaps trailers.
    Content,
    /// Content that nobody needs: the request was refused.
    Discarded,
    /// Nothing more: the client has ended its side.
    Ended,
}

/// What goes to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The head of the response is to come, perhaps after interim ones.
    Head,
    /// Content, perhaps trailers.
    Content,
    /// Nothing: the stream was reset. The embedding has not let go of it yet.
    Reset,
}

/// How a stream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// Both sides have ended it.
    Complete,
    /// The client has reset it.
    ByClient,
    /// This side has reset it: frames that were under way are ignored.
    ByServer,
}

/// Why a stream cannot send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The client allows no more content on this stream.
    StreamWindow,
    /// The client allows no more content on this connection.
    ConnectionWindow,
    /// Output has to be sent first.
    Output,
    /// It is the turn of another stream.
    Turn,
}

/// A stream that is open, or that was reset and is still known to the embedding.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) receiving: Receiving,
    pub(crate) sending: Sending,
    /// How it was reset, if it was.
    pub(crate) closed: Option<Closed>,
    /// Bytes that the client allows; negative after a setting has made the window smaller.
    pub(crate) send_window: i64,
    /// Bytes that the client may send.
    pub(crate) receive_window: i64,
    /// Bytes of content that the embedding has not consumed yet.
    pub(crate) unconsumed: u32,
    /// Bytes that are consumed, and not yet allowed to the client again.
    pub(crate) credit: u32,
    /// Content-Length.
    pub(crate) announced: Option<u64>,
    /// Bytes of content received.
    pub(crate) received: u64,
    pub(crate) priority: Priority,
    /// Its place in the queue of those that have content to send and could not.
    pub(crate) turn: Option<u64>,
    /// Its turn has come and is not used yet.
    pub(crate) is_granted: bool,
    /// The request was malformed: the stream is reset with this code after the response.
    pub(crate) fault: Option<ErrorCode>,
}

/// The streams of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    open: BTreeMap<u32, Stream>,
    /// Streams that ended last, the oldest first.
    ended: VecDeque<(u32, Closed)>,
    /// The largest identifier that the client has used.
    pub(crate) last: u32,
    /// Streams with a turn.
    waiting: usize,
    next_turn: u64,
}

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn add(&mut self, id: u32, stream: Stream) {
        self.open.insert(id, stream);
    }

    /// The stream, unless it was reset.
    pub(crate) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        self.open.get_mut(&id).filter(|stream| stream.closed.is_none())
    }

    /// The same, to look at.
    pub(crate) fn peek(&self, id: u32) -> Option<&Stream> {
        self.open.get(&id).filter(|stream| stream.closed.is_none())
    }

    /// All streams that were not reset.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Stream)> {
        self.open.iter_mut().map(|(id, stream)| (*id, stream)).filter(|(_, stream)| stream.closed.is_none())
    }

    /// How a stream that is not open has ended; `None`: it never was, or that is long ago.
    pub(crate) fn closed(&self, id: u32) -> Option<Closed> {
        let reset = self.open.get(&id).and_then(|stream| stream.closed);
        reset.or_else(|| self.ended.iter().rev().find(|(ended, _)| *ended == id).map(|(_, closed)| *closed))
    }

    /// Marks a stream as reset until the embedding lets go of it.
    pub(crate) fn reset(&mut self, id: u32, closed: Closed) {
        self.leave_queue(id);
        if let Some(stream) = self.open.get_mut(&id) {
            stream.closed = Some(closed);
            stream.sending = Sending::Reset;
        }
    }

    /// Removes a stream and remembers how it has ended.
    pub(crate) fn remove(&mut self, id: u32, closed: Closed) {
        self.leave_queue(id);
        let closed = self.open.remove(&id).and_then(|stream| stream.closed).unwrap_or(closed);
        self.remember(id, closed);
    }

    /// Remembers how a stream has ended that was never added.
    pub(crate) fn remember(&mut self, id: u32, closed: Closed) {
        if self.ended.len() >= Options::REMEMBERED_STREAMS {
            self.ended.pop_front();
        }
        self.ended.push_back((id, closed));
    }

    /// Whether the embedding has yet to let go of a stream that was reset.
    pub(crate) fn is_reset(&self, id: u32) -> bool {
        self.open.get(&id).is_some_and(|stream| stream.closed.is_some())
    }

    /// Puts a stream at the end of the queue of those that have content to send.
    pub(crate) fn queue(&mut self, id: u32) {
        if let Some(stream) = self.open.get_mut(&id).filter(|stream| stream.closed.is_none()) {
            self.waiting += usize::from(stream.turn.is_none());
            stream.turn = Some(self.next_turn);
            self.next_turn += 1;
        }
    }

    /// Takes the first stream out of the queue and gives it the turn.
    pub(crate) fn grant(&mut self) -> Option<u32> {
        let id = self.first_in_queue()?;
        self.leave_queue(id);
        if let Some(stream) = self.open.get_mut(&id) {
            stream.is_granted = true;
        }
        Some(id)
    }

    /// Removes a stream from the queue.
    pub(crate) fn leave_queue(&mut self, id: u32) {
        if let Some(stream) = self.open.get_mut(&id) {
            self.waiting -= usize::from(stream.turn.take().is_some());
        }
    }

    /// The stream in the queue whose window allows content and that comes first: by urgency; streams that are not incremental one
    /// after the other, in the order of their requests, and the others in turn (RFC 9218 section 10).
    pub(crate) fn first_in_queue(&self) -> Option<u32> {
        if self.waiting == 0 {
            return None;
        }
        let can_send = |stream: &&Stream| stream.turn.is_some() && stream.send_window > 0;
        let waiting = || self.open.iter().filter(|(_, stream)| can_send(stream));
        let urgency = waiting().map(|(_, stream)| stream.priority.urgency).min()?;
        let mut sequential = false;
        let first = waiting().filter(|(_, stream)| stream.priority.urgency == urgency).filter(|(_, stream)| {
            // Of those that are not incremental, only the first request.
            stream.priority.is_incremental || !std::mem::replace(&mut sequential, true)
        });
        first.min_by_key(|(_, stream)| stream.turn).map(|(id, _)| *id)
    }

    /// Whether a stream of the queue comes before this one, which has content to send.
    pub(crate) fn is_preceded(&self, id: u32) -> bool {
        let (Some(stream), Some(first)) = (self.open.get(&id), self.first_in_queue()) else { return false };
        let other = &self.open[&first];
        let takes_turns = other.priority.is_incremental || stream.priority.is_incremental;
        match other.priority.urgency.cmp(&stream.priority.urgency) {
            _ if first == id => false,
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => !stream.is_granted && (takes_turns || first < id),
        }
    }

    /// Whether another stream of the same urgency waits for its turn.
    pub(crate) fn shares_turns(&self, id: u32) -> bool {
        self.waiting > 0
            && self.open.get(&id).is_some_and(|stream| {
                self.open.iter().any(|(other, waiting)| {
                    *other != id
                        && waiting.turn.is_some()
                        && waiting.send_window > 0
                        && waiting.priority.urgency == stream.priority.urgency
                        && (waiting.priority.is_incremental || stream.priority.is_incremental)
                })
            })
    }
}
