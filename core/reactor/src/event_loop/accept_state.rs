//! Whether the listeners are set aside, and whether this worker lets another one accept.

use crate::sys::clock::NEVER;
use crate::sys::process::max_descriptors;

/// How often in a row it lets the other one go first in vain, and takes one itself: on a busy machine it takes some time
/// until who was woken runs.
const MAX_VAIN_YIELDS: u32 = 16;
/// Milliseconds for which it accepts freely then: the other one must be busy.
const NO_YIELD_TIME: u64 = 200;
/// Milliseconds between two complaints that there is no room.
const INTERVAL: u64 = 60_000;
/// Descriptors that are left for everything that is no connection, at least: logs, the application's files, bodies on disk.
const RESERVED_DESCRIPTORS: u64 = 64;

/// A complaint that would be repeated for everybody who comes.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    next: u64,
}

impl RateLimit {
    pub(crate) fn is_due(&mut self, now: u64) -> bool {
        let worth = self.next <= now;
        if worth {
            self.next = now + INTERVAL;
        }
        worth
    }
}

/// How many connections may be open where nobody has said: most of the descriptors that this process may have.
pub(crate) fn max_by_descriptors() -> usize {
    let limit = max_descriptors();
    let most = limit.saturating_sub((limit / 20).max(RESERVED_DESCRIPTORS)).max(1);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// What accepting depends on, under the lock of the reactor.
#[derive(Debug)]
pub(crate) struct AcceptState {
    /// When listeners that were set aside are taken up again; [`NEVER`] if none are.
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
    /// When listeners that were set aside are to be taken up again.
    #[inline]
    pub(crate) fn resume_at(&self) -> u64 {
        self.resume_at
    }

    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.resume_at != NEVER
    }

    /// The listeners are set aside until then.
    pub(crate) fn pause(&mut self, until: u64) {
        self.resume_at = until;
    }

    /// A connection has ended, so there is room. `true`: listeners that were set aside for want of it are due now.
    pub(crate) fn on_close(&mut self) -> bool {
        let due = self.is_paused() && !self.has_yielded;
        if due {
            self.resume_at = 0;
        }
        due
    }

    /// Whether listeners that were set aside are due; they count as taken up then.
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
    fn a_worker_yields_every_other_time_and_not_for_ever() {
        let mut state = AcceptState::default();
        for _ in 0..MAX_VAIN_YIELDS {
            assert!(state.yields(1, || true) && !state.yields(1, || true));
        }
        assert!(!state.yields(NO_YIELD_TIME, || true), "nobody has taken one up");
        assert!(state.yields(1 + NO_YIELD_TIME, || true));
        assert!(!state.yields(1 + NO_YIELD_TIME, || false));
    }

    #[test]
    fn a_yield_is_not_ended_by_room() {
        let mut state = AcceptState::default();
        assert!(!state.on_close() && !state.resume(NEVER - 1));
        state.pause(10);
        assert!(state.is_paused() && !state.resume(9));
        assert!(state.on_close() && state.resume(0) && !state.is_paused());
        assert!(state.yields(1, || true));
        state.pause(3);
        assert!(!state.on_close() && !state.resume(2) && state.resume(3));
    }
}
