//! A function to be called once a stream may go on: its request has more data, its response more room, or its client has left.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a stream waits for. The end of its client is reported in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// A part of the request's body.
    pub data: bool,
    /// Room for more of the response.
    pub room: bool,
}

impl Interest {
    /// A part of the request's body.
    pub const DATA: Interest = Interest { data: true, room: false };
    /// Room for more of the response.
    pub const ROOM: Interest = Interest { data: false, room: true };
}

/// A function to be called once, and when.
struct Pending {
    interest: Interest,
    function: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Pending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.interest.fmt(formatter)
    }
}

/// The notice that a stream waits for, if it does.
#[derive(Debug, Default)]
pub(crate) struct StreamNotice {
    pending: Mutex<Option<Pending>>,
    /// There is one; read without the lock.
    is_set: AtomicBool,
}

impl StreamNotice {
    fn lock(&self) -> MutexGuard<'_, Option<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `function` called once, in place of the one before.
    pub(crate) fn set(&self, interest: Interest, function: Box<dyn FnOnce() + Send>) {
        let before = self.lock().replace(Pending { interest, function });
        self.is_set.store(true, Ordering::Release);
        // Without the lock: dropping it may run code of the embedding.
        drop(before);
    }

    /// Nobody waits any more.
    pub(crate) fn clear(&self) {
        drop(self.take(|_| true));
    }

    /// Whether the stream waits for something.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Calls the function if it waits for something that has come, as `has_come` says. Not to be called under a lock.
    pub(crate) fn call_if(&self, has_come: impl FnOnce(Interest) -> bool) {
        if self.is_set()
            && let Some(pending) = self.take(has_come)
        {
            (pending.function)();
        }
    }

    fn take(&self, is_meant: impl FnOnce(Interest) -> bool) -> Option<Pending> {
        let mut guard = self.lock();
        let taken = guard.take_if(|pending| is_meant(pending.interest));
        if taken.is_some() {
            self.is_set.store(false, Ordering::Release);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_notice_is_given_once_and_only_for_what_is_awaited() {
        let (notice, calls) = (StreamNotice::default(), Arc::new(AtomicUsize::new(0)));
        let count = || {
            let calls = Arc::clone(&calls);
            Box::new(move || _ = calls.fetch_add(1, Ordering::Relaxed))
        };
        notice.call_if(|_| true);
        notice.set(Interest::DATA, count());
        notice.call_if(|interest| interest.room);
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        notice.call_if(|interest| interest.data);
        notice.call_if(|interest| interest.data);
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        notice.set(Interest::ROOM, count());
        notice.clear();
        notice.call_if(|_| true);
        assert!(!notice.is_set() && calls.load(Ordering::Relaxed) == 1);
    }
}
