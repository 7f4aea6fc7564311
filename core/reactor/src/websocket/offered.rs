//! An offer to take over a connection, as its exchange keeps it: the reservation, and the connection once it is hijacked.

use std::sync::Arc;

use crate::websocket::hijack::Meeting;
use crate::websocket::limits::Reserved;
use crate::websocket::upgraded::Upgraded;
use poorhttp_http::Head;

/// A request that may change the protocol.
#[derive(Debug)]
pub(crate) struct Offered {
    _reserved: Reserved,
    pub(crate) hijacked: Option<Hijacked>,
}

impl Offered {
    pub(crate) fn new(reserved: Reserved) -> Self {
        Offered { _reserved: reserved, hijacked: None }
    }
}

/// What is kept of a request whose application has got the connection.
#[derive(Debug)]
pub(crate) struct Hijacked {
    pub(crate) upgraded: Arc<Upgraded>,
    /// The head, for the access log.
    pub(crate) head: Option<(Head, Vec<u8>)>,
    /// Where the end of a relay and the end of the request meet, if the application has a socket pair.
    pub(crate) meeting: Option<Arc<Meeting>>,
}
