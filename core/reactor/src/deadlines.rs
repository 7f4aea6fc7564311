//! When to look at which connection again.
//!
//! A connection's deadline moves with every request, so only a number is written then; the queue below holds at
//! most one entry that is early, and puts it back when its time comes and the deadline has moved on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Never.
pub(crate) const NEVER: u64 = u64::MAX;

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

/// All deadlines, in milliseconds of [`crate::clock::now`].
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    queue: BinaryHeap<Reverse<(u64, u32, u32)>>,
}

impl Deadlines {
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
    pub(crate) fn pop(&mut self, now: u64) -> Option<(u32, u32)> {
        if self.next() > now {
            return None;
        }
        self.queue.pop().map(|Reverse((_, index, generation))| (index, generation))
    }

    /// Whether the deadline of a popped entry has really passed. If not, it is queued again.
    pub(crate) fn has_passed(&mut self, deadline: &mut Deadline, now: u64, index: u32, generation: u32) -> bool {
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
    use super::*;

    #[test]
    fn a_deadline_that_moves_on_is_queued_once() {
        let (mut deadlines, mut one) = (Deadlines::default(), Deadline::default());
        for at in [10, 20, 30] {
            deadlines.set(&mut one, at, 1, 0);
        }
        assert_eq!(deadlines.queue.len(), 1);
        assert_eq!(deadlines.pop(9), None);
        assert_eq!(deadlines.pop(10), Some((1, 0)));
        assert!(!deadlines.has_passed(&mut one, 10, 1, 0));
        assert_eq!(deadlines.next(), 30);
        assert_eq!(deadlines.pop(30), Some((1, 0)));
        assert!(deadlines.has_passed(&mut one, 30, 1, 0));
        assert_eq!(deadlines.next(), NEVER);
    }

    #[test]
    fn a_deadline_that_moves_forward_is_seen_in_time() {
        let (mut deadlines, mut one) = (Deadlines::default(), Deadline::default());
        deadlines.set(&mut one, 100, 1, 0);
        deadlines.set(&mut one, 5, 1, 0);
        assert_eq!(deadlines.pop(5), Some((1, 0)));
        assert!(deadlines.has_passed(&mut one, 5, 1, 0));
    }
}
