//! The error type of responses: why a response, or a part of it, was not sent.

use poorhttp_http::Invalid;

/// Why something was not sent.
#[derive(Debug)]
pub enum SendError {
    /// The application has given something invalid; none of it was sent.
    Invalid(Invalid),
    /// The client is gone, or too slow.
    Disconnected,
    /// The request has been answered.
    Over,
    /// The application has got the connection, and its response is discarded.
    Upgraded,
    /// The client is slow, and only so many bytes were taken. The application should wait for room
    /// ([`crate::Exchange::waiter`], or [`crate::Exchange::notify`]), call [`crate::Exchange::send_queued`], and give the rest when that succeeds.
    Full(usize),
}

impl From<Invalid> for SendError {
    fn from(invalid: Invalid) -> Self {
        SendError::Invalid(invalid)
    }
}
