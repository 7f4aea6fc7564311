//! Refusals of requests: status and reason.

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
        match self.status {
            403 => "Forbidden",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            413 => "Content Too Large",
            414 => "URI Too Long",
            417 => "Expectation Failed",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            500 => "Internal Server Error",
            501 => "Not Implemented",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            505 => "HTTP Version Not Supported",
            507 => "Insufficient Storage",
            _ => "Bad Request",
        }
    }
}
