//! What only metrics and the slow log need of a connection: end of its last response, bytes counted; absent if nobody asks.

use crate::log::slow::Answered;
use crate::status::Waiting;

/// The last response of a connection, and what has been counted of the connection so far.
#[derive(Debug, Default)]
pub(crate) struct Timing {
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
