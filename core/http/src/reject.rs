//! Errors of the protocol: refusals of requests (status and reason), and invalid values of the application or the options.

use std::fmt;

use crate::status::reason_phrase;

/// A refusal: the status to answer with before the connection closes, and the reason for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The status code of the response.
    pub status: u16,
    /// The reason for the log; it never contains bytes from the client.
    pub reason: &'static str,
}

impl Reject {
    pub(crate) const fn bad(reason: &'static str) -> Self {
        Reject { status: 400, reason }
    }

    pub(crate) const fn with(status: u16, reason: &'static str) -> Self {
        Reject { status, reason }
    }

    /// The reason phrase of RFC 9110 section 15 for [`Reject::status`].
    pub fn phrase(&self) -> &'static str {
        reason_phrase(self.status).unwrap_or("Bad Request")
    }
}

/// A mistake of the application or of the configuration, in words for its author.
#[derive(Debug, PartialEq, Eq)]
pub struct Invalid(pub(crate) String);

impl fmt::Display for Invalid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}
