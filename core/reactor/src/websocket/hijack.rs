//! Hands the socket of a connection to the application, directly or through a relay; and where both ends meet.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::connection::Connection;
use crate::sys::poller::Poller;
use crate::sys::{Errno, OwnedFd, net};
use crate::websocket::relay::{RelayEnd, Relays};

/// The relay and the request of a connection: the one that ends later closes it.
#[derive(Debug, Default)]
pub(crate) enum First {
    /// Neither has ended.
    #[default]
    Neither,
    Relay(RelayEnd),
    Request(Box<Connection>),
}

/// The same, for two threads.
#[derive(Debug, Default)]
pub(crate) struct Meeting(Mutex<First>);

impl Meeting {
    pub(crate) fn lock(&self) -> MutexGuard<'_, First> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The socket of the application, and for a relay a duplicate of it and the meeting.
pub(crate) type Handed = (OwnedFd, Option<OwnedFd>, Option<Arc<Meeting>>);

/// A socket for the application: a duplicate, or one end of a pair and a duplicate of that if the connection does not carry just
/// the bytes that the application must get. `close` ends a connection whose relay ends behind its request.
#[cold]
pub(crate) fn hand_over(
    relays: &Relays,
    poller: &Poller,
    connection: &mut Connection,
    close: impl FnOnce(Box<Connection>, RelayEnd) + Send + 'static,
) -> Result<Handed, Errno> {
    let received = connection.request.unread();
    let socket = &connection.socket;
    if received.is_empty() && socket.transport.tls().is_none() {
        return Ok((net::blocking_duplicate(&socket.transport)?, None, None));
    }
    let (received, socket) = (received.to_vec(), Arc::clone(socket));
    // The relay has a poller of its own.
    connection.unregister(poller);
    let meeting = Arc::new(Meeting::default());
    let other = Arc::clone(&meeting);
    let on_end = move |end| {
        let before = mem::replace(&mut *other.lock(), First::Relay(end));
        if let First::Request(connection) = before {
            close(connection, end);
        }
    };
    let pair = relays.start(&socket, received, on_end)?;
    let duplicate = net::blocking_duplicate(&pair)?;
    Ok((duplicate, Some(pair), Some(meeting)))
}
