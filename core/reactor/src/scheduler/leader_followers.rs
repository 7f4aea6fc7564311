//! Leader and followers: which thread polls, which threads wait for work.
//!
//! One thread leads. It polls and runs the requests that it finds itself, one after another, without waking another thread.
//! A second thread is the standby. While requests are run it checks every tick whether the leader makes progress. If one
//! request has kept the leader for a whole tick (it sleeps, or waits for a database) the standby takes the lead, and for
//! the next requests each thread hands the lead on *before* it runs one. On an idle server no thread ticks.
//!
//! This file only decides; [`crate::scheduler::threads`] asks it under the lock of the reactor and does the waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, MutexGuard, PoisonError};
use std::time::Duration;

use crate::overload::thread_count::alarm::Alarm;

/// Interval at which the standby checks the leader.
const TICK: Duration = Duration::from_millis(1);
/// Requests for which the lead is handed on beforehand after one has stalled: few at first, because it may have been
/// an accident, and twice as many each time when stalls follow each other.
const EAGER: std::ops::RangeInclusive<u32> = 32..=4_096;
/// Ticks of an idle server after which the standby sleeps until it is woken.
const IDLE_TICKS: u32 = 20;

/// The threads that wait, under the lock of the reactor.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    followers: Condvar,
    standby: Condvar,
    /// Requests have kept the leader waiting lately.
    stalling: AtomicBool,
    /// Wakes the thread that watches the others, if one does.
    pub(crate) alarm: Option<Arc<Alarm>>,
}

impl Waiters {
    /// `watches`: a thread watches the others.
    pub(crate) fn new(watches: bool) -> Self {
        Waiters { alarm: watches.then(Arc::default), ..Self::default() }
    }

    #[inline]
    pub(crate) fn wake(&self, wake: Wake) {
        match wake {
            Wake::None => {}
            Wake::Follower => self.followers.notify_one(),
            Wake::Standby => self.standby.notify_one(),
            Wake::Watcher => self.alarm.iter().for_each(|alarm| alarm.ring()),
        }
    }

    /// Wakes so many followers.
    pub(crate) fn wake_followers(&self, count: usize) {
        (0..count).for_each(|_| self.followers.notify_one());
    }

    pub(crate) fn wake_all(&self) {
        self.followers.notify_all();
        self.standby.notify_all();
    }

    pub(crate) fn follow<'a, T>(&self, lock: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.followers.wait(lock).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as the standby, for a tick only if `is_ticking`.
    pub(crate) fn stand_by<'a, T>(&self, lock: MutexGuard<'a, T>, is_ticking: bool) -> MutexGuard<'a, T> {
        match is_ticking {
            true => self.standby.wait_timeout(lock, TICK).unwrap_or_else(PoisonError::into_inner).0,
            false => self.standby.wait(lock).unwrap_or_else(PoisonError::into_inner),
        }
    }

    #[inline]
    pub(crate) fn is_stalling(&self) -> bool {
        self.stalling.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stalling(&self, stalling: bool) {
        self.stalling.store(stalling, Ordering::Relaxed);
    }
}

/// A thread, by a number of its own.
pub(crate) type ThreadNumber = u64;

/// Which thread leads, and which wait.
#[derive(Debug, Default)]
pub(crate) struct LeaderFollowers {
    leader: Option<ThreadNumber>,
    /// The leader waits for events, so no request can have stalled it.
    polling: bool,
    /// Requests dispatched so far.
    progress: u64,
    /// Requests for which the lead is still handed on beforehand.
    eager: u32,
    /// How many there were after the last stall.
    span: u32,
    /// [`LeaderFollowers::progress`] at the last stall.
    last_stall: u64,
    /// Followers that wait, the standby not included.
    parked: u32,
    standby: Option<Standby>,
    /// The fewest threads that have waited for work since the last look at them.
    least_idle: u32,
    /// So many threads are to end, each when it has no request.
    ending: u32,
    /// A thread watches the others, and sleeps as long as one of them waits for work.
    has_sleeping_watcher: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standby {
    /// Checks the leader at every tick.
    Ticking { progress_seen: u64, idle: u32 },
    /// Sleeps until a request is dispatched.
    Asleep,
    /// Was woken to take work.
    Called,
}

/// Which thread to wake after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    None,
    Follower,
    Standby,
    /// All threads have requests.
    Watcher,
}

/// The next step of the standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandbyStep {
    /// Check again after a tick.
    Tick,
    /// Sleep until woken.
    Sleep,
    /// Take work.
    Work,
}

impl LeaderFollowers {
    /// Whether this thread may take a ready connection. Followers leave ready connections to the leader while it makes
    /// progress. While the leader waits for events, followers take them: the leader does not see what a follower puts back.
    #[inline]
    pub(crate) fn may_take(&self, me: ThreadNumber) -> bool {
        let may_lead = || self.eager > 0 || self.leader.is_none_or(|leader| leader == me);
        self.polling || (self.ending == 0 && may_lead())
    }

    /// Whether this thread should poll.
    #[inline]
    pub(crate) fn may_poll(&self, me: ThreadNumber) -> bool {
        self.leader.is_none_or(|leader| leader == me)
    }

    /// This thread is about to run a request.
    #[inline]
    pub(crate) fn dispatch(&mut self, me: ThreadNumber) -> Wake {
        self.progress += 1;
        if self.eager == 0 {
            // At the end of an eager time another thread may be leading, from inside the poller.
            if !self.polling {
                self.leader = Some(me);
            }
            if self.standby == Some(Standby::Asleep) {
                self.standby = Some(Standby::Ticking { progress_seen: self.progress, idle: 0 });
                return Wake::Standby;
            }
            return match self.standby {
                Some(_) => Wake::None,
                // It finds no work and becomes the standby.
                None if self.parked > 0 => Wake::Follower,
                None => self.wake_watcher(),
            };
        }
        self.eager -= 1;
        self.hand_on(me)
    }

    /// This thread is about to receive or send for a moment, and runs no request.
    #[inline]
    pub(crate) fn note_turn(&mut self, me: ThreadNumber) {
        self.progress += 1;
        if self.eager == 0 && !self.polling {
            self.leader = Some(me);
        }
    }

    /// This thread is about to run a request that has become complete in such a turn.
    pub(crate) fn dispatch_late(&mut self, me: ThreadNumber) -> Wake {
        let other_leads = !self.polling && self.eager == 0 && self.leader.is_some_and(|leader| leader != me);
        match self.standby {
            _ if !other_leads => self.dispatch(me),
            None if self.parked == 0 => self.wake_watcher(),
            _ => Wake::None,
        }
    }

    /// This thread does not lead while it works on its request.
    #[inline]
    pub(crate) fn hand_on(&mut self, me: ThreadNumber) -> Wake {
        if self.leader == Some(me) {
            self.leader = None;
        }
        match self.standby {
            _ if self.leader.is_some() => Wake::None,
            _ if self.parked > 0 => Wake::Follower,
            Some(Standby::Ticking { .. } | Standby::Asleep) => {
                self.standby = Some(Standby::Called);
                Wake::Standby
            }
            Some(Standby::Called) => Wake::None,
            None => self.wake_watcher(),
        }
    }

    fn wake_watcher(&mut self) -> Wake {
        match std::mem::take(&mut self.has_sleeping_watcher) {
            true => Wake::Watcher,
            false => Wake::None,
        }
    }

    /// This thread begins to wait for events.
    #[inline]
    pub(crate) fn start_polling(&mut self, me: ThreadNumber) {
        self.leader = Some(me);
        self.polling = true;
    }

    /// Whether a thread waits for events.
    pub(crate) fn is_polling(&self) -> bool {
        self.polling
    }

    #[inline]
    pub(crate) fn stop_polling(&mut self) {
        self.polling = false;
    }

    /// A thread without work waits: as the standby if there is none.
    pub(crate) fn park(&mut self) -> bool {
        if self.standby.is_none() {
            self.standby = Some(Standby::Ticking { progress_seen: self.progress, idle: 0 });
            return true;
        }
        self.parked += 1;
        false
    }

    pub(crate) fn unpark(&mut self) {
        self.parked -= 1;
        self.least_idle = self.least_idle.min(self.idle());
    }

    /// Threads that wait for work, and not for events.
    fn idle(&self) -> u32 {
        self.parked + u32::from(self.standby.is_some())
    }

    /// Whether all threads have requests.
    pub(crate) fn are_all_busy(&self) -> bool {
        !self.polling && self.idle() == 0
    }

    /// The fewest threads that have waited for work since the last call.
    pub(crate) fn take_least_idle(&mut self) -> usize {
        let idle = self.idle();
        std::mem::replace(&mut self.least_idle, idle).min(idle) as usize
    }

    /// Has the watcher woken when all threads have requests. `false`: they have now.
    pub(crate) fn let_watcher_sleep(&mut self) -> bool {
        self.has_sleeping_watcher = !self.are_all_busy();
        self.has_sleeping_watcher
    }

    /// So many threads are to end.
    pub(crate) fn end(&mut self, threads: usize) {
        self.ending += threads as u32;
    }

    /// One thread that is to end need not. `false`: none is to.
    pub(crate) fn keep_one(&mut self) -> bool {
        let has_one = self.ending > 0;
        self.ending -= u32::from(has_one);
        has_one
    }

    /// Whether this thread, which has no request, is to end; and which thread to wake in its place. `is_ready`: there is a
    /// connection to take.
    pub(crate) fn leave_for_good(&mut self, me: ThreadNumber, is_ready: bool) -> Option<Wake> {
        // The leader would not see that connection.
        let may_leave = !(self.polling && is_ready);
        (may_leave && self.keep_one()).then(|| self.hand_on(me))
    }

    /// Whether the standby waits for one tick only.
    pub(crate) fn is_ticking(&self) -> bool {
        !matches!(self.standby, Some(Standby::Asleep))
    }

    /// The standby checks the leader.
    pub(crate) fn standby_step(&mut self, me: ThreadNumber, finished: bool) -> StandbyStep {
        let Some(Standby::Ticking { progress_seen, idle }) = self.standby else {
            return match self.standby {
                Some(Standby::Asleep) if !finished => StandbyStep::Sleep,
                _ => self.end_standby(),
            };
        };
        if finished {
            return self.end_standby();
        }
        if self.polling {
            if idle >= IDLE_TICKS {
                self.standby = Some(Standby::Asleep);
                return StandbyStep::Sleep;
            }
            self.standby = Some(Standby::Ticking { progress_seen: self.progress, idle: idle + 1 });
            return StandbyStep::Tick;
        }
        if self.progress == progress_seen || self.leader.is_none() {
            // One request has run for a whole tick.
            self.leader = Some(me);
            self.become_eager();
            return self.end_standby();
        }
        self.standby = Some(Standby::Ticking { progress_seen: self.progress, idle: 0 });
        StandbyStep::Tick
    }

    fn become_eager(&mut self) {
        let since = self.progress - self.last_stall;
        self.span = match since < 4 * u64::from(self.span) {
            true => (self.span * 2).min(*EAGER.end()),
            false => *EAGER.start(),
        };
        self.last_stall = self.progress;
        self.eager = self.span;
    }

    /// This thread is about to wait for something other than the interpreter, perhaps for less than a tick. If other threads
    /// wait for work, this counts as a stall.
    pub(crate) fn expect_stall(&mut self) {
        if self.standby.is_some() || self.parked > 0 {
            self.eager = self.eager.max(*EAGER.start());
        }
    }

    fn end_standby(&mut self) -> StandbyStep {
        self.standby = None;
        self.least_idle = self.least_idle.min(self.parked);
        StandbyStep::Work
    }

    /// Whether requests have stalled lately.
    pub(crate) fn is_eager(&self) -> bool {
        self.eager > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEADER: ThreadNumber = 1;
    const OTHER: ThreadNumber = 2;

    fn busy() -> LeaderFollowers {
        let mut state = LeaderFollowers::default();
        state.start_polling(LEADER);
        assert!(state.park(), "the first to wait stands by");
        assert!(!state.park(), "the second follows");
        state.stop_polling();
        state
    }

    #[test]
    fn a_leader_that_makes_progress_stays_leader() {
        let mut state = busy();
        for _ in 0..100 {
            assert_eq!(state.dispatch(LEADER), Wake::None);
            assert!(!state.may_take(OTHER) && !state.may_poll(OTHER));
            assert_eq!(state.standby_step(OTHER, false), StandbyStep::Tick);
        }
    }

    #[test]
    fn a_stalled_leader_is_replaced_and_hands_on_the_lead() {
        let mut state = busy();
        state.dispatch(LEADER);
        assert_eq!(state.standby_step(OTHER, false), StandbyStep::Tick);
        assert_eq!(state.standby_step(OTHER, false), StandbyStep::Work);
        assert!(state.may_poll(OTHER) && !state.may_poll(LEADER) && state.may_take(LEADER));
        assert_eq!(state.dispatch(OTHER), Wake::Follower);
        assert!(state.may_poll(LEADER));
    }

    #[test]
    fn eagerness_grows_while_stalls_follow_each_other() {
        let mut state = busy();
        state.progress = 1_000_000;
        let mut stall = |after| {
            state.progress += after;
            state.become_eager();
            state.eager
        };
        assert_eq!([stall(0), stall(40), stall(100), stall(1_000_000)], [32, 64, 128, 32]);
        for _ in 0..20 {
            stall(10);
        }
        assert_eq!(stall(10), 4_096);
    }

    #[test]
    fn an_expected_stall_hands_on_the_lead_if_there_are_other_threads() {
        let mut alone = LeaderFollowers::default();
        alone.expect_stall();
        assert!(!alone.is_eager());
        let mut state = busy();
        state.eager = 0;
        state.expect_stall();
        assert_eq!(state.eager, *EAGER.start());
        state.eager = 1_000;
        state.expect_stall();
        assert_eq!(state.eager, 1_000);
    }

    #[test]
    fn no_thread_ticks_on_an_idle_server() {
        let mut state = busy();
        state.start_polling(LEADER);
        let ticks = (0..100).take_while(|_| state.standby_step(OTHER, false) == StandbyStep::Tick).count();
        assert_eq!(ticks, IDLE_TICKS as usize);
        assert_eq!(state.standby_step(OTHER, false), StandbyStep::Sleep);
        state.stop_polling();
        assert_eq!(state.dispatch(LEADER), Wake::Standby);
    }

    #[test]
    fn the_standby_is_woken_after_all_followers() {
        let mut state = busy();
        state.unpark();
        state.eager = 2;
        assert_eq!(state.dispatch(LEADER), Wake::Standby);
        assert_eq!(state.standby_step(OTHER, false), StandbyStep::Work);
        assert_eq!(state.dispatch(OTHER), Wake::None);
    }

    #[test]
    fn a_turn_without_a_request_wakes_nobody() {
        let mut state = busy();
        state.eager = 2;
        for _ in 0..10 {
            state.note_turn(LEADER);
        }
        assert_eq!((state.dispatch_late(LEADER), state.eager), (Wake::Follower, 1));
        state.start_polling(OTHER);
        state.eager = 0;
        state.stop_polling();
        assert_eq!(state.dispatch_late(LEADER), Wake::None, "another thread has taken the lead meanwhile");
        assert!(state.may_poll(OTHER));
    }

    #[test]
    fn other_threads_take_connections_while_the_leader_polls() {
        let mut state = busy();
        assert!(!state.may_take(OTHER));
        state.start_polling(LEADER);
        assert!(state.may_take(OTHER));
        assert_eq!(state.dispatch(OTHER), Wake::None);
        assert!(!state.may_poll(OTHER));
    }

    /// State of a thread between two decisions, as in [`crate::scheduler::threads`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Doing {
        /// Looks for work.
        Looking,
        Polling,
        /// Receives or sends for a moment, which may complete a request.
        Turning,
        /// Runs a request, which may take for ever.
        Running,
        Following,
        StandingBy,
        /// Was superfluous.
        Ended,
    }

    /// A reactor without sockets: events and the ends of requests come in any order, and so do the threads.
    struct Model {
        state: LeaderFollowers,
        threads: Vec<Doing>,
        ready: u32,
        /// Threads that were woken, and have not yet run.
        woken: Vec<usize>,
        /// Behind every request stands another one.
        pipelining: bool,
        random: u64,
    }

    impl Model {
        fn any(&mut self, below: usize) -> usize {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.random >> 33) as usize % below
        }

        fn wake_one(&mut self, which: Doing) {
            let asleep =
                (0..self.threads.len()).find(|number| self.threads[*number] == which && !self.woken.contains(number));
            self.woken.extend(asleep);
        }

        fn wake(&mut self, wake: Wake) {
            match wake {
                Wake::None | Wake::Watcher => {}
                Wake::Follower => self.wake_one(Doing::Following),
                Wake::Standby => self.wake_one(Doing::StandingBy),
            }
        }

        /// One thread is to end, unless it is the last.
        fn end_one(&mut self) {
            let left = self.threads.iter().filter(|doing| **doing != Doing::Ended).count();
            if left > 1 + self.state.ending as usize {
                self.state.end(1);
                self.wake_one(Doing::Following);
            }
        }

        fn look(&mut self, number: usize) {
            let me = number as ThreadNumber + 1;
            if let Some(wake) = self.state.leave_for_good(me, self.ready > 0) {
                self.threads[number] = Doing::Ended;
                self.wake(wake);
            } else if self.state.may_take(me) && self.ready > 0 {
                self.ready -= 1;
                if self.any(2) == 0 {
                    self.state.note_turn(me);
                    self.threads[number] = Doing::Turning;
                    return;
                }
                let wake = self.state.dispatch(me);
                self.wake(wake);
                self.threads[number] = Doing::Running;
            } else if self.state.may_poll(me) {
                self.state.start_polling(me);
                self.threads[number] = Doing::Polling;
            } else {
                self.threads[number] = if self.state.park() { Doing::StandingBy } else { Doing::Following };
            }
        }

        /// Lets a thread take its next step, if it can without anything happening outside.
        fn step(&mut self, number: usize) -> bool {
            let me = number as ThreadNumber + 1;
            let woken = self.woken.iter().position(|woken| *woken == number).map(|at| self.woken.remove(at)).is_some();
            let completes = self.any(2) == 0;
            match self.threads[number] {
                Doing::Looking => self.look(number),
                Doing::Turning if completes => {
                    let wake = self.state.dispatch_late(me);
                    self.wake(wake);
                    self.threads[number] = Doing::Running;
                }
                Doing::Turning => self.threads[number] = Doing::Looking,
                Doing::Following if woken => {
                    self.state.unpark();
                    self.threads[number] = Doing::Looking;
                }
                Doing::StandingBy if woken || self.state.is_ticking() => {
                    if self.state.standby_step(me, false) == StandbyStep::Work {
                        self.threads[number] = Doing::Looking;
                    }
                }
                _ => return false,
            }
            true
        }

        /// Ends a poll with some events, or a request, behind which another one may be pending.
        fn happen(&mut self, number: usize) {
            match self.threads[number] {
                Doing::Polling => {
                    self.state.stop_polling();
                    self.ready += self.any(4) as u32;
                    self.threads[number] = Doing::Looking;
                }
                Doing::Running => {
                    self.ready += if self.pipelining { 1 } else { self.any(2) as u32 };
                    self.threads[number] = Doing::Looking;
                }
                _ => {}
            }
        }

        /// Lets all threads go on until nothing happens without an event.
        fn settle(&mut self) {
            // The standby looks a few times before it sleeps for good.
            for _ in 0..4 * IDLE_TICKS {
                for number in 0..self.threads.len() {
                    self.step(number);
                }
            }
        }
    }

    /// However requests stall, and threads end: as long as a thread is free, a thread waits for events, and no ready connection is
    /// left.
    #[test]
    fn nothing_waits_while_a_thread_is_free() {
        for (seed, count) in (0..200).zip([1, 2, 3, 4, 8].into_iter().cycle()) {
            let mut model = Model {
                state: LeaderFollowers::default(),
                threads: vec![Doing::Looking; count],
                ready: 0,
                woken: Vec::new(),
                pipelining: false,
                random: seed,
            };
            for round in 0..300 {
                // Some requests are quick, others take very long: only some threads get on.
                let quick = model.any(1 << count);
                model.pipelining = model.any(2) == 0;
                if model.any(100) == 0 {
                    model.end_one();
                }
                for _ in 0..model.any(800) {
                    let number = model.any(count);
                    if quick >> number & 1 == 1 && !model.step(number) {
                        model.happen(number);
                    }
                }
                model.settle();
                let free = model.threads.iter().any(|doing| !matches!(doing, Doing::Running | Doing::Ended));
                let polled = model.threads.contains(&Doing::Polling);
                assert!(
                    !free || polled && model.ready == 0,
                    "{seed}, {round}: {:?}, {} ready",
                    model.threads,
                    model.ready
                );
            }
        }
    }
}
