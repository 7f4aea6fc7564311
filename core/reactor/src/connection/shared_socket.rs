//! What is reached of a connection while somebody else has it: its socket, and what waits for a slow reader.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SendFlags, Shutdown, connect_unspec, send, shutdown};

use crate::connection::send_queue::{Flushed, Outlet};
use crate::connection::temp_file::Spool;
use crate::connection::throughput::Demand;
use crate::sys::clock::NEVER;

/// What two threads may touch at once: the owner of the connection, and whoever finds the socket writable.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: OwnedFd,
    outlet: Mutex<Option<Outlet>>,
    /// Something waits in the outlet; read without its lock.
    pub(crate) waiting: AtomicBool,
    /// We have ended the connection, because its client took too little.
    cut: AtomicBool,
    pub(crate) spool: Arc<Spool>,
}

impl Link {
    pub(crate) fn new(socket: OwnedFd, spool: Arc<Spool>) -> Self {
        Link { socket, outlet: Mutex::new(None), waiting: AtomicBool::new(false), cut: AtomicBool::new(false), spool }
    }

    pub(crate) fn outlet(&self) -> MutexGuard<'_, Option<Outlet>> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire)
    }

    /// Sends what waits, as far as the socket takes it and others do not have to wait.
    pub(crate) fn flush(&self) -> Flushed {
        match &mut *self.outlet() {
            Some(outlet) => outlet.flush(self.socket.as_fd()),
            None => Flushed::Everything,
        }
    }

    /// When to ask for its [`Link::patience`].
    pub(crate) fn deadline(&self, demand: Demand) -> u64 {
        self.outlet().as_ref().map_or(NEVER, |outlet| outlet.deadline(demand))
    }

    /// Until when a reader for whom something waits may go on as it does; `None`: it has been too slow. To be asked once
    /// for each deadline: the next answer is about the time from here on.
    pub(crate) fn patience(&self, demand: Demand) -> Option<u64> {
        patience(&mut self.outlet(), demand)
    }

    /// The same for those who hold a lock that others need: whoever has the outlet may be writing to a slow disk, and then
    /// it is asked again after `later`.
    pub(crate) fn patience_without_waiting(&self, demand: Demand, later: u64) -> Option<u64> {
        match self.outlet.try_lock() {
            Ok(mut outlet) => patience(&mut outlet, demand),
            Err(TryLockError::Poisoned(outlet)) => patience(&mut outlet.into_inner(), demand),
            Err(TryLockError::WouldBlock) => Some(later),
        }
    }

    /// Cuts the connection off: whoever owns it learns of it with its next call. Does not wait for a thread that is sending:
    /// that one fails, and gives up what is left.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        if let Ok(mut guard) = self.outlet.try_lock()
            && let Some(outlet) = &mut *guard
        {
            outlet.give_up();
        }
        self.forsake();
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// Whether [`Link::cut`] has ended the connection.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }

    /// Sends the last octets of this connection, from outside: behind what waits, or at once. There is room for them, because
    /// either nothing has been sent for the request that they answer, or they wait as well.
    #[cold]
    pub(crate) fn send_the_last(&self, bytes: &[u8]) {
        let all_sent = match &mut *self.outlet() {
            Some(outlet) => {
                outlet.push(bytes);
                outlet.flush(self.socket.as_fd()) == Flushed::Everything
            }
            None => {
                let _ = send(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                true
            }
        };
        if all_sent {
            let _ = shutdown(&self.socket, Shutdown::Write);
        }
    }

    /// Ends the connection so that nobody takes what was sent for a whole answer.
    #[cold]
    pub(crate) fn reset(&self) {
        if let Some(outlet) = &mut *self.outlet() {
            outlet.give_up();
        }
        self.forsake();
        // Whoever owns it will close it, but who knows when. A Unix socket has no resets.
        if connect_unspec(&self.socket).is_err() {
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }

    /// Lets the end of the connection be a reset. Otherwise the kernel would go on for many minutes with what it has
    /// accepted for a client that takes nothing, and that client would never learn of the end.
    pub(crate) fn forsake(&self) {
        let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
    }
}

fn patience(outlet: &mut Option<Outlet>, demand: Demand) -> Option<u64> {
    match outlet {
        Some(outlet) => (!outlet.is_too_slow(demand)).then(|| outlet.deadline(demand)),
        None => Some(NEVER),
    }
}
