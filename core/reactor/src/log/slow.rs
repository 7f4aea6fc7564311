//! The slow log: requests slower than `slow_request`, with the phases of their time.
//!
//! The time of a request begins with the arrival of its last byte: the time that its client takes to send it does not
//! count. The kernel does not report when a byte has arrived, so the moment counts in which the waiting poller reports it.
//! If the event is pending when the poller is asked, it may be as old as the last poll: the time spent waiting is then an
//! upper bound.

use crate::log::error::{ErrorLog, Level};
use crate::log::request_id::RequestName;

/// A request that was answered, but perhaps not sent yet. Times are those of [`crate::sys::clock::precise_us`].
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) number: u64,
    /// None if nobody needs it.
    pub(crate) name: Option<Box<RequestName>>,
    pub(crate) status: u16,
    /// When it was complete.
    pub(crate) since: u64,
    /// When the application got it; 0: the application had no part in it.
    pub(crate) handed_out: u64,
    /// When the response was complete.
    pub(crate) ended: u64,
    /// It is noted among the errors already.
    pub(crate) is_noted: bool,
}

/// The phases of a request, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) waited: u64,
    /// `None`: the application had no part in it.
    pub(crate) application: Option<u64>,
    pub(crate) sending: u64,
}

impl Answered {
    /// The phases of a request whose last byte was sent, or given up, at `sent`. Of a gathered answer, that is when it was
    /// gathered.
    #[inline]
    pub(crate) fn times(&self, sent: u64) -> Times {
        let (handed_out, is_run) = if self.handed_out == 0 { (self.ended, false) } else { (self.handed_out, true) };
        Times {
            waited: handed_out.saturating_sub(self.since),
            application: is_run.then(|| self.ended.saturating_sub(handed_out)),
            sending: sent.saturating_sub(self.ended),
        }
    }

    /// Logs it if it has taken at least `limit`; 0: none is logged.
    pub(crate) fn report(&self, times: &Times, limit: u64, error_log: &ErrorLog) {
        let Some(name) = &self.name else { return };
        let Times { waited, application, sending } = *times;
        let application = application.unwrap_or(0);
        let total = waited + application + sending;
        if limit == 0 || total < limit {
            return;
        }
        let seconds = |microseconds: u64| microseconds as f64 / 1e6;
        // The status of a raw TCP connection is 0.
        let status = if self.status == 0 { String::new() } else { format!("{}, ", self.status) };
        let message = format!(
            "{status}{:.3} s: {:.3} waiting for a thread, {:.3} in the application, {:.3} sending",
            seconds(total),
            seconds(waited),
            seconds(application),
            seconds(sending),
        );
        error_log.write_about(Level::Warning, name, &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_a_request() {
        let times = Answered { since: 100, handed_out: 130, ended: 180, ..Answered::default() };
        let mut answered = Answered { number: 1, status: 200, ..times };
        assert_eq!(answered.times(190), Times { waited: 30, application: Some(50), sending: 10 });
        // It was answered without the application.
        answered.handed_out = 0;
        assert_eq!(answered.times(190), Times { waited: 80, application: None, sending: 10 });
    }
}
