//! Timers: a heap of the deadlines of connections, and the times of periodic work.
//!
//! A deadline moves with every request, so only a number is written then; the heap holds one entry that counts, which is put
//! back when its time comes and the deadline has moved on. A deadline that moves forward gets an earlier entry, and the
//! later one is dropped when its time comes. The poller's timer is not set for entries that do not count any more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::scheduler::connections::Connections;
use crate::sys::clock::NEVER;

/// The deadline of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: u64,
    /// The earliest entry in the queue, [`NEVER`] if there is none.
    queued: u64,
}

impl Default for Deadline {
    fn default() -> Self {
        Deadline { at: NEVER, queued: NEVER }
    }
}

impl Deadline {
    /// When it passes.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }
}

/// A time, and the slot and generation of the connection whose deadline it is.
pub(crate) type QueuedDeadline = (u64, u32, u32);

/// Work that is due and may wait for a disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskWork {
    pub(crate) flush_log: bool,
    pub(crate) tidy: bool,
}

/// Everything that is due at some time, in milliseconds of [`crate::sys::clock::now`].
#[derive(Debug)]
pub(crate) struct Timers {
    queue: BinaryHeap<Reverse<QueuedDeadline>>,
    /// When the access log is to be flushed.
    flush_log: u64,
    /// When files and memory that are not needed any more are to be closed and freed.
    tidy: u64,
    /// When the timer of the poller will go off.
    armed_at: u64,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { queue: BinaryHeap::new(), flush_log: NEVER, tidy: NEVER, armed_at: NEVER }
    }
}

impl Timers {
    /// Moves a deadline; cheap if it moves to later. `true`: the timer of the poller may have to be set earlier.
    #[inline]
    pub(crate) fn set(&mut self, deadline: &mut Deadline, at: u64, index: u32, generation: u32) -> bool {
        deadline.at = at;
        let earlier = at < deadline.queued;
        if earlier {
            deadline.queued = at;
            self.queue.push(Reverse((at, index, generation)));
        }
        earlier
    }

    /// The access log is to be flushed then, unless it is to be earlier already. `true`: it was not.
    pub(crate) fn flush_log_at(&mut self, at: u64) -> bool {
        let is_new = self.flush_log == NEVER;
        if is_new {
            self.flush_log = at;
        }
        is_new
    }

    /// Whether work for a disk is due; it counts as done then.
    pub(crate) fn take_disk_work(&mut self, now: u64) -> DiskWork {
        let take = |at: &mut u64| {
            let is_due = *at <= now;
            if is_due {
                *at = NEVER;
            }
            is_due
        };
        DiskWork { flush_log: take(&mut self.flush_log), tidy: take(&mut self.tidy) }
    }

    /// When the timer of the poller must be set to go off, because it would go off later than the next of all, or than
    /// `due`; it counts as set then.
    #[inline]
    pub(crate) fn arm(&mut self, connections: &mut Connections, due: u64) -> Option<u64> {
        if self.next() < self.armed_at {
            self.skip_outdated(connections);
        }
        let due = self.next().min(self.flush_log).min(self.tidy).min(due);
        let is_earlier = due < self.armed_at;
        if is_earlier {
            self.armed_at = due;
        }
        is_earlier.then_some(due)
    }

    /// Removes outdated entries from the front of the queue. An entry is outdated if its connection has ended, has a later
    /// deadline now, or has no deadline: a connection that a thread reads or answers gets one when the thread puts it back, or
    /// when its client does not take the response.
    #[inline(never)]
    fn skip_outdated(&mut self, connections: &mut Connections) {
        while let Some(mut front) = self.queue.peek_mut() {
            let Reverse((at, index, generation)) = *front;
            if let Some(slot) = connections.get(index, generation)
                && slot.deadline.queued == at
            {
                if slot.connection.is_none() && slot.socket.as_ref().is_some_and(|socket| !socket.is_waiting()) {
                    slot.deadline = Deadline::default();
                } else if slot.deadline.at <= at {
                    return;
                }
                slot.deadline.queued = slot.deadline.at;
                if slot.deadline.at != NEVER {
                    *front = Reverse((slot.deadline.at, index, generation));
                    continue;
                }
            }
            PeekMut::pop(front);
        }
    }

    /// The timer of the poller has expired.
    pub(crate) fn disarm(&mut self) {
        self.armed_at = NEVER;
    }

    /// Files and memory are to be checked then.
    pub(crate) fn tidy_at(&mut self, at: u64) {
        self.tidy = at;
    }

    /// The earliest deadline.
    fn next(&self) -> u64 {
        self.queue.peek().map_or(NEVER, |Reverse((at, ..))| *at)
    }

    /// The next entry whose time has come.
    pub(crate) fn pop(&mut self, now: u64) -> Option<QueuedDeadline> {
        if self.next() > now {
            return None;
        }
        self.queue.pop().map(|Reverse(entry)| entry)
    }

    /// Whether the deadline of a popped entry has really passed. If not, it is queued again, unless an earlier entry
    /// took its place: each of them would be put back for as long as the connection lives.
    pub(crate) fn has_passed(
        &mut self,
        deadline: &mut Deadline,
        now: u64,
        (at, index, generation): QueuedDeadline,
    ) -> bool {
        if at != deadline.queued {
            return false;
        }
        deadline.queued = NEVER;
        if deadline.at <= now {
            deadline.at = NEVER;
            return true;
        }
        if deadline.at != NEVER {
            self.set(deadline, deadline.at, index, generation);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::connection::Connection;
    use crate::connection::shared_socket::SharedSocket;
    use crate::event_loop::r#loop;
    use crate::options::Options;
    use crate::scheduler::poll;
    use crate::scheduler::state::State;

    #[test]
    fn a_deadline_that_moves_on_is_queued_once() {
        let (mut timers, mut one) = (Timers::default(), Deadline::default());
        for at in [10, 20, 30] {
            timers.set(&mut one, at, 1, 0);
        }
        assert_eq!(timers.queue.len(), 1);
        assert_eq!(timers.pop(9), None);
        assert_eq!(timers.pop(10), Some((10, 1, 0)));
        assert!(!timers.has_passed(&mut one, 10, (10, 1, 0)));
        assert_eq!(timers.next(), 30);
        assert_eq!(timers.pop(30), Some((30, 1, 0)));
        assert!(timers.has_passed(&mut one, 30, (30, 1, 0)));
        assert_eq!(timers.next(), NEVER);
    }

    /// A head or a body in pieces moves the deadline forward again and again.
    #[test]
    fn a_deadline_that_moves_back_and_forth_does_not_fill_the_queue() {
        let (mut timers, mut one) = (Timers::default(), Deadline::default());
        for second in 0..10_000 {
            timers.set(&mut one, second + 10, 1, 0);
            timers.set(&mut one, second + 75, 1, 0);
            while let Some(entry) = timers.pop(second) {
                assert!(!timers.has_passed(&mut one, second, entry));
            }
        }
        assert!(timers.queue.len() <= 8, "{} entries", timers.queue.len());
    }

    #[test]
    fn an_earlier_deadline_passes_in_time() {
        let (mut timers, mut one) = (Timers::default(), Deadline::default());
        timers.set(&mut one, 100, 1, 0);
        timers.set(&mut one, 5, 1, 0);
        assert_eq!(timers.pop(5), Some((5, 1, 0)));
        assert!(timers.has_passed(&mut one, 5, (5, 1, 0)));
    }

    #[test]
    fn the_timer_is_set_only_for_deadlines_that_count() {
        let (mut timers, mut connections) = (Timers::default(), Connections::default());
        let occupied = [10, 20, 30, 40].map(|at| {
            let socket = Arc::new(SharedSocket::new(OwnedFd::from(tempfile::tempfile().unwrap()), Arc::default()));
            let (index, generation) = connections.occupy(Arc::clone(&socket));
            let slot = connections.of(index);
            timers.set(&mut slot.deadline, at, index, generation);
            slot.connection = Some(Box::new(Connection::new(index, generation, socket, 0, None)));
            index
        });
        let [ended, taken, later, _] = occupied;
        connections.vacate(ended);
        let connection = connections.of(taken).connection.take();
        timers.set(&mut connections.of(later).deadline, 50, later, 0);
        assert_eq!(timers.arm(&mut connections, NEVER), Some(40));
        assert_eq!(timers.arm(&mut connections, NEVER), None, "it is set already");
        assert_eq!(timers.queue.len(), 2);
        // The thread puts it back.
        let slot = connections.of(taken);
        slot.connection = connection;
        assert!(timers.set(&mut slot.deadline, 25, taken, 0));
        assert_eq!(timers.arm(&mut connections, NEVER), Some(25));
        timers.disarm();
        assert_eq!([(); 4].map(|()| timers.pop(NEVER).map_or(0, |(at, ..)| at)), [25, 40, 50, 0]);
    }

    /// The time limit of the only connection.
    fn until(state: &State) -> Option<u64> {
        state.lock().connections.occupied().find_map(|(_, slot)| slot.connection.as_ref().map(|found| found.time_limit))
    }

    /// Serves until that is so.
    fn serve_until(state: &Arc<State>, is_so: impl Fn(u64) -> bool) {
        let begun = Instant::now();
        while !until(state).is_some_and(&is_so) {
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", until(state));
            poll::poll(state, false).unwrap();
            assert!(r#loop::try_next(state, true).is_none());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_deadline_of_an_empty_line_is_not_that_of_the_next_head() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let state = State::new(vec![OwnedFd::from(listener).into()], Options::default()).unwrap();
        for _ in 0..2 {
            client.write_all(b"\r").unwrap();
            serve_until(&state, |until| until != 0);
            client.write_all(b"\n").unwrap();
            serve_until(&state, |until| until == 0);
        }
        client.write_all(b"GET").unwrap();
        serve_until(&state, |until| until != 0);
    }
}
