//! Decides which requests have waited too long for a thread.
//!
//! A server that gets more requests than it can answer, and answers them in turn, soon answers only those whose clients are
//! about to give up. So it refuses those that have waited too long: the rest are answered in time, and as many as before.
//! A burst is not refused: by default requests are refused only if *all* have had to wait for a while, as in CoDel
//! (RFC 8289). What is too long follows from the rate at which requests are answered.

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
const LEAST: u64 = 100;
/// So many requests may be answered while one waits, however long that takes.
const ANSWERED_MEANWHILE: u64 = 10;
/// Milliseconds for which all requests must have had to wait before any is refused, and how many times its limit at least.
const STANDING: u64 = 1_000;
const STANDING_TIMES: u64 = 2;

/// A time in which every request had to wait.
#[derive(Debug, Default)]
struct Standing {
    /// In milliseconds of [`crate::sys::clock::now`].
    since: u64,
    /// Requests run in it.
    run: u64,
}

/// Whether requests are refused now.
#[derive(Debug, Default)]
pub(crate) struct QueueTimeout {
    limit: QueueLimit,
    /// The last request has waited.
    is_standing: AtomicBool,
    standing: Mutex<Standing>,
    pub(crate) warned: RateLimit,
}

impl QueueTimeout {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        QueueTimeout { limit, ..Self::default() }
    }

    /// A request has not had to wait.
    #[inline]
    pub(crate) fn note_prompt(&self) {
        if self.is_standing.load(Ordering::Relaxed) {
            self.is_standing.store(false, Ordering::Relaxed);
        }
    }

    /// Counts a request that has waited for so many milliseconds. The limit, if that is beyond it.
    pub(crate) fn exceeded(&self, waited: u64, now: u64) -> Option<u64> {
        let limit = match self.limit {
            QueueLimit::None => return None,
            QueueLimit::Fixed(limit) => limit,
            QueueLimit::Adaptive => {
                let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
                if !self.is_standing.swap(true, Ordering::Relaxed) {
                    *standing = Standing { since: now, run: 0 };
                }
                let lasted = now.saturating_sub(standing.since);
                let limit = (ANSWERED_MEANWHILE * lasted / standing.run.max(1)).max(LEAST);
                let is_beyond = waited > limit && lasted >= STANDING.max(STANDING_TIMES * limit);
                standing.run += u64::from(!is_beyond);
                return is_beyond.then_some(limit);
            }
        };
        (waited > limit).then_some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests that arrive every `interval` milliseconds and have waited as `waited` says; returns those refused, by
    /// time. Each that is run takes `service` milliseconds.
    fn refused(timeout: &QueueTimeout, times: std::ops::Range<u64>, service: usize, waited: u64) -> Vec<u64> {
        times.step_by(service).filter(|now| timeout.exceeded(waited, *now).is_some()).collect()
    }

    #[test]
    fn a_burst_is_not_refused_and_a_standing_queue_is() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        assert!(refused(&timeout, 0..1_000, 2, 500).is_empty());
        timeout.note_prompt();
        assert!(refused(&timeout, 1_000..2_000, 2, 500).is_empty(), "one was prompt in between");
        let late = refused(&timeout, 2_000..3_000, 2, 500);
        assert!(late.len() == 500, "{late:?}");
        assert!(refused(&timeout, 3_000..4_000, 2, 90).is_empty(), "they have not waited long");
    }

    #[test]
    fn slow_requests_may_wait_longer() {
        let timeout = QueueTimeout::new(QueueLimit::Adaptive);
        // One each second: ten seconds are no long time.
        assert!(refused(&timeout, 0..60_000, 1_000, 9_000).is_empty());
        assert!(!refused(&timeout, 60_000..120_000, 1_000, 30_000).is_empty());
    }

    #[test]
    fn a_limit_is_kept_at_once() {
        let timeout = QueueTimeout::new(QueueLimit::Fixed(50));
        assert_eq!((timeout.exceeded(50, 1), timeout.exceeded(51, 1)), (None, Some(50)));
        assert_eq!(QueueTimeout::new(QueueLimit::None).exceeded(1_000_000, 1), None);
    }
}
