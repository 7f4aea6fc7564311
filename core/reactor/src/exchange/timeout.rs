//! State of `request_timeout` in one exchange: whether its thread has ended the request, and how.

use std::sync::Arc;

use crate::request_timeout::{Progress, TimedRequest};
use crate::status::counters::Counters;

/// The part of an exchange that the thread of the request timeout shares.
#[derive(Debug, Default)]
pub(crate) struct Timeout {
    /// Since the application has got the request.
    request: Option<Arc<TimedRequest>>,
    /// How the request timeout has ended the request, if it did.
    outcome: Option<Progress>,
}

impl Timeout {
    /// The application has got the request.
    pub(crate) fn begin(&mut self, request: &Arc<TimedRequest>) {
        self.request = Some(Arc::clone(request));
    }

    /// The application is about to send. `false`: it is too late for that.
    #[inline]
    pub(crate) fn commit(&self) -> bool {
        self.request.as_ref().is_none_or(|request| request.commit())
    }

    /// Whether the thread has ended the request.
    #[inline]
    pub(crate) fn has_ended_request(&self) -> bool {
        self.outcome.is_some() || self.request.as_ref().is_some_and(|request| request.has_timed_out())
    }

    /// Whether the thread has answered in place of the application, which is known once the timeout is over.
    #[inline]
    pub(crate) fn has_answered(&self) -> bool {
        self.outcome == Some(Progress::Replaced)
    }

    /// Whether the thread had ended the request when the timeout was over.
    #[inline]
    pub(crate) fn has_outcome(&self) -> bool {
        self.outcome.is_some()
    }

    /// Ends the timeout of a request that was answered with this status. `true`: the thread has cut the response short.
    #[inline]
    pub(crate) fn end(&mut self, status: u16, counters: &Counters) -> bool {
        let Some(request) = self.request.take() else { return false };
        self.outcome = request.close();
        if self.outcome.is_some() || (request.is_overdue() && status == 504) {
            request.count(counters);
        }
        self.outcome == Some(Progress::CutShort)
    }
}
