//! When the poller was asked for events, and since when a request is there: for the slow log.

use crate::connection::Connection;
use crate::sys::clock;

/// Microseconds in which the poller answers if it does not have to wait.
const AT_ONCE: u64 = 100;

/// When the poller was looked at. All times are in microseconds of [`crate::sys::clock::precise_us`].
#[derive(Debug, Default)]
pub(crate) struct PollTimes {
    /// Looks so far; 0 for ever if nobody wants to know.
    count: u64,
    /// When nothing was there that had not been told.
    last: u64,
    /// Since when that may be there of which the present look tells.
    since: u64,
    /// The present look had to wait for something.
    waited: bool,
}

impl PollTimes {
    /// The poller has answered, which it was asked to at `started`; 0: nobody wants to know.
    #[inline]
    pub(crate) fn note_poll(&mut self, started: u64) {
        if started != 0 {
            self.waited = self.note_wait(started);
            self.since = self.last;
            self.last = clock::precise_us();
            self.count += 1;
        }
    }

    /// Since `started` somebody has waited for events, if there were none already. Says whether that was so.
    pub(crate) fn note_wait(&mut self, started: u64) -> bool {
        let now = clock::precise_us();
        let waited = self.last == 0 || now - started > AT_ONCE;
        if waited {
            self.last = now;
        }
        waited
    }

    /// A connection was let in.
    pub(crate) fn note_accepted(&self, connection: &mut Connection) {
        (connection.accepted_in_poll, connection.since) = (self.count, self.since);
    }

    /// Something has come on a connection.
    #[inline]
    pub(crate) fn note_event(&self, connection: &mut Connection) {
        // On one that was let in by the last look, it may have been there as long as the connection itself.
        if self.count != 0 && (self.waited || connection.accepted_in_poll + 1 != self.count) {
            connection.since = self.since;
        }
    }
}
