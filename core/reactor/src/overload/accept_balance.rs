//! The number of connections of each worker, so that workers accept evenly.
//!
//! Workers accept from the same socket, and the first one to wake up would accept everything. So each worker sees the
//! numbers of all in memory that they share, and one with clearly more connections than another yields to it for a
//! moment.
//!
//! A connection does not wake all workers, which would cost more than to answer it if there are many, but those [`WOKEN`]
//! with the fewest connections, and one of the others in turn (`EPOLLEXCLUSIVE`). A worker that was woken decides to
//! which of these it belongs from now on. Only workers that each connection wakes are yielded to. docs/internals/scaling.md
//! has the measurements.

use crate::log::error::RateLimit;
use crate::status::counters::{Accepting, Counters};
use crate::sys::clock::NEVER;
use crate::sys::process::max_descriptors;

/// Workers that each new connection wakes. All workers do until connections have come; up to so many stay so.
const WOKEN: usize = 4;

/// The numbers of all workers.
#[derive(Debug)]
pub struct AcceptBalance {
    /// Those that may accept from the same sockets, also if they do not now.
    workers: Vec<&'static Counters>,
    ours: &'static Counters,
}

impl AcceptBalance {
    /// This worker is number `ours` of `workers`. None: it is not among them.
    pub fn new(workers: Vec<&'static Counters>, ours: usize) -> Option<Self> {
        let ours = *workers.get(ours)?;
        ours.set_accepting(Accepting::Each);
        Some(AcceptBalance { workers, ours })
    }

    /// Publishes that this worker does not accept any more.
    pub(crate) fn withdraw(&self) {
        self.ours.stop_accepting();
    }

    /// The other workers that each connection wakes, and their numbers of connections.
    fn woken(&self) -> impl Iterator<Item = (&'static Counters, u64)> {
        let others = self.workers.iter().filter(|worker| !std::ptr::eq(**worker, self.ours));
        others.filter_map(|worker| Some((*worker, worker.woken_by_each()?)))
    }

    /// Whether another worker has so few connections that it should accept the next one.
    pub(crate) fn should_yield(&self, connections: usize) -> bool {
        let least = self.woken().map(|(_, connections)| connections).min();
        least.is_some_and(|least| connections as u64 > least + (least / 8).max(1))
    }

    /// Decides whether every new connection wakes this worker from now on. Returns whether the worker must register its
    /// listeners again: the kernel then wakes the other workers that take turns before this one.
    pub(crate) fn decide(&self, connections: usize) -> bool {
        let (ours, took_turns) = ((connections as u64, std::ptr::from_ref(self.ours)), self.ours.takes_turns());
        let before = self.woken().filter(|(worker, others)| (*others, std::ptr::from_ref(*worker)) < ours).count();
        let takes_turns = before >= WOKEN;
        if takes_turns != took_turns {
            self.ours.set_accepting(if takes_turns { Accepting::InTurn } else { Accepting::Each });
        }
        takes_turns || took_turns
    }

    /// Whether connections wake this worker in turn with others.
    pub(crate) fn takes_turns(&self) -> bool {
        self.ours.takes_turns()
    }
}

/// Yields in a row that no other worker takes up, at most: on a busy machine it takes some time until a woken worker runs.
const MAX_VAIN_YIELDS: u32 = 16;
/// Milliseconds for which a worker does not yield after that: the other one must be busy.
const NO_YIELD_TIME: u64 = 200;
/// Descriptors that are left for everything that is no connection, at least: logs, the application's files, bodies on disk.
const RESERVED_DESCRIPTORS: u64 = 64;

/// The default of `max_connections`: most of the descriptors that this process may have.
pub(crate) fn max_by_descriptors() -> usize {
    let limit = max_descriptors();
    let most = limit.saturating_sub((limit / 20).max(RESERVED_DESCRIPTORS)).max(1);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// What accepting depends on, under the lock of the reactor.
#[derive(Debug)]
pub(crate) struct AcceptState {
    /// When paused listeners accept again; [`NEVER`] if none are paused.
    resume_at: u64,
    /// This worker has let others accept last time.
    has_yielded: bool,
    /// Consecutive yields that no other worker took up.
    vain_yields: u32,
    /// Until when this worker does not yield.
    no_yield_until: u64,
    /// Descriptors have run out.
    pub(crate) exhausted: RateLimit,
    /// There are as many connections as there may be.
    pub(crate) full: RateLimit,
}

impl Default for AcceptState {
    fn default() -> Self {
        let (exhausted, full) = (RateLimit::default(), RateLimit::default());
        AcceptState { resume_at: NEVER, has_yielded: false, vain_yields: 0, no_yield_until: 0, exhausted, full }
    }
}

impl AcceptState {
    /// When paused listeners are to accept again.
    #[inline]
    pub(crate) fn resume_at(&self) -> u64 {
        self.resume_at
    }

    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.resume_at != NEVER
    }

    /// The listeners are paused until then.
    pub(crate) fn pause(&mut self, until: u64) {
        self.resume_at = until;
    }

    /// A connection has ended, so there is room. `true`: listeners that were paused for want of it are due now.
    pub(crate) fn on_close(&mut self) -> bool {
        let due = self.is_paused() && !self.has_yielded;
        if due {
            self.resume_at = 0;
        }
        due
    }

    /// Whether paused listeners are due; they are not paused then.
    pub(crate) fn resume(&mut self, now: u64) -> bool {
        let due = self.resume_at <= now;
        if due {
            self.resume_at = NEVER;
        }
        due
    }

    /// Whether this worker lets another one accept now. `has_more`: it has clearly more connections than another. It yields
    /// every other time, and after a number of times in vain not at all for a while: the other one must be busy.
    pub(crate) fn yields(&mut self, now: u64, has_more: impl FnOnce() -> bool) -> bool {
        if self.no_yield_until > now || !has_more() {
            (self.has_yielded, self.vain_yields) = (false, 0);
            return false;
        }
        if !self.has_yielded {
            self.has_yielded = true;
            return true;
        }
        self.has_yielded = false;
        self.vain_yields += 1;
        if self.vain_yields >= MAX_VAIN_YIELDS {
            self.no_yield_until = now + NO_YIELD_TIME;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_with_clearly_more_connections_yields() {
        let workers: Vec<&'static Counters> = (0..3).map(|_| &*Box::leak(Box::default())).collect();
        let balance = |ours| AcceptBalance::new(workers.clone(), ours).unwrap();
        let one = balance(0);
        assert!(!one.should_yield(100), "no other worker accepts");
        let two = balance(2);
        workers[0].set_connections(2);
        assert!(one.should_yield(2) && !two.should_yield(0));
        workers[2].set_connections(1);
        assert!(!one.should_yield(2) && !two.should_yield(1));
        workers[2].set_connections(80);
        assert!(!one.should_yield(90) && one.should_yield(91));
        two.withdraw();
        assert!(!one.should_yield(91), "the other worker has stopped accepting");
    }

    #[test]
    fn each_connection_wakes_the_workers_with_the_fewest() {
        // In one piece, as in shared memory: of equal workers, the first is woken.
        let workers: Vec<Counters> = (0..WOKEN + 2).map(|_| Counters::default()).collect();
        let workers: Vec<&'static Counters> = workers.leak().iter().collect();
        let balances: Vec<_> =
            (0..workers.len()).map(|ours| AcceptBalance::new(workers.clone(), ours).unwrap()).collect();
        let woken = || workers.iter().map(|worker| worker.woken_by_each().is_some()).collect::<Vec<_>>();
        let decide = |ours: usize| balances[ours].decide(workers[ours].counts().connections as usize);
        assert_eq!([0, 1, 2, 3, 4, 5].map(decide), [false, false, false, false, true, true]);
        assert_eq!(woken(), [true, true, true, true, false, false]);
        // It has the most, so it takes turns; the next one whose turn it is takes its place.
        workers[0].set_connections(3);
        assert!(balances[4].should_yield(2), "one that takes turns yields to those that are woken");
        workers[0].set_connections(1);
        assert!(!decide(0) && decide(4) && decide(0));
        assert_eq!(woken(), [false, true, true, true, true, false]);
        assert!(!decide(4) && decide(5) && balances[5].takes_turns());
        // Those that take turns are not yielded to: nobody may have woken them.
        (1..5).for_each(|worker| workers[worker].set_connections(9));
        assert!(!balances[1].should_yield(10));
        balances[1].withdraw();
        assert!(decide(0) && !balances[0].takes_turns());
    }

    #[test]
    fn a_worker_yields_every_other_time_and_a_limited_number_of_times() {
        let mut state = AcceptState::default();
        for _ in 0..MAX_VAIN_YIELDS {
            assert!(state.yields(1, || true) && !state.yields(1, || true));
        }
        assert!(!state.yields(NO_YIELD_TIME, || true), "all yields were in vain");
        assert!(state.yields(1 + NO_YIELD_TIME, || true));
        assert!(!state.yields(1 + NO_YIELD_TIME, || false));
    }

    #[test]
    fn a_yield_lasts_although_a_connection_has_ended() {
        let mut state = AcceptState::default();
        assert!(!state.on_close() && !state.resume(NEVER - 1));
        state.pause(10);
        assert!(state.is_paused() && !state.resume(9));
        assert!(state.on_close() && state.resume(0) && !state.is_paused());
        assert!(state.yields(1, || true));
        state.pause(3);
        assert!(!state.on_close() && !state.resume(2) && state.resume(3));
    }

    /// How long a decision takes, for docs/internals/scaling.md: `cargo test --release -p poorhttp-reactor --lib -- --ignored
    /// --nocapture cost_of_a_decision`. The counters are as far apart as in the scoreboard. First nobody changes them, then
    /// another thread counts requests in all of them without a pause.
    #[test]
    #[ignore = "a measurement"]
    fn cost_of_a_decision() {
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::time::Instant;

        #[repr(C)]
        struct Place(Counters, [u8; 16_320]);

        const ROUNDS: u32 = 50_000;
        for workers in [4, 64, 128] {
            // The main process makes room for twice as many, and some more.
            let places = (0..2 * workers + 8).map(|_| Place(Counters::default(), [0; 16_320])).collect::<Vec<_>>();
            let all: Vec<&'static Counters> = places.leak().iter().map(|place| &place.0).collect();
            let balances: Vec<_> = (0..workers).map(|ours| AcceptBalance::new(all.clone(), ours).unwrap()).collect();
            balances.iter().for_each(|balance| _ = balance.decide(0));
            let last = &balances[workers - 1];
            let decisions = || {
                let begun = Instant::now();
                for _ in 0..ROUNDS {
                    std::hint::black_box(last.should_yield(0) || last.decide(0));
                }
                begun.elapsed() / ROUNDS
            };
            let alone = decisions();
            let stops = AtomicBool::new(false);
            let beside = std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stops.load(Ordering::Relaxed) {
                        for counters in &all[..workers] {
                            counters.next_request_number();
                            counters.add_in_flight();
                            counters.remove_in_flight();
                            counters.answered(200);
                        }
                    }
                });
                let beside = decisions();
                stops.store(true, Ordering::Relaxed);
                beside
            });
            println!("{workers} workers: {alone:?} for a decision, {beside:?} while requests are counted");
        }
    }
}
