//! An upper bound of how long requests have waited for a thread, from the times of polls.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::connection::Connection;
use crate::sys::clock::{self, NEVER};

/// Milliseconds from which on a request counts as having waited. Not less than a tick of the coarse clock (1 to 10 ms).
const NOTICEABLE: u64 = 10;

/// Upper bound of the time that pending requests have waited for others. All times are in milliseconds of [`crate::sys::clock::now`].
#[derive(Debug)]
pub(crate) struct QueueTime {
    /// End of the last request.
    ended: AtomicU64,
    /// When the poller last returned, or earlier; not later than `left`.
    polled: AtomicU64,
    /// Earliest time at which the events of the last poll can have arrived; [`NEVER`] if they have just arrived.
    arrived: AtomicU64,
    /// The same of what the last poll has left in the kernel's queues; [`NEVER`] if it has left nothing.
    left: AtomicU64,
    /// The external event loop has not had its turn since the last request was handed out, so it has not waited.
    in_turn: AtomicBool,
}

impl Default for QueueTime {
    fn default() -> Self {
        let (ended, polled) = (AtomicU64::new(0), AtomicU64::new(0));
        let (arrived, left) = (AtomicU64::new(NEVER), AtomicU64::new(NEVER));
        QueueTime { ended, polled, arrived, left, in_turn: AtomicBool::new(false) }
    }
}

impl QueueTime {
    /// Note the end of a request.
    #[inline]
    pub(crate) fn end(&self, now: u64) {
        self.ended.store(now, Ordering::Relaxed);
    }

    /// Whether requests have been run for so long since the last poll that what the next one reports may have waited.
    /// `outside`: an external event loop may have waited since.
    #[inline]
    pub(crate) fn is_late(&self, outside: bool) -> bool {
        let ended = self.ended.load(Ordering::Relaxed);
        let may_have_waited =
            || !self.in_turn.load(Ordering::Relaxed) && clock::now().saturating_sub(ended) >= NOTICEABLE;
        ended.saturating_sub(self.polled.load(Ordering::Relaxed)) >= NOTICEABLE && !(outside && may_have_waited())
    }

    /// Note whether the external event loop has been given a request, or has its turn.
    #[inline]
    pub(crate) fn set_in_turn(&self, in_turn: bool) {
        self.in_turn.store(in_turn, Ordering::Relaxed);
    }

    /// Note that the poller has returned.
    ///
    /// - `waited`: whether events were pending when the poller was asked; `None` if that is not known, which matters little
    ///   if the poll [is not late](QueueTime::is_late).
    /// - `is_single`: all events are for one connection, so no request waits behind another.
    /// - `pending`: some events of the previous poll are not handled yet.
    /// - `accepts`: the poll would have reported all connections that were left waiting.
    ///
    /// Returns whether several requests may be waiting.
    #[inline]
    pub(crate) fn polled(&self, waited: Option<bool>, is_single: bool, pending: bool, accepts: bool) -> bool {
        let (ended, left) = (self.ended.load(Ordering::Relaxed), self.left.load(Ordering::Relaxed));
        if is_single && !pending && left == NEVER && waited.is_none() {
            self.polled.store(ended, Ordering::Relaxed);
            self.arrived.store(NEVER, Ordering::Relaxed);
            false
        } else {
            self.polled_many(left, waited, pending, accepts);
            true
        }
    }

    #[inline(never)]
    fn polled_many(&self, left: u64, waited: Option<bool>, pending: bool, accepts: bool) {
        let now = clock::now();
        let arrived = match waited {
            Some(true) => self.polled.load(Ordering::Relaxed).min(left),
            Some(false) => now,
            None => now.min(left),
        };
        let before = if pending { self.arrived() } else { NEVER };
        self.arrived.store(arrived.min(before), Ordering::Relaxed);
        let left = if accepts { NEVER } else { left };
        self.left.store(left, Ordering::Relaxed);
        self.polled.store(now.min(left), Ordering::Relaxed);
    }

    /// Note that there may be more than the last poll has reported, and as old.
    pub(crate) fn note_rest(&self) {
        let arrived = self.arrived();
        self.left.store(arrived, Ordering::Relaxed);
        self.polled.fetch_min(arrived, Ordering::Relaxed);
    }

    /// Earliest time at which the events of the last poll can have arrived. To be asked under the lock under which a
    /// connection is taken: from then on another thread may poll.
    #[inline]
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Whether a request that was there at `since`, at the earliest, may have waited for others.
    #[inline]
    pub(crate) fn has_waited_since(&self, since: u64) -> bool {
        self.ended.load(Ordering::Relaxed).saturating_sub(since) >= NOTICEABLE
    }
}

/// Microseconds in which the poller answers if it does not have to wait.
const AT_ONCE: u64 = 100;

/// Times of polls, in microseconds of [`crate::sys::clock::precise_us`].
#[derive(Debug, Default)]
pub(crate) struct PollTimes {
    /// Polls so far; always 0 if times are not taken.
    count: u64,
    /// When all pending events had been reported.
    last: u64,
    /// Earliest time the pending events can have arrived.
    since: u64,
    /// The current poll had to wait for events.
    waited: bool,
}

impl PollTimes {
    /// The poller has returned from a call at `started`; 0: times are not taken. `is_unknown`: whether an external loop has
    /// waited before is not known, so events count as arrived at the call.
    #[inline]
    pub(crate) fn note_poll(&mut self, started: u64, is_unknown: bool) {
        if started != 0 {
            if is_unknown {
                self.last = started;
            }
            let now = clock::precise_us();
            self.waited = self.note_wait_until(started, now);
            self.since = self.last;
            self.last = now;
            self.count += 1;
        }
    }

    /// A thread has waited for events since `started`, unless some were pending. `true`: none were.
    pub(crate) fn note_wait(&mut self, started: u64) -> bool {
        self.note_wait_until(started, clock::precise_us())
    }

    #[inline]
    fn note_wait_until(&mut self, started: u64, now: u64) -> bool {
        let waited = self.last == 0 || now - started > AT_ONCE;
        if waited {
            self.last = now;
        }
        waited
    }

    /// A connection was let in.
    pub(crate) fn note_accepted(&self, connection: &mut Connection) {
        (connection.accepted_in_poll, connection.request.since) = (self.count, self.since);
    }

    /// Something has come on a connection.
    #[inline]
    pub(crate) fn note_event(&self, connection: &mut Connection) {
        // Bytes on a connection that the last poll accepted may be as old as the connection.
        if self.count != 0 && (self.waited || connection.accepted_in_poll + 1 != self.count) {
            connection.request.since = self.since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As if a request had ended and the poller had returned at these times.
    fn times(ended: u64, polled: u64) -> QueueTime {
        QueueTime { ended: AtomicU64::new(ended), polled: AtomicU64::new(polled), ..QueueTime::default() }
    }

    /// Milliseconds for which the requests of the last poll have waited for others, at most.
    fn waited(times: &QueueTime) -> u64 {
        times.ended.load(Ordering::Relaxed) - times.arrived()
    }

    #[test]
    fn a_request_of_an_idle_server_has_not_waited() {
        let times = times(1_000, 1_000);
        assert!(!times.is_late(false));
        times.polled(None, true, false, true);
        // Long afterwards another one is run, and it is the only one.
        times.end(clock::now());
        assert!(!times.has_waited_since(times.arrived()) && times.is_late(false));
        times.polled(Some(false), true, false, true);
        assert!(!times.has_waited_since(times.arrived()));
    }

    /// A busy machine may not run this process for some time between two requests; then nothing has waited for events.
    #[test]
    fn an_external_loop_without_a_turn_has_not_waited() {
        let now = clock::now();
        let times = times(now - NOTICEABLE, now - 3 * NOTICEABLE);
        assert!(!times.is_late(true) && times.is_late(false));
        times.set_in_turn(true);
        assert!(times.is_late(true));
        times.set_in_turn(false);
        assert!(!times.is_late(true));
        // Events that the poll before has left in the kernel's queues keep their age.
        times.polled(None, false, false, true);
        assert!(!times.has_waited_since(times.arrived()));
        times.arrived.store(now - 3 * NOTICEABLE, Ordering::Relaxed);
        times.note_rest();
        times.polled(None, false, false, true);
        assert!(times.has_waited_since(times.arrived()));
    }

    #[test]
    fn pending_events_may_be_as_old_as_the_previous_poll() {
        let now = clock::now();
        let times = times(now, now - NOTICEABLE);
        assert!(times.is_late(false));
        times.polled(Some(true), true, false, true);
        assert_eq!(waited(&times), NOTICEABLE);
        assert!(times.has_waited_since(times.arrived()) && !times.is_late(false));
        assert!(!times.has_waited_since(times.arrived().max(now - NOTICEABLE + 1)));
        times.polled(None, true, false, true);
        assert!(!times.has_waited_since(times.arrived()));
    }

    #[test]
    fn the_second_request_of_a_poll_waits_for_the_first() {
        let now = clock::now();
        let times = times(now, now);
        times.polled(None, false, false, true);
        assert!(!times.has_waited_since(times.arrived()));
        times.end(clock::now() + NOTICEABLE);
        assert!(times.has_waited_since(times.arrived()) && times.is_late(false));
    }

    #[test]
    fn connections_left_in_the_backlog_are_as_old_as_the_accepted_ones() {
        let now = clock::now();
        let times = times(now, now - 1_000);
        for _ in 0..3 {
            assert!(times.is_late(false));
            times.polled(Some(true), false, false, true);
            assert_eq!(waited(&times), 1_000);
            times.note_rest();
        }
        // While accepting is paused, the backlog stays.
        times.polled(Some(false), false, false, false);
        assert!(!times.has_waited_since(times.arrived()));
        times.polled(Some(true), false, false, true);
        assert_eq!(waited(&times), 1_000);
        assert!(!times.is_late(false));
    }

    #[test]
    fn a_poll_by_another_thread_does_not_change_a_request_taken_before() {
        let now = clock::now();
        let times = times(now, now - NOTICEABLE);
        times.polled(Some(true), true, false, true);
        let taken = times.arrived();
        times.polled(None, false, false, true);
        assert!(!times.has_waited_since(times.arrived()) && times.has_waited_since(taken));
    }

    #[test]
    fn connections_ready_before_a_poll_keep_their_age() {
        for (waited, is_single) in [(None, true), (None, false), (Some(false), true)] {
            let now = clock::now();
            let times = times(now, now - NOTICEABLE);
            times.polled(Some(true), false, false, true);
            times.polled(waited, is_single, true, true);
            assert!(times.has_waited_since(times.arrived()));
            times.polled(waited, is_single, false, true);
            assert!(!times.has_waited_since(times.arrived()));
        }
    }
}
