//! What remains of an exchange whose connection the application has taken over (hijacked), as for a WebSocket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::connection::relay::RelayEnd;
use crate::control::upgrades::{Reserved, Upgraded};
use crate::exchange::stream::Stream;
use poorhttp_http::Head;

/// A request that may change the protocol.
#[derive(Debug)]
pub(crate) struct Upgrade {
    _reserved: Reserved,
    pub(crate) taken: Option<Taken>,
}

impl Upgrade {
    pub(crate) fn new(reserved: Reserved) -> Self {
        Upgrade { _reserved: reserved, taken: None }
    }
}

/// What is kept of a request whose application has got the connection.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) upgraded: Arc<Upgraded>,
    /// The head, for the access log.
    pub(crate) head: Option<(Head, Vec<u8>)>,
    /// Where the end of a relay and the end of the request meet, if the application has a socket pair.
    pub(crate) meeting: Option<Arc<Meeting>>,
}

/// The relay and the request of a connection: the one that ends later closes it.
#[derive(Debug, Default)]
pub(crate) enum First {
    /// Neither has ended.
    #[default]
    Neither,
    Relay(RelayEnd),
    Request(Stream),
}

/// The same, for two threads.
#[derive(Debug, Default)]
pub(crate) struct Meeting(Mutex<First>);

impl Meeting {
    pub(crate) fn lock(&self) -> MutexGuard<'_, First> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
