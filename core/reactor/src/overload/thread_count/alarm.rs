//! Wakes the thread that watches how many threads there are.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What the thread has been told.
#[derive(Debug, Default)]
struct Told {
    has_rung: bool,
    has_ended: bool,
}

/// A bell that is heard also if it rings before somebody listens.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    told: Mutex<Told>,
    bell: Condvar,
}

impl Alarm {
    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All threads have requests.
    pub(crate) fn ring(&self) {
        self.lock().has_rung = true;
        self.bell.notify_one();
    }

    /// There is nothing to watch any more.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.bell.notify_one();
    }

    /// Waits until it rings, at most so long. `false`: there is nothing to watch any more.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        let told = self.lock();
        let wait = self.bell.wait_timeout_while(told, longest, |told| !told.has_rung && !told.has_ended);
        let mut told = wait.unwrap_or_else(PoisonError::into_inner).0;
        told.has_rung = false;
        !told.has_ended
    }
}
