//! Times and byte counts of one connection, from which metrics and the slow log are made.

use crate::log::slow::Answered;

/// The state of a connection that waits for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For the rest of a request, or of a TLS handshake.
    Reading,
    /// For a client that takes its response slowly.
    Sending,
}

/// The last response of a connection, and what has been counted of the connection so far.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    /// The last response.
    pub(crate) answered: Answered,
    /// It was not sent yet, as far as is known.
    pub(crate) is_pending: bool,
    /// Bytes sent that have been counted.
    pub(crate) counted: u64,
    /// Bytes that were sent when the response before had been sent.
    pub(crate) begun: u64,
    /// The state in which it is counted.
    pub(crate) waiting: Option<Waiting>,
}
