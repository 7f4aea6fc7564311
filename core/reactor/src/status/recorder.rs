//! Notes the slowest requests, the last errors and refusals in the shared memory of a worker, one thread at a time.

use std::sync::{Mutex, PoisonError};

use super::{Finished, Refusal, WorkerStatus};

/// The slowest requests, the last errors and the last refusals of this process. Its lock is held for a few microseconds, and
/// never while an application runs.
#[derive(Debug)]
pub(crate) struct Recorder {
    status: &'static WorkerStatus,
    writing: Mutex<()>,
}

impl Recorder {
    pub(crate) fn new(status: &'static WorkerStatus) -> Self {
        Recorder { status, writing: Mutex::new(()) }
    }

    /// Whether a request that has taken so long, and ends now, is among the slowest.
    #[inline]
    pub(crate) fn is_slow(&self, total: u64, now: u64) -> bool {
        self.status.is_slow(total, now)
    }

    /// Notes a request among the last errors and the slowest, if it is one of them.
    #[cold]
    pub(crate) fn note(&self, finished: &Finished) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if finished.status >= 500 {
            self.status.add_error(finished);
        }
        if self.status.is_slow(finished.total(), finished.ended) {
            self.status.add_slow(finished);
        }
    }

    /// Notes a request that the server itself has refused. `sent`: bytes of its response, which is an error from 500 on; none
    /// if it is noted elsewhere.
    #[cold]
    pub(crate) fn note_refusal(&self, refusal: Refusal, sent: Option<u64>) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.status.add_refusal(&refusal);
        if refusal.status >= 500
            && let Some(sent) = sent
        {
            let Refusal { number, pid, status, when: ended, id, line, .. } = refusal;
            self.status.add_error(&Finished { number, pid, status, ended, sent, id, line, ..Finished::default() });
        }
    }
}
