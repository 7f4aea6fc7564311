//! Counters that workers and the main process need to run: requests begun, in flight, connections accepted.
//!
//! They are in memory that other processes read. The metrics are in `metrics.rs`.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::status::metrics::Metrics;

/// Counters of one reactor. They may lie in shared memory, where the main process reads those of all workers.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Counters {
    /// Requests that have begun; the running number of the last one.
    requests: AtomicU64,
    /// Requests in flight in the application.
    in_flight: AtomicU64,
    /// Connections that are open.
    connections: AtomicU64,
    /// Answers by the first digit of their status.
    answers: [AtomicU64; 5],
    /// Requests that the application can have at the same time; 0: it does not matter.
    slots: AtomicU64,
    /// Threads that the main process asks for, and those that a person has set; 0: none are.
    wanted_threads: [AtomicU64; 2],
    /// 1 while the main process checks periodically whether all slots are taken.
    is_watched: AtomicU64,
    /// 1 if the main process wants to know when a request begins.
    awaits_request: AtomicU64,
    /// Connections that applications have got, and how many it were.
    upgraded: [AtomicU64; 2],
    /// Responses that stream, and those of them whose threads have left the count of `threads`.
    streaming: [AtomicU64; 2],
    /// [`Accepting`] while this worker accepts connections, otherwise 0.
    accepts: AtomicU64,
    /// Metrics for those who watch the server.
    pub metrics: Metrics,
}

/// Which new connections wake a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepting {
    /// Each one.
    Each = 1,
    /// One of several, in turn with other workers.
    InTurn = 2,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that have begun.
    pub requests: u64,
    /// Requests in flight in the application, without those that have left the count of `threads`.
    pub in_flight: u64,
    /// Connections that are open.
    pub connections: u64,
    /// Answers: 1xx, 2xx, 3xx, 4xx, 5xx.
    pub answers: [u64; 5],
    /// Connections that applications have got.
    pub upgraded: u64,
    /// How many it were so far.
    pub upgrades: u64,
    /// Responses that stream.
    pub streaming: u64,
    /// Those of them whose threads have left the count of `threads`.
    pub left: u64,
    /// Requests that the application can have at the same time.
    pub slots: u64,
}

impl Counters {
    /// The number of a request that begins now.
    #[inline]
    pub(crate) fn next_request_number(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The application gets a request.
    #[inline]
    pub fn add_in_flight(&self) {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }

    /// The application has finished a request.
    #[inline]
    pub fn remove_in_flight(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// An application has got a connection.
    pub(crate) fn add_upgraded(&self) {
        self.upgraded.iter().for_each(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
    }

    /// Such a connection has ended.
    pub(crate) fn remove_upgraded(&self) {
        self.upgraded[0].fetch_sub(1, Ordering::Relaxed);
    }

    /// A response streams.
    pub(crate) fn add_streaming(&self) {
        self.streaming[0].fetch_add(1, Ordering::Relaxed);
    }

    /// Such a response has ended.
    pub(crate) fn remove_streaming(&self) {
        self.streaming[0].fetch_sub(1, Ordering::Relaxed);
    }

    /// Another thread serves in the place of that of a response that streams.
    pub(crate) fn add_left(&self) {
        self.streaming[1].fetch_add(1, Ordering::SeqCst);
    }

    /// The thread of such a response ends.
    pub(crate) fn remove_left(&self) {
        self.streaming[1].fetch_sub(1, Ordering::SeqCst);
    }

    /// Requests in flight, without those whose threads have left the count.
    #[inline]
    fn in_pool(&self) -> u64 {
        self.in_flight.load(Ordering::SeqCst).saturating_sub(self.streaming[1].load(Ordering::SeqCst))
    }

    /// A request was answered.
    #[inline]
    pub(crate) fn answered(&self, status: u16) {
        if let Some(answers) = self.answers.get(usize::from(status / 100).wrapping_sub(1)) {
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Set how many requests the application can have at the same time.
    pub fn set_slots(&self, slots: u64) {
        self.slots.store(slots, Ordering::Relaxed);
    }

    /// Ask for so many threads, with `threads = auto`; if they are to `hold`, the number does not follow the load from now on.
    pub fn want_threads(&self, threads: u64, hold: bool) {
        self.wanted_threads[usize::from(hold)].store(threads, Ordering::Relaxed);
    }

    /// How many the main process has asked for since the last call; 0: for none.
    pub(crate) fn take_wanted_threads(&self) -> u64 {
        self.wanted_threads[0].swap(0, Ordering::Relaxed)
    }

    /// How many threads a person has set; 0: the number follows the load.
    pub(crate) fn held_threads(&self) -> u64 {
        self.wanted_threads[1].load(Ordering::Relaxed)
    }

    /// Whether all slots are taken and the main process does not check that; it does after [`Counters::set_watched`].
    #[inline]
    pub fn is_full_unwatched(&self) -> bool {
        self.is_watched.load(Ordering::SeqCst) == 0 && self.in_pool() >= self.slots.load(Ordering::Relaxed)
    }

    /// Sets which connections wake this worker.
    pub(crate) fn set_accepting(&self, accepting: Accepting) {
        self.accepts.store(accepting as u64, Ordering::Relaxed);
    }

    /// This worker does not accept connections any more.
    pub fn stop_accepting(&self) {
        self.accepts.store(0, Ordering::Relaxed);
    }

    /// Whether this worker accepts connections.
    pub fn accepts(&self) -> bool {
        self.accepts.load(Ordering::Relaxed) != 0
    }

    /// Whether connections wake this worker in turn with others.
    pub(crate) fn takes_turns(&self) -> bool {
        self.accepts.load(Ordering::Relaxed) == Accepting::InTurn as u64
    }

    /// The connections of a worker that each new one wakes; `None`: this is not one.
    pub(crate) fn woken_by_each(&self) -> Option<u64> {
        let is_woken = self.accepts.load(Ordering::Relaxed) == Accepting::Each as u64;
        is_woken.then(|| self.connections.load(Ordering::Relaxed))
    }

    /// The main process wants to know when a request begins.
    pub fn await_request(&self) {
        self.awaits_request.store(1, Ordering::Relaxed);
    }

    /// Whether the main process wants to know that a request begins; it does no more then.
    #[inline]
    pub(crate) fn takes_request(&self) -> bool {
        self.awaits_request.load(Ordering::Relaxed) != 0 && self.awaits_request.swap(0, Ordering::Relaxed) != 0
    }

    /// Sets whether the main process checks periodically that all slots are taken. `true`: this is a change.
    pub fn set_watched(&self, is_watched: bool) -> bool {
        self.is_watched.swap(is_watched.into(), Ordering::SeqCst) != u64::from(is_watched)
    }

    /// Whether all slots are taken.
    pub fn is_full(&self) -> bool {
        let slots = self.slots.load(Ordering::Relaxed);
        slots != 0 && self.in_pool() >= slots
    }

    pub(crate) fn set_connections(&self, connections: usize) {
        self.connections.store(connections as u64, Ordering::Relaxed);
    }

    /// The counters at this moment.
    pub fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            requests: of(&self.requests),
            in_flight: self.in_pool(),
            connections: of(&self.connections),
            answers: self.answers.each_ref().map(of),
            upgraded: of(&self.upgraded[0]),
            upgrades: of(&self.upgraded[1]),
            streaming: of(&self.streaming[0]),
            left: of(&self.streaming[1]),
            slots: of(&self.slots),
        }
    }

    /// All numbers that only grow, in a fixed order.
    fn counters(&self) -> impl Iterator<Item = &AtomicU64> {
        [&self.requests, &self.upgraded[1]].into_iter().chain(&self.answers).chain(self.metrics.counters())
    }

    /// What is there at the moment, in a fixed order.
    fn gauges(&self) -> impl Iterator<Item = &AtomicU64> {
        [&self.in_flight, &self.connections, &self.upgraded[0], &self.slots]
            .into_iter()
            .chain(&self.streaming)
            .chain(self.metrics.gauges())
    }

    /// Adds those of another reactor: what only grows, and if it `is_alive` also what is there at the moment.
    pub fn add(&self, other: &Self, is_alive: bool) {
        let gauges = self.gauges().zip(other.gauges()).filter(|_| is_alive);
        for (sum, more) in self.counters().zip(other.counters()).chain(gauges) {
            sum.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Resets all counters.
    pub fn clear(&self) {
        self.counters()
            .chain(self.gauges())
            .chain(&self.wanted_threads)
            .chain([&self.is_watched, &self.awaits_request, &self.accepts])
            .for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_cleared() {
        let counters = Counters::default();
        assert_eq!(
            (counters.next_request_number(), counters.next_request_number(), counters.next_request_number()),
            (1, 2, 3)
        );
        counters.add_in_flight();
        counters.add_in_flight();
        counters.remove_in_flight();
        counters.set_connections(7);
        // Neither 0 nor 600 is the status of a response.
        for status in [0, 99, 100, 200, 204, 304, 404, 599, 600, u16::MAX] {
            counters.answered(status);
        }
        counters.add_upgraded();
        counters.add_upgraded();
        counters.remove_upgraded();
        counters.add_in_flight();
        counters.add_streaming();
        counters.add_streaming();
        counters.remove_streaming();
        counters.add_left();
        let answers = [1, 2, 1, 1, 1];
        let counts = Counts {
            requests: 3,
            in_flight: 1,
            connections: 7,
            answers,
            upgraded: 1,
            upgrades: 2,
            streaming: 1,
            left: 1,
            slots: 0,
        };
        assert_eq!(counters.counts(), counts);
        let sum = Counters::default();
        counters.metrics.add_refused(413);
        sum.add(&counters, false);
        sum.add(&counters, true);
        let doubled = Counts { requests: 6, answers: answers.map(|number| 2 * number), upgrades: 4, ..counts };
        assert_eq!(sum.counts(), doubled);
        assert_eq!(sum.metrics.refused().iter().sum::<u64>(), 2);
        counters.clear();
        assert_eq!(counters.counts(), Counts::default());
        assert_eq!(counters.metrics.refused().iter().sum::<u64>(), 0);
    }

    #[test]
    fn every_number_is_a_counter_or_a_gauge() {
        let counters = Counters::default();
        let known = counters.counters().chain(counters.gauges()).count();
        let others = ["wanted_threads", "wanted_threads", "is_watched", "awaits_request", "accepts"];
        assert_eq!(known + others.len(), size_of::<Counters>() / size_of::<u64>());
    }

    #[test]
    fn a_full_worker_is_reported_once() {
        let counters = Counters::default();
        counters.set_slots(2);
        counters.add_in_flight();
        assert!(!counters.is_full_unwatched() && !counters.is_full());
        counters.add_in_flight();
        assert!(counters.is_full_unwatched() && counters.is_full());
        assert!(counters.set_watched(true) && !counters.set_watched(true));
        assert!(!counters.is_full_unwatched() && counters.is_full());
        assert!(counters.set_watched(false));
        counters.remove_in_flight();
        assert!(!counters.is_full_unwatched());
        counters.add_in_flight();
        counters.add_left();
        assert!(!counters.is_full_unwatched() && !counters.is_full(), "another thread serves");
        counters.remove_left();
        assert!(counters.is_full_unwatched() && counters.is_full());
        counters.clear();
        assert!(!counters.is_full(), "it does not matter how many there are");
    }
}
