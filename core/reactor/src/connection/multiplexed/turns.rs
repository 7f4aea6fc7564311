//! The turn of a connection: receives for all its streams, and has them send.

use std::cell::RefCell;
use std::mem;

use crate::connection::multiplexed::Multiplexed;
use crate::connection::multiplexed::streams::{Ready, Turn};
use crate::connection::send_queue::Flushed;
use crate::sys::{Errno, clock};

/// Bytes received in a turn: content stays in the cache of the processor until its stream has its turn.
pub(super) const ROOM: usize = 64 << 10;

thread_local! {
    /// What is received is taken from here at once.
    static ROOM_OF_THREAD: RefCell<Box<[u8]>> = RefCell::new(vec![0; ROOM].into());
}

/// Streams that send [`crate::limits::SENT_AT_ONCE`] and have more, before others than this connection have their turn.
const LONG_TURNS: u32 = 4;

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
}
