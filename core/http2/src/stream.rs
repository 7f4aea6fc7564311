//! State of a stream, and the streams of a connection (RFC 9113 section 5.1).

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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

/// Whether the window of a stream stays as it is while another upload is received, see [`crate::Connection::widen`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It was never asked for.
    No,
    /// So many bytes had come of uploads with a wide window when this was looked at.
    Held(u64),
    /// Not any more.
    Over,
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
    /// Bytes that the client may send before the first of them is consumed.
    pub(crate) window: u32,
    /// Bytes that the client may send.
    pub(crate) receive_window: i64,
    /// Bytes of content that the embedding has not consumed yet.
    pub(crate) unconsumed: u32,
    /// Bytes that are consumed, and not yet allowed to the client again.
    pub(crate) credit: u32,
    /// The embedding waits for content.
    pub(crate) is_awaited: bool,
    pub(crate) hold: Hold,
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

/// The place of a stream in the queue: urgency; whether it is incremental; its number if it is not, and else its turn; its number.
type Place = (u8, bool, u64, u32);

/// The streams of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    open: BTreeMap<u32, Stream>,
    /// Streams that ended last, the oldest first.
    ended: VecDeque<(u32, Closed)>,
    /// The largest number of those that ended before.
    forgotten: u32,
    /// The largest identifier that the client has used.
    pub(crate) last: u32,
    /// Streams that have content to send and a window for it.
    queue: BTreeSet<Place>,
    /// The stream that sends what waits on it: no other one that is not more urgent sends in the meantime.
    pub(crate) holder: Option<u32>,
    next_turn: u64,
    /// The embedding has waited for content since no stream was found whose content is awaited.
    pub(crate) may_be_awaited: bool,
}

impl Stream {
    /// Whether the client may send all that is missing of the content.
    pub(crate) fn allows_rest(&self) -> bool {
        self.announced.is_some_and(|length| length.saturating_sub(self.received) <= self.receive_window.max(0) as u64)
    }

    /// Whether its window is held. That of a request that was refused is not: it needs none.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.hold, Hold::Held(_)) && self.receiving == Receiving::Content
    }

    /// Its place in the queue; `None`: it waits for no turn, or its window is closed.
    fn place(&self, id: u32) -> Option<Place> {
        let turn = self.turn.filter(|_| self.send_window > 0 && self.closed.is_none())?;
        let Priority { urgency, is_incremental } = self.priority;
        Some((urgency, is_incremental, if is_incremental { turn } else { id.into() }, id))
    }
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

    /// How a stream that is not open has ended; `None`: it never was.
    pub(crate) fn closed(&self, id: u32) -> Option<Closed> {
        let reset = self.open.get(&id).and_then(|stream| stream.closed);
        let known = || self.ended.iter().rev().find(|(ended, _)| *ended == id).map(|(_, closed)| *closed);
        // It may be one that this side has reset before the client was through, so its late frames are no error.
        reset.or_else(known).or_else(|| (id <= self.forgotten).then_some(Closed::ByServer))
    }

    /// Changes what the place of a stream in the queue follows from. `None`: the stream is not open.
    fn change<T>(&mut self, id: u32, change: impl FnOnce(&mut Stream) -> T) -> Option<T> {
        let stream = self.open.get_mut(&id).filter(|stream| stream.closed.is_none())?;
        let before = stream.place(id);
        let result = change(stream);
        let after = stream.place(id);
        if before != after {
            before.map(|place| self.queue.remove(&place));
            self.queue.extend(after);
        }
        Some(result)
    }

    /// Changes the window of an open stream and returns it.
    pub(crate) fn change_window(&mut self, id: u32, change: i64) -> Option<i64> {
        self.change(id, |stream| {
            stream.send_window += change;
            stream.send_window
        })
    }

    /// Changes the windows of all open streams. Returns the largest.
    pub(crate) fn change_windows(&mut self, change: i64) -> i64 {
        self.queue.clear();
        let mut most = 0;
        for (id, stream) in self.open.iter_mut().filter(|(_, stream)| stream.closed.is_none()) {
            stream.send_window += change;
            most = most.max(stream.send_window);
            self.queue.extend(stream.place(*id));
        }
        most
    }

    /// Changes the priority of an open stream; `false`: it is not open.
    pub(crate) fn prioritize(&mut self, id: u32, change: impl FnOnce(&mut Priority)) -> bool {
        self.change(id, |stream| change(&mut stream.priority)).is_some()
    }

    /// Marks a stream as reset until the embedding lets go of it.
    pub(crate) fn reset(&mut self, id: u32, closed: Closed) {
        self.change(id, |stream| {
            stream.closed = Some(closed);
            stream.sending = Sending::Reset;
        });
    }

    /// Removes a stream and remembers how it has ended.
    pub(crate) fn remove(&mut self, id: u32, closed: Closed) {
        self.leave_queue(id);
        let closed = self.open.remove(&id).and_then(|stream| stream.closed).unwrap_or(closed);
        self.remember(id, closed);
    }

    /// Remembers how a stream has ended that was never added.
    pub(crate) fn remember(&mut self, id: u32, closed: Closed) {
        if self.ended.len() >= Options::REMEMBERED_STREAMS
            && let Some((oldest, _)) = self.ended.pop_front()
        {
            self.forgotten = self.forgotten.max(oldest);
        }
        self.ended.push_back((id, closed));
    }

    /// Whether the embedding has yet to let go of a stream that was reset.
    pub(crate) fn is_reset(&self, id: u32) -> bool {
        self.open.get(&id).is_some_and(|stream| stream.closed.is_some())
    }

    /// Puts a stream at the end of the queue of those that have content to send.
    pub(crate) fn queue(&mut self, id: u32) {
        let turn = self.next_turn;
        self.next_turn += 1;
        self.change(id, |stream| stream.turn = Some(turn));
    }

    /// Removes a stream from the queue.
    pub(crate) fn leave_queue(&mut self, id: u32) {
        self.change(id, |stream| stream.turn = None);
    }

    /// Whether streams have content to send and a window for it, and none that is as urgent sends.
    pub(crate) fn may_grant(&self) -> bool {
        let first = self.queue.first();
        first.is_some_and(|(urgency, ..)| self.holder().is_none_or(|holder| *urgency < holder.priority.urgency))
    }

    /// Makes the windows for content of the client smaller, of all open streams. Returns those that are not held, and of which content
    /// is consumed that the client is not allowed again yet.
    pub(crate) fn narrow(&mut self, less: u32) -> Vec<u32> {
        for stream in self.open.values_mut() {
            stream.window -= less;
            stream.receive_window -= i64::from(less);
        }
        let has_credit = |stream: &Stream| stream.credit > 0 && !stream.is_held() && stream.closed.is_none();
        self.open.iter().filter(|(_, stream)| has_credit(stream)).map(|(id, _)| *id).collect()
    }

    /// Whether the embedding waits for content of any stream. Looks through all streams only once for each that was awaited since.
    pub(crate) fn is_any_awaited(&mut self) -> bool {
        let is_awaited = |stream: &Stream| stream.is_awaited && stream.receiving == Receiving::Content;
        self.may_be_awaited =
            self.may_be_awaited && self.open.values().any(|stream| is_awaited(stream) && stream.closed.is_none());
        self.may_be_awaited
    }

    /// The streams whose windows are held, the oldest first.
    pub(crate) fn held(&mut self) -> impl Iterator<Item = (u32, &mut Stream)> {
        let is_held = |stream: &Stream| stream.is_held() && stream.closed.is_none();
        self.open.iter_mut().filter(move |(_, stream)| is_held(stream)).map(|(id, stream)| (*id, stream))
    }

    /// The stream that sends what waits on it, if it is still open.
    pub(crate) fn holder(&self) -> Option<&Stream> {
        self.holder.and_then(|holder| self.peek(holder))
    }

    /// Whether the turn can be that of this stream: none has it, or one that is less urgent.
    pub(crate) fn may_hold(&self, id: u32) -> bool {
        let Some(stream) = self.peek(id) else { return false };
        self.holder().is_none_or(|holder| stream.priority.urgency < holder.priority.urgency)
    }

    /// Whether a stream with content to send keeps others waiting: those that are less urgent, or all of its urgency.
    pub(crate) fn keeps_others(&self, id: u32) -> bool {
        let Some(Priority { urgency, is_incremental }) = self.peek(id).map(|stream| stream.priority) else {
            return false;
        };
        !is_incremental || self.open.values().any(|other| other.priority.urgency > urgency)
    }

    /// Takes the first stream out of the queue and gives it the turn.
    pub(crate) fn grant(&mut self) -> Option<u32> {
        let (.., id) = self.first_in_queue()?;
        self.change(id, |stream| {
            stream.turn = None;
            stream.is_granted = true;
        });
        Some(id)
    }

    /// The stream that comes first: by urgency; streams that are not incremental one after the other, in the order of their
    /// requests, and the others in turn (RFC 9218 section 10).
    fn first_in_queue(&self) -> Option<Place> {
        let first = *self.queue.first()?;
        let (urgency, is_incremental, ..) = first;
        if is_incremental {
            return Some(first);
        }
        // Of those that are not incremental, the first request takes turns with the incremental ones.
        let incremental = self.queue.range((urgency, true, 0, 0)..).next().filter(|other| other.0 == urgency);
        let turn = |place: &Place| self.open.get(&place.3).and_then(|stream| stream.turn);
        match incremental {
            Some(other) if turn(other) < turn(&first) => Some(*other),
            _ => Some(first),
        }
    }

    /// Whether a stream of the queue, or the one that sends, comes before this one, which has content to send.
    pub(crate) fn is_preceded(&self, id: u32) -> bool {
        let Some(stream) = self.open.get(&id) else { return false };
        let holder = self.holder().filter(|_| self.holder != Some(id));
        if holder.is_some_and(|holder| holder.priority.urgency <= stream.priority.urgency) {
            return true;
        }
        let Some(first) = self.first_in_queue() else { return false };
        let (urgency, is_incremental, _, other) = first;
        match urgency.cmp(&stream.priority.urgency) {
            _ if other == id => false,
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => !stream.is_granted && (is_incremental || stream.priority.is_incremental || other < id),
        }
    }

    /// Whether another stream of the same urgency waits for its turn.
    pub(crate) fn shares_turns(&self, id: u32) -> bool {
        let Some(stream) = self.open.get(&id).filter(|_| !self.queue.is_empty()) else { return false };
        let Priority { urgency, is_incremental } = stream.priority;
        // Two that are not incremental do not take turns.
        let mut others = self.queue.range((urgency, !is_incremental, 0, 0)..(urgency + 1, false, 0, 0));
        others.any(|(.., other)| *other != id)
    }
}
