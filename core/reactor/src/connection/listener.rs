//! Listening sockets. The Python side opens them; these are duplicates, closed when the server stops.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use poorhttp_http::Protocol;
use poorhttp_interface::tls::Certificates;

use crate::connection::stream_protocol::Negotiation;
use crate::sys::file::read_all;
use crate::sys::net::{self, NotAccepted};
use crate::sys::poller::Poller;
use crate::sys::{AsFd, Errno, OwnedFd, ServerFd};

/// Bytes of all certificates and keys of a service, at most.
const MAX_CERTIFICATES: usize = 64 << 20;

/// One listening socket.
#[derive(Debug)]
pub struct Listener {
    /// Non-blocking, with TCP_NODELAY, which accepted connections inherit on Linux.
    pub socket: ServerFd,
    /// Protocol of its connections.
    pub protocol: Protocol,
    /// Connections of trusted peers begin with a PROXY protocol header.
    pub proxied: bool,
    /// Its connections speak TLS, with these certificates.
    pub tls: Option<Arc<dyn Certificates>>,
    /// Which of its connections carry many requests at once.
    pub streams: Negotiation,
}

impl From<OwnedFd> for Listener {
    fn from(socket: OwnedFd) -> Self {
        Listener {
            socket: socket.into(),
            protocol: Protocol::Http,
            proxied: false,
            tls: None,
            streams: Negotiation::Never,
        }
    }
}

impl Listener {
    fn unwatch(&self, poller: &Poller) {
        // It may be unregistered already.
        let _ = poller.remove(self.socket.as_fd());
    }

    pub(crate) fn accept(&self) -> Result<(OwnedFd, Option<SocketAddr>), NotAccepted> {
        net::accept(&self.socket)
    }
}

/// All listening sockets, none after the server has stopped accepting.
#[derive(Debug)]
pub(crate) struct Listeners {
    open: Mutex<Vec<Arc<Listener>>>,
}

impl Listeners {
    pub(crate) fn new(listeners: Vec<Listener>) -> Self {
        Listeners { open: Mutex::new(listeners.into_iter().map(Arc::new).collect()) }
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Listener>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, number: u32) -> Option<Arc<Listener>> {
        self.open().get(number as usize).cloned()
    }

    /// Uses certificates that the main process has written to `fd`, for connections from now on.
    #[cold]
    pub(crate) fn replace_certificates(&self, fd: &OwnedFd) -> Result<(), String> {
        let bytes = read_all(fd, MAX_CERTIFICATES).map_err(|error| error.to_string())?;
        // All listeners have the same.
        let tls = self.open().iter().find_map(|listener| listener.tls.clone());
        tls.map_or(Ok(()), |tls| tls.replace(&bytes))
    }

    /// Registers all with the poller. `in_turn`: a connection wakes only one of the workers that are registered so.
    pub(crate) fn watch(&self, poller: &Poller, in_turn: bool) -> Result<(), Errno> {
        let open = self.open();
        (0..)
            .zip(open.iter())
            .try_for_each(|(number, listener)| poller.add_listener(listener.socket.as_fd(), number, in_turn))
    }

    pub(crate) fn unwatch(&self, poller: &Poller) {
        self.open().iter().for_each(|listener| listener.unwatch(poller));
    }

    /// Takes all listeners out and removes them from the poller first: other processes may go on listening on the same
    /// sockets.
    pub(crate) fn close(&self, poller: &Poller) -> Vec<(u32, Arc<Listener>)> {
        let mut open = self.open();
        open.iter().for_each(|listener| listener.unwatch(poller));
        (0..).zip(std::mem::take(&mut *open)).collect()
    }
}
