//! Decides which requests have waited too long for a thread.
//!
//! A server that gets more requests than it can answer, and answers them in turn, soon answers only those whose clients are
//! about to give up. So it refuses those that have waited too long: the rest are answered in time, and as many as before.
//! Who waits patiently is not refused: by default requests are refused only while *all* have to wait and some clients have
//! left in the meantime. What is too long follows from the rate at which requests are answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::log::error::RateLimit;

/// How long a request may wait for a thread before it is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// For any time.
    None,
    /// For so many milliseconds.
    Fixed(u64),
    /// As long as is usual, if all requests have had to wait for a while.
    #[default]
    Adaptive,
}

/// Milliseconds that a request may always wait.
const LEAST: u64 = 20;
/// So many requests may be answered while one waits, however long that takes.
const ANSWERED_MEANWHILE: u64 = 5;
/// Milliseconds for which all requests must have had to wait before any is refused.
const STANDING: u64 = 1_000;
/// Milliseconds after a refusal for which less suffices: a load that pauses for a moment is no other load.
const REMEMBERED: u64 = 10_000;
/// Milliseconds for which all requests must have had to wait then.
const STANDING_AGAIN: u64 = 100;
/// One client must have left for so many requests that were run.
const RUN_FOR_EACH_LEFT: u64 = 10;

/// A time in which every request had to wait.
#[derive(Debug, Default)]
struct Standing {
    /// In milliseconds of [`crate::sys::clock::now`].
    since: u64,
    /// Requests run in it.
    run: u64,
    /// Requests whose clients left before they were run.
    left: u64,
    /// When a request was last refused, in this time or earlier.
    refused: Option<u64>,
}

/// Whether requests are refused now.
#[derive(Debug, Default)]
pub(crate) struct QueueTimeout {
    limit: QueueLimit,
    /// The last request has waited.
    is_standing: AtomicBool,
    /// Requests are refused.
    is_overload: AtomicBool,
    standing: Mutex<Standing>,
    pub(crate) warned: RateLimit,
}

impl QueueTimeout {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        QueueTimeout { limit, ..Self::default() }
    }

    pub(crate) fn is_adaptive(&self) -> bool {
        self.limit == QueueLimit::Adaptive
    }

    /// A request has not had to wait.
    #[inline]
    pub(crate) fn note_prompt(&self) {
        if self.is_standing.load(Ordering::Relaxed) {
            self.is_standing.store(false, Ordering::Relaxed);
            self.is_overload.store(false, Ordering::Relaxed);
        }
    }

    /// By default, whether more is asked for than can be answered.
    #[inline]
    pub(crate) fn is_overload(&self) -> bool {
        self.is_overload.load(Ordering::Relaxed)
    }

    fn begin(&self, standing: &mut Standing, now: u64) {
        if !self.is_standing.swap(true, Ordering::Relaxed) {
            *standing = Standing { since: now, refused: standing.refused, ..Standing::default() };
        }
    }

    /// A client has left before its request was run.
    pub(crate) fn note_left(&self, now: u64) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        self.begin(&mut standing, now);
        standing.left += 1;
    }

    /// Counts a request that has waited for so many milliseconds. The limit, if that is beyond it.
    pub(crate) fn exceeded(&self, waited: u64, now: u64) -> Option<u64> {
        let limit = match self.limit {
            QueueLimit::None => return None,
            QueueLimit::Fixed(limit) => limit,
            QueueLimit::Adaptive => {
                let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
                self.begin(&mut standing, now);
                let lasted = now.saturating_sub(standing.since);
                let is_again = standing.refused.is_some_and(|refused| now < refused + REMEMBERED);
                if (lasted >= STANDING && standing.left * RUN_FOR_EACH_LEFT > standing.run)
                    || (lasted >= STANDING_AGAIN && is_again)
                {
                    self.is_overload.store(true, Ordering::Relaxed);
                }
                let limit = (ANSWERED_MEANWHILE * lasted / standing.run.max(1)).max(LEAST);
                let is_beyond = waited > limit && self.is_overload();
                match is_beyond {
                    true => standing.refused = Some(now),
                    false => standing.run += 1,
                }
                return is_beyond.then_some(limit);
            }
        };
        (waited > limit).then_some(limit)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    /// The requests refused of those run at these times, each of which takes `service` milliseconds and has waited as long
    /// as `waited` says; one of `leaving` clients has left (0: none).
    fn refused(timeout: &QueueTimeout, times: Range<u64>, service: usize, waited: u64, leaving: u64) -> usize {
        let is_refused = |now: &u64| {
            if leaving > 0 && now.is_multiple_of(leaving) {
                timeout.note_left(*now);
            }
            timeout.exceeded(waited, *now).is_some()
        };
        times.step_by(service).filter(is_refused).count()
    }

    #[test]
    fn who_always_waits_is_refused_if_clients_leave() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        assert_eq!(refused(&timeout, 0..1_000, 2, 500, 8), 0, "it has not lasted long");
        timeout.note_prompt();
        assert_eq!(refused(&timeout, 1_000..2_000, 2, 500, 8), 0, "one was prompt in between");
        assert_eq!(refused(&timeout, 2_000..3_000, 2, 500, 0), 500);
        assert_eq!(refused(&timeout, 3_000..4_000, 2, 20, 8), 0, "they have not waited long");
    }

    #[test]
    fn an_overload_with_pauses_goes_on() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        assert!(refused(&timeout, 0..3_000, 2, 500, 8) > 0);
        timeout.note_prompt();
        assert_eq!(refused(&timeout, 3_000..3_100, 2, 500, 0), 0, "all may have waited by chance");
        assert_eq!(refused(&timeout, 3_100..4_000, 2, 500, 0), 450);
        timeout.note_prompt();
        assert_eq!(refused(&timeout, 15_000..17_000, 2, 500, 0), 0, "that was long ago");
    }

    #[test]
    fn who_waits_patiently_is_not_refused() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        assert_eq!(refused(&timeout, 0..60_000, 2, 5_000, 0), 0);
        assert_eq!(refused(&timeout, 60_000..120_000, 2, 5_000, 100), 0, "a few leave always");
    }

    #[test]
    fn slow_requests_may_wait_longer() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        // One each second: four seconds are no long time.
        assert_eq!(refused(&timeout, 0..60_000, 1_000, 4_000, 1_000), 0);
        assert!(refused(&timeout, 60_000..120_000, 1_000, 30_000, 1_000) > 0);
    }

    #[test]
    fn a_limit_is_kept_at_once() {
        let timeout = QueueTimeout::new(QueueLimit::Fixed(50));
        assert_eq!((timeout.exceeded(50, 1), timeout.exceeded(51, 1)), (None, Some(50)));
        assert_eq!(QueueTimeout::new(QueueLimit::None).exceeded(1_000_000, 1), None);
    }
}
