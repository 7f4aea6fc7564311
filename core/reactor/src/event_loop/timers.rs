//! When to look at which connection again.
//!
//! A connection's deadline moves with every request, so only a number is written then; the queue below holds one entry
//! that counts, and puts it back when its time comes and the deadline has moved on. A deadline that moves forward gets
//! an earlier entry, and the later one is dropped when its time comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

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

/// A time, and the slot and generation of the connection to be looked at then.
pub(crate) type Entry = (u64, u32, u32);

/// All deadlines, in milliseconds of [`crate::sys::clock::now`].
#[derive(Debug, Default)]
pub(crate) struct Timers {
    queue: BinaryHeap<Reverse<Entry>>,
}

impl Timers {
    /// Moves a deadline; cheap if it moves to later. `true`: the alarm may have to be set earlier.
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

    /// When to look next.
    pub(crate) fn next(&self) -> u64 {
        self.queue.peek().map_or(NEVER, |Reverse((at, ..))| *at)
    }

    /// The next entry whose time has come.
    pub(crate) fn pop(&mut self, now: u64) -> Option<Entry> {
        if self.next() > now {
            return None;
        }
        self.queue.pop().map(|Reverse(entry)| entry)
    }

    /// Whether the deadline of a popped entry has really passed. If not, it is queued again, unless an earlier entry
    /// took its place: each of them would be put back for as long as the connection lives.
    pub(crate) fn has_passed(&mut self, deadline: &mut Deadline, now: u64, (at, index, generation): Entry) -> bool {
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
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::event_loop::poll;
    use crate::event_loop::reactor::Reactor;
    use crate::options::Options;

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
    fn a_deadline_that_moves_to_and_fro_does_not_fill_the_queue() {
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
    fn a_deadline_that_moves_forward_is_seen_in_time() {
        let (mut timers, mut one) = (Timers::default(), Deadline::default());
        timers.set(&mut one, 100, 1, 0);
        timers.set(&mut one, 5, 1, 0);
        assert_eq!(timers.pop(5), Some((5, 1, 0)));
        assert!(timers.has_passed(&mut one, 5, (5, 1, 0)));
    }

    /// When what has begun on the only connection must have ended.
    fn until(reactor: &Reactor) -> Option<u64> {
        reactor.lock().slots.occupied().find_map(|(_, slot)| slot.connection.as_ref().map(|found| found.until))
    }

    /// Serves until that is so.
    fn serve_until(reactor: &Arc<Reactor>, is_so: impl Fn(u64) -> bool) {
        let begun = Instant::now();
        while !until(reactor).is_some_and(&is_so) {
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", until(reactor));
            poll::poll(reactor, false).unwrap();
            assert!(reactor.try_next(true).is_none());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_deadline_of_an_empty_line_is_not_that_of_the_next_head() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let reactor = Reactor::new(vec![crate::sys::OwnedFd::from(listener)], Options::default()).unwrap();
        for _ in 0..2 {
            client.write_all(b"\r").unwrap();
            serve_until(&reactor, |until| until != 0);
            client.write_all(b"\n").unwrap();
            serve_until(&reactor, |until| until == 0);
        }
        client.write_all(b"GET").unwrap();
        serve_until(&reactor, |until| until != 0);
    }
}
