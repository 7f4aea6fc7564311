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

    /// A method longer than [`crate::Limits::MAX_METHOD`] (RFC 9112 section 3).
    pub(crate) const METHOD_TOO_LONG: Reject = Reject::with(501, "a method over the limit");
    /// [`crate::Limits::request_line`]
    pub(crate) const LINE_TOO_LONG: Reject = Reject::with(414, "a request line over the limit");
    /// [`crate::Limits::fields`]
    pub(crate) const TOO_MANY_FIELDS: Reject = Reject::with(431, "too many header fields");
    /// [`crate::Limits::field_line`]
    pub(crate) const FIELD_TOO_LONG: Reject = Reject::with(431, "a header field over the limit");
    /// [`crate::Limits::head`]
    pub(crate) const HEAD_TOO_LONG: Reject = Reject::with(431, "a header section over the limit");
    /// The same in a gateway protocol.
    pub(crate) const PACKET_TOO_LARGE: Reject = Reject::with(431, "a packet of variables over the limit");
    /// [`crate::Limits::body`]
    pub const BODY_TOO_LARGE: Reject = Reject::with(413, "a body over the limit");
    /// Content of another length than Content-Length announces (RFC 9113 section 8.1.1).
    pub const OTHER_LENGTH: Reject = Reject::bad("content of another length than Content-Length");
    /// [`crate::Limits::trailers`]
    pub(crate) const TRAILERS_TOO_LARGE: Reject = Reject::with(431, "trailers over the limit");

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
