//! Status of a worker, in memory that outlives it: counters, requests in flight, slow requests and errors.
//!
//! The main process makes the memory before it forks the worker, which writes there. Any other process may read at any time,
//! also after the worker's death.
//!
//! ```text
//! counters.rs    counters that workers and the main process need to run
//! metrics.rs     the table of metrics, and those of its numbers that only those who watch the server need
//! histogram.rs   histogram of durations
//! in_flight.rs   requests in flight
//! finished.rs    the slowest requests and the last errors
//! refusals.rs    the last requests that the server itself has refused
//! recorder.rs    notes both for all threads of a worker
//! seqlock.rs     sequence numbers of entries, for readers in other processes
//! text.rs        text of limited length
//! ```

pub(crate) mod counters;
mod finished;
mod histogram;
mod in_flight;
pub(crate) mod metrics;
mod recorder;
mod refusals;
mod seqlock;
mod text;

use std::sync::atomic::{AtomicU64, Ordering};

pub use finished::Finished;
pub use histogram::{BOUNDS, BUCKETS, Histogram};
pub use in_flight::{InFlightRequest, SLOTS};
pub(crate) use metrics::{CLIENT_ABORT, Waiting};
pub use metrics::{Kind, METRICS, Metric, Metrics, Reading, Value};
pub(crate) use recorder::Recorder;
pub use refusals::Refusal;

use crate::status::counters::Counters;
use finished::{Entries, Index, Records};
use in_flight::{InFlight, Numbers, Slots};
use refusals::Refusals;

/// Numbers for the main process's own use.
const OWN_NUMBERS: usize = 16;

/// The status of one worker, or the sum of the statuses of ended workers, which the main process keeps in the same struct.
/// The fields that each request touches come first. All bytes zero: an empty status.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct WorkerStatus {
    /// Counters and gauges.
    pub counters: Counters,
    numbers: Numbers,
    index: Index,
    /// Odd while numbers of another status are being moved here.
    moves: AtomicU64,
    own: [AtomicU64; OWN_NUMBERS],
    slots: Slots,
    entries: Entries,
    refusals: Refusals,
}

impl WorkerStatus {
    /// Empties it for a new worker.
    pub fn clear(&self) {
        self.counters.clear();
        self.requests().clear();
        self.records().clear();
        self.refusals.clear();
    }

    /// Moves counters and entries of a worker that has ended here. Its requests in flight stay where they are.
    pub fn absorb(&self, ended: &Self) {
        let begun = self.moves.load(Ordering::Relaxed) | 1;
        self.moves.store(begun, Ordering::SeqCst);
        self.counters.add(&ended.counters, false);
        ended.counters.clear();
        self.records().take(ended.records());
        self.refusals.take(&ended.refusals);
        self.moves.store(begun.wrapping_add(1), Ordering::SeqCst);
    }

    /// Sequence number: odd while the main process moves the counters of an ended worker into this status. A reader that adds
    /// up this status and the worker's has the right sum if the number is even, and the same before and after the addition.
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::SeqCst)
    }

    /// A number for the main process's own use.
    pub fn own_number(&self, which: usize) -> u64 {
        self.own.get(which).map_or(0, |number| number.load(Ordering::Relaxed))
    }

    /// Adds to such a number.
    pub fn add_to_own_number(&self, which: usize, more: u64) {
        if let Some(number) = self.own.get(which) {
            number.fetch_add(more, Ordering::Relaxed);
        }
    }
}

/// Requests in flight.
impl WorkerStatus {
    #[inline]
    fn requests(&self) -> InFlight<'_> {
        InFlight { numbers: &self.numbers, slots: &self.slots }
    }

    /// Notes a request in a slot, in which it replaces another one. `id`: empty if it has none.
    #[inline]
    pub fn enter(&self, slot: usize, number: u64, line: &[u8], id: &[u8]) {
        self.requests().enter(slot, number, line, id);
        self.counters.add_in_flight();
    }

    /// Notes when the application has got the request in a slot, in microseconds of the monotonic clock, and the native ID of
    /// its thread.
    #[inline]
    pub fn begin(&self, slot: usize, number: u64, begun: u64, thread: u32) {
        self.requests().begin(slot, number, begun, thread);
    }

    /// Notes that the application has got the connection of the request in a slot; `has_left`: the request is not in flight any
    /// more.
    pub fn set_upgraded(&self, slot: usize, number: u64, has_left: bool) {
        if has_left {
            self.counters.remove_in_flight();
        }
        self.requests().set_upgraded(slot, number, has_left);
    }

    /// Notes that another thread serves in the place of that of a request, whose response streams.
    pub fn set_streaming(&self, number: u64) {
        self.requests().set_streaming(number);
    }

    /// Removes a request that is in flight. `false`: another one has replaced it in its slot.
    #[inline]
    pub fn remove(&self, slot: usize, number: u64) -> bool {
        self.counters.remove_in_flight();
        self.requests().remove(slot, number)
    }

    /// The same for a request that is not in flight any more.
    pub fn remove_upgraded(&self, slot: usize, number: u64) -> bool {
        self.requests().remove(slot, number)
    }

    /// All requests in flight and upgraded connections, the newest first.
    pub fn in_flight(&self) -> Vec<InFlightRequest> {
        self.requests().all()
    }

    /// The oldest request in flight.
    pub fn oldest(&self) -> Option<InFlightRequest> {
        self.requests().oldest()
    }
}

/// Requests that have ended. The methods that write may be called by one thread at a time.
impl WorkerStatus {
    #[inline]
    fn records(&self) -> Records<'_> {
        Records { index: &self.index, entries: &self.entries }
    }

    /// Whether a request that has taken so long, and ends now, is among the slowest. Times are in microseconds of the monotonic
    /// clock, here and below.
    #[inline]
    pub(crate) fn is_slow(&self, total: u64, now: u64) -> bool {
        self.records().is_slow(total, now)
    }

    /// Notes a request among the slowest, if it is one of them.
    pub(crate) fn add_slow(&self, finished: &Finished) {
        self.records().add_slow(finished);
    }

    /// Notes a response with a status of 500 or above.
    pub(crate) fn add_error(&self, finished: &Finished) {
        self.records().add_error(finished);
    }

    /// Notes a request that the server itself has refused.
    pub(crate) fn add_refusal(&self, refusal: &Refusal) {
        self.refusals.add(refusal);
    }

    /// The slowest requests of the last hour, the slowest first.
    pub fn slowest(&self, now: u64) -> Vec<Finished> {
        self.records().slowest(now)
    }

    /// The last responses with a status of 500 and above, the newest first.
    pub fn errors(&self) -> Vec<Finished> {
        self.records().errors()
    }

    /// The last requests that the server itself has refused, the newest first.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.refusals.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_has_counted_is_moved() {
        let (totals, worker) = (WorkerStatus::default(), WorkerStatus::default());
        for _ in 0..2 {
            worker.counters.next_request_number();
            worker.counters.answered(404);
            worker.counters.set_connections(5);
            worker.enter(0, 1, b"GET /", b"");
            worker.add_error(&Finished { ended: 1, status: 500, ..Finished::default() });
            assert_eq!(totals.moves() % 2, 0);
            totals.absorb(&worker);
            assert_eq!(worker.counters.counts().requests, 0);
            assert_eq!(worker.in_flight().len(), 1, "for the log line about its end");
            worker.clear();
            assert!(worker.in_flight().is_empty());
        }
        let counts = totals.counters.counts();
        assert_eq!((counts.requests, counts.answers[3], counts.connections, counts.in_flight), (2, 2, 0, 0));
        assert_eq!((totals.errors().len(), totals.moves()), (2, 4));
        totals.add_to_own_number(3, 2);
        assert_eq!((totals.own_number(3), totals.own_number(4), totals.own_number(99)), (2, 0, 0));
    }

    #[test]
    fn what_each_request_touches_is_in_the_first_page() {
        assert!(std::mem::offset_of!(WorkerStatus, slots) + size_of::<Slots>() / SLOTS * 4 <= 4096);
        assert_eq!(size_of::<WorkerStatus>() % 64, 0);
    }
}
