//! Decides how many threads serve, with `threads = auto`: a function of figures and time.
//!
//! - **One more** if requests have waited for a thread for [`STANDING`] milliseconds, none is free, and another one could run:
//!   the interpreter and a processor are free, because threads wait for something else. Two looks one after another have to find
//!   that, or one if it is so for [`OFTEN_FREE`] of the time. FrankenPHP has the same rule with the processor alone.
//! - **Fewer** if some had nothing to do for two times [`HALF`] milliseconds, and if another one could never run: then so many
//!   threads only take interpreter and processor from each other.
//! - **As many as before** in an overload, which more threads would only make larger, and between the two shares of time
//!   [`HELD`] and [`FULL`] in which another one could run.
//!
//! Nothing here reads a clock.
//!
//! ```text
//! alarm.rs       wakes the thread that asks
//! simulation.rs  tests over made-up loads
//! ```

pub(crate) mod alarm;
#[cfg(test)]
mod simulation;

/// Milliseconds for which requests must have waited.
pub(crate) const STANDING: u64 = 5;
/// No thread is made if another one could run for a smaller share of the time: it could do hardly anything.
const FULL: f64 = 0.015;
/// Looks one after another that must have found so: between two threads that want the interpreter, it is free for a moment.
const FREE_LOOKS: u32 = 2;
/// One look is enough if another one could run for such a share of the time: then it is no such moment.
const OFTEN_FREE: f64 = 0.03;
/// Threads end if another one could run for a smaller share. Less than [`FULL`], so that the number stays where it is between both.
const HELD: f64 = 0.002;
/// Milliseconds for which that must be so, each time.
const HELD_FOR: u64 = 3_000;
/// One thread ends then, and twice as many each time while that is so; at most one of so many.
const ENDING_SHARE: usize = 3;
/// Milliseconds after that in which a thread that is made shows that they should not have ended, and for which they then do not.
const REGRET: u64 = 30_000;
const KEPT: u64 = 600_000;
/// Another one is missed in that time if it could run for this share of so many milliseconds: the longer average does not know yet
/// what the end has changed. While all threads are busy, one look alone does not reach it.
const MISSED: f64 = 0.04;
const MISSED_AVERAGED: f64 = 500.0;
/// Milliseconds for which no thread ends for that reason after any other one was made: it could run a moment ago.
const NEW: u64 = 20_000;
/// Milliseconds over which the share is averaged.
const AVERAGED: f64 = 3_000.0;
/// Half of the milliseconds for which threads must have had nothing to do.
const HALF: u64 = 5_000;
/// One of so many threads may be idle beside the first: the load of a moment is not that of the next.
const SPARE_SHARE: usize = 16;

/// What is seen in one look at a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Milliseconds of any clock.
    pub(crate) now: u64,
    /// Threads that serve.
    pub(crate) threads: usize,
    /// The fewest of them that had nothing to do since the last look.
    pub(crate) idle: usize,
    /// Requests wait for a thread, and none is free.
    pub(crate) waits: bool,
    /// Whether another thread could have run, if that was looked at: the interpreter was free, and so was a processor.
    pub(crate) could_run: Option<bool>,
    /// More is asked for than can be answered.
    pub(crate) is_overloaded: bool,
    /// There is memory for another thread.
    pub(crate) has_memory: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// Make a thread.
    Add,
    /// So many threads are to end, once each has no request.
    End(usize),
}

/// What is remembered from one look to the next.
#[derive(Debug)]
pub(crate) struct ThreadCount {
    least: usize,
    most: usize,
    /// Since when requests have waited, if they do.
    waiting_since: Option<u64>,
    /// Share of time in which another thread could have run, of late, and when that was last looked at.
    free: f64,
    asked: u64,
    /// The same share over [`MISSED_AVERAGED`], and none of it from before threads last ended because of it.
    free_since: f64,
    /// Looks since the last at which none could.
    free_looks: u32,
    /// Since when that has been less than [`HELD`].
    held_since: Option<u64>,
    /// When threads last ended for that reason, and until when none does.
    held_end: Option<u64>,
    /// How many end next.
    ending: usize,
    kept_until: u64,
    /// The fewest threads that had nothing to do, in this half of the window and in the one before.
    idle: [usize; 2],
    half_ends: u64,
}

impl ThreadCount {
    /// Between `least` and `most` threads.
    pub(crate) fn new(least: usize, most: usize, now: u64) -> Self {
        let most = most.max(least);
        let half_ends = now + HALF;
        ThreadCount {
            least,
            most,
            waiting_since: None,
            free: FULL,
            asked: now,
            free_since: 0.0,
            free_looks: 0,
            held_since: None,
            held_end: None,
            ending: 1,
            kept_until: now,
            idle: [0, 0],
            half_ends,
        }
    }

    /// The fewest threads that there may be.
    pub(crate) fn least(&self) -> usize {
        self.least
    }

    /// The most threads that there may be.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// For how many milliseconds requests have waited for a thread.
    pub(crate) fn waited(&self, now: u64) -> u64 {
        self.waiting_since.map_or(0, |since| now.saturating_sub(since))
    }

    /// Decides what is to be done after a look.
    pub(crate) fn decide(&mut self, look: &Look) -> Change {
        let &Look { now, threads, idle, waits, could_run, is_overloaded, has_memory } = look;
        self.note_whether_one_could_run(now, could_run);
        self.waiting_since = if waits { Some(self.waiting_since.unwrap_or(now)) } else { None };
        let idle = self.spare(now, threads, idle);
        if is_overloaded {
            self.held_since = None;
            return Change::None;
        }
        let regrets = self.held_end.is_some_and(|ended| now < ended + REGRET);
        let is_missed = regrets && self.free_since >= MISSED;
        let may_add = has_memory && threads < self.most && (self.free >= FULL || is_missed);
        let free_looks = if self.free >= OFTEN_FREE || is_missed { 1 } else { FREE_LOOKS };
        if may_add && could_run == Some(true) && self.free_looks >= free_looks && self.waited(now) >= STANDING {
            self.ending = 1;
            self.held_end = None;
            self.kept_until = self.kept_until.max(now + if regrets { KEPT } else { NEW });
            return Change::Add;
        }
        let held = match self.held_since {
            Some(since) if now >= since + HELD_FOR && now >= self.kept_until => {
                if self.held_end.is_none_or(|ended| now >= ended + REGRET) {
                    self.ending = 1;
                }
                (self.held_since, self.held_end, self.free_since) = (Some(now), Some(now), 0.0);
                let ending = self.ending.min(threads / ENDING_SHARE).max(1);
                self.ending = 2 * ending;
                ending
            }
            _ => 0,
        };
        let ending = idle.max(held).min(threads.saturating_sub(self.least));
        if ending == 0 {
            return Change::None;
        }
        self.idle = self.idle.map(|idle| idle.saturating_sub(ending));
        Change::End(ending)
    }

    fn note_whether_one_could_run(&mut self, now: u64, could_run: Option<bool>) {
        let Some(could_run) = could_run else {
            if now >= self.asked + HELD_FOR {
                self.held_since = None;
            }
            return;
        };
        let elapsed = now.saturating_sub(self.asked) as f64;
        self.free_looks = if could_run { self.free_looks + 1 } else { 0 };
        self.asked = now;
        for (share, averaged) in [(&mut self.free, AVERAGED), (&mut self.free_since, MISSED_AVERAGED)] {
            *share += (f64::from(u8::from(could_run)) - *share) * (1.0 - (-elapsed / averaged).exp());
        }
        self.held_since = if self.free < HELD { Some(self.held_since.unwrap_or(now)) } else { None };
    }

    /// How many threads have had nothing to do for the whole window that ends now, if one does, beyond those that may.
    fn spare(&mut self, now: u64, threads: usize, idle: usize) -> usize {
        self.idle[0] = self.idle[0].min(idle);
        if now < self.half_ends {
            return 0;
        }
        let spare = self.idle[0].min(self.idle[1]);
        self.idle = [idle, self.idle[0]];
        self.half_ends = now + HALF;
        // Not the thread that is to serve next.
        if spare > 1 + threads / SPARE_SHARE { spare - 1 } else { 0 }
    }
}
