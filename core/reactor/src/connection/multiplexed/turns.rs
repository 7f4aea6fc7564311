//! The turn of a connection: receives for all its streams, and has them send.

use std::cell::RefCell;
use std::mem;

use crate::connection::coalesced::COALESCED_FOR;
use crate::connection::multiplexed::Multiplexed;
use crate::connection::multiplexed::streams::{Ready, Turn};
use crate::connection::send_queue::Flushed;
use crate::limits::SENT_AT_ONCE;
use crate::sys::{Errno, clock};

/// Most bytes received in a turn: content stays in the cache of the processor until its stream has its turn.
pub(super) const ROOM: usize = 64 << 10;
/// Bytes received in the first turn of a connection, and in each of one whose bytes take long.
pub(super) const LEAST_ROOM: usize = 4 << 10;
/// Microseconds for which a turn makes others wait: a connection whose turns take longer receives half as much in the next one.
const LONG_TURN: u64 = 250;

thread_local! {
    /// What is received is taken from here at once.
    static ROOM_OF_THREAD: RefCell<Box<[u8]>> = RefCell::new(vec![0; ROOM].into());
}

/// Bytes to receive in the next turn of a connection, after so many microseconds with so much.
fn next_room(room: usize, lasted: u64) -> usize {
    if lasted > LONG_TURN { (room / 2).max(LEAST_ROOM) } else { (room * 2).min(ROOM) }
}

/// Bytes that the streams send together before others than this connection have their turn. Each of them may exceed it by one piece.
const SENT_IN_TURN: u64 = 4 * SENT_AT_ONCE as u64;

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
        let (mut turn, mut total, began) = (Turn::default(), 0, clock::precise_us());
        let mut state = self.lock();
        let room = &mut room[..state.room];
        state.note_time();
        state.turns = state.turns.wrapping_add(1);
        self.flush(&mut state);
        if state.has_ended && !matches!(self.carrier.receive(room), Ok(_) | Err(Errno::AGAIN)) {
            // It had ended its side, and is gone now.
            state.is_lost = true;
            state.tell_end(&mut turn);
        }
        while !state.has_ended && !state.is_failed && state.protocol.wants_input() {
            if total >= room.len() {
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
                state.protocol.end_input();
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
            let now = clock::precise_us();
            state.coalesced_until = now + COALESCED_FOR;
            state.room = next_room(state.room, now.saturating_sub(began));
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
        let (mut ready, mut state, sent) = (Vec::new(), self.lock(), self.queued.sent());
        if mem::replace(&mut state.is_sending, true) {
            // Another thread does, and goes on with what has come by now.
            return (ready, false);
        }
        loop {
            let may_send = self.queued.sent() - sent < SENT_IN_TURN;
            let Some(stream) = may_send.then(|| state.protocol.next_writable()).flatten() else {
                // What all of them have sent leaves at once: the output is full, or nothing else waits.
                let has_output = state.has_unsent();
                self.flush(&mut state);
                match may_send && has_output && !state.has_unsent() {
                    true => continue,
                    false => break,
                }
            };
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Mutex, Weak};

    use super::*;
    use crate::connection::coalesced::CoalescedSender;
    use crate::connection::multiplexed::streams::ResponseQueue;
    use crate::connection::multiplexed::{Carrier, Origin, StreamOwner};
    use crate::connection::send_queue::Queued;
    use crate::connection::stream_protocol::{StreamEvent, StreamProtocol};
    use crate::sys::BorrowedFd;

    /// A protocol all of whose streams may send, the last first: a frame each, as long as the output has room.
    struct Writable {
        streams: Vec<u32>,
        frame: usize,
        output: Vec<u8>,
    }

    impl StreamProtocol for Writable {
        fn next_writable(&mut self) -> Option<u32> {
            let stream = if self.output.len() < ROOM { self.streams.pop() } else { None };
            self.output.resize(self.output.len() + stream.map_or(0, |_| self.frame), 0);
            stream
        }
        fn has_writable(&self) -> bool {
            !self.streams.is_empty()
        }
        fn end_turn(&mut self, _: u32, _: bool) {}
        fn receive<'a>(&mut self, _: &mut &'a [u8]) -> StreamEvent<'a> {
            StreamEvent::NeedMore
        }
        fn wants_input(&self) -> bool {
            true
        }
        fn consumed(&mut self, _: u32, _: u32) {}
        fn widen(&mut self, _: u32) {}
        fn send_head(&mut self, _: u32, _: u16, _: &[u8], _: bool) -> bool {
            false
        }
        fn send_data(&mut self, _: u32, _: &[u8], _: bool) -> Option<usize> {
            None
        }
        fn send_trailers(&mut self, _: u32, _: &[u8]) -> bool {
            false
        }
        fn begin_data(&mut self, _: u32, _: usize) -> usize {
            0
        }
        fn push_content(&mut self, _: &[u8]) {}
        fn room(&self, _: u32) -> usize {
            0
        }
        fn take_turn(&mut self, _: u32) -> bool {
            false
        }
        fn waits_for_turn(&self, _: u32) -> bool {
            false
        }
        fn end_input(&mut self) {}
        fn close(&mut self, _: u32) {}
        fn cancel(&mut self, _: u32) {}
        fn output(&self) -> &[u8] {
            &self.output
        }
        fn sent(&mut self, bytes: usize) {
            self.output.drain(..bytes);
        }
        fn pass(&mut self, _: u32) {}
        fn take_resets(&mut self) -> [u32; 2] {
            [0; 2]
        }
        fn is_mid_frame(&self) -> bool {
            false
        }
        fn begin_shutdown(&mut self) {}
        fn finish_shutdown(&mut self) {}
        fn is_finished(&self) -> bool {
            false
        }
    }

    /// Takes everything, and notes how much at once.
    struct Nowhere(std::fs::File, Mutex<Vec<usize>>);

    impl Carrier for Nowhere {
        fn receive(&self, _: &mut [u8]) -> Result<usize, Errno> {
            Err(Errno::AGAIN)
        }
        fn may_have_more(&self, _: usize, _: usize) -> bool {
            false
        }
        fn send(&self, bytes: &[u8], _: bool) -> Result<usize, Errno> {
            self.1.lock().unwrap().push(bytes.len());
            Ok(bytes.len())
        }
        fn sends_files(&self) -> bool {
            false
        }
        fn send_file(&self, _: BorrowedFd<'_>, _: &mut u64, _: usize) -> Result<usize, Errno> {
            Err(Errno::AGAIN)
        }
        fn fd(&self) -> BorrowedFd<'_> {
            crate::sys::AsFd::as_fd(&self.0)
        }
    }

    impl StreamOwner for Nowhere {
        fn tell(&self, _: &[Ready]) {}
    }

    /// A response of so many bytes, which the client takes at once.
    struct Response(usize, Arc<Queued>, AtomicU32);

    impl ResponseQueue for Response {
        fn send_on(&self) -> Flushed {
            self.2.fetch_add(1, Ordering::Relaxed);
            self.1.note_sent(self.0);
            Flushed::Everything
        }
        fn is_awaited(&self) -> bool {
            false
        }
    }

    /// So many streams, each with a response of so many bytes, of which the output has so many at once.
    fn connection(streams: u32, length: usize, frame: usize) -> (Multiplexed, Arc<Nowhere>, Arc<Response>) {
        let carrier = Arc::new(Nowhere(tempfile::tempfile().unwrap(), Mutex::default()));
        let owner: Weak<dyn StreamOwner> = Weak::<Nowhere>::new();
        let origin = Origin {
            listener: 0,
            peer: None,
            is_trusted: false,
            is_secure: true,
            over_tls: true,
            tls_variables: Vec::new(),
        };
        let protocol = Box::new(Writable { streams: (0..streams).collect(), frame, output: Vec::new() });
        let (sender, same) = (Arc::new(CoalescedSender::new()), Arc::clone(&carrier));
        let connection = Multiplexed::new(same, owner, sender, (0, 0), origin, protocol, Box::leak(Box::default()));
        let response = Arc::new(Response(length, Arc::clone(&connection.queued), AtomicU32::new(0)));
        for stream in 0..streams {
            connection.lock().begin(stream, None, false);
            let queue: Weak<Response> = Arc::downgrade(&response);
            connection.set_slot(stream, (stream, 0), queue);
        }
        (connection, carrier, response)
    }

    #[test]
    fn bytes_that_take_long_are_received_a_few_at_a_time() {
        let rooms = |lasted: u64| std::iter::successors(Some(ROOM), move |&room| Some(next_room(room, lasted)));
        assert_eq!(rooms(LONG_TURN + 1).take(6).collect::<Vec<_>>(), [65_536, 32_768, 16_384, 8_192, 4_096, 4_096]);
        assert_eq!(rooms(LONG_TURN).nth(1), Some(ROOM));
        assert_eq!(next_room(LEAST_ROOM, 0), 2 * LEAST_ROOM);
    }

    #[test]
    fn frames_of_streams_that_take_turns_leave_together() {
        let (streams, carrier, _) = connection(10, 16_375, 16_384);
        assert!(!streams.send_streams().1);
        assert_eq!(*carrier.1.lock().unwrap(), [4 * 16_384, 4 * 16_384, 2 * 16_384]);
    }

    #[test]
    fn many_responses_that_are_taken_at_once_are_more_than_one_turn() {
        const LENGTH: usize = 200_000;
        let (streams, _, response) = connection(40, LENGTH, 0);
        let mut turns = 1;
        while streams.send_streams().1 {
            turns += 1;
            assert!(response.2.swap(0, Ordering::Relaxed) as usize * LENGTH <= SENT_IN_TURN as usize + LENGTH);
        }
        assert!(turns >= 7);
    }
}
