//! Responses that stay open (long polls), and what they share: when they were last ended, and the last chunk for all of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use poorhttp_http::Response;

use crate::connection::coalesced::SharedCoder;

/// A response that stays open until it is completed for all clients at once.
#[derive(Debug)]
pub(crate) struct LongPoll {
    pub(crate) response: Response,
    /// The last piece of the body, sent if [`crate::Reactor::end_long_polls`] completes the response.
    pub(crate) final_chunk: Vec<u8>,
    /// Codes the rest of the body, if it is compressed.
    pub(crate) coder: Option<SharedCoder>,
    /// A call of `end_long_polls` after this time is meant for it, too; in microseconds of
    /// [`crate::sys::clock::precise_us`].
    pub(crate) since: u64,
    /// Number of the last chunk of [`crate::Reactor::push_to_long_polls`] that it got, or that came before it.
    pub(crate) seen: u64,
}

/// What is meant for all long polls of a reactor.
#[derive(Debug, Default)]
pub(crate) struct LongPolls {
    /// When they were last ended, in microseconds of [`crate::sys::clock::precise_us`].
    ended: AtomicU64,
    /// How many chunks there were; changed under the lock of `chunk`.
    pushed: AtomicU64,
    /// The last chunk. A client that is behind gets only this one.
    chunk: Mutex<Arc<[u8]>>,
}

impl LongPolls {
    /// All long polls that began before `now` end.
    pub(crate) fn end(&self, now: u64) {
        self.ended.store(now, Ordering::Release);
    }

    /// Whether long polls were ended later than `since`.
    pub(crate) fn have_ended_since(&self, since: u64) -> bool {
        self.ended.load(Ordering::Acquire) > since
    }

    /// Sets the chunk that all long polls get.
    pub(crate) fn push(&self, chunk: &[u8]) {
        let mut guard = self.chunk.lock().unwrap_or_else(PoisonError::into_inner);
        *guard = chunk.into();
        self.pushed.fetch_add(1, Ordering::Release);
    }

    /// The number of the last chunk.
    pub(crate) fn last(&self) -> u64 {
        self.pushed.load(Ordering::Acquire)
    }

    /// The last chunk, if it came later than the one of number `seen`, which is set to its number.
    pub(crate) fn later_than(&self, seen: &mut u64) -> Option<Arc<[u8]>> {
        if self.last() == *seen {
            return None;
        }
        let chunk = self.chunk.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = self.last();
        Some(Arc::clone(&chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_chunk_is_kept_and_seen_once() {
        let long_polls = LongPolls::default();
        let mut seen = long_polls.last();
        assert!(long_polls.later_than(&mut seen).is_none());
        long_polls.push(b"one");
        long_polls.push(b"two");
        assert_eq!(&*long_polls.later_than(&mut seen).unwrap(), b"two");
        assert!(long_polls.later_than(&mut seen).is_none());
        let mut late = long_polls.last();
        assert!(long_polls.later_than(&mut late).is_none());
    }

    #[test]
    fn an_end_counts_for_those_that_began_before() {
        let long_polls = LongPolls::default();
        assert!(!long_polls.have_ended_since(0));
        long_polls.end(7);
        assert!(long_polls.have_ended_since(6) && !long_polls.have_ended_since(7));
    }
}
