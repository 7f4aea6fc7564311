//! Connections with streams that are watched beside the poller, for [`crate::scheduler::stream_reader`].

use std::collections::HashMap;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustc_hash::FxBuildHasher;

use crate::connection::multiplexed::Multiplexed;
use crate::sys::socket_watch::SocketWatch;
use crate::sys::wakeup::Wakeup;
use crate::sys::{AsFd, Errno};

/// Milliseconds after which a wait begins again.
const HOUR: u64 = 3_600_000;

/// What the thread of a reactor watches, once it has begun.
#[derive(Debug, Default)]
pub(crate) struct StreamWatch(Mutex<Option<Arc<Watched>>>);

/// Sockets, and their connections.
#[derive(Debug)]
pub(crate) struct Watched {
    sockets: SocketWatch,
    wakeup: Wakeup,
    has_ended: AtomicBool,
    /// By the descriptors of their sockets.
    connections: Mutex<HashMap<RawFd, Weak<Multiplexed>, FxBuildHasher>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StreamWatch {
    /// What is watched; `start` begins the thread for it.
    pub(crate) fn get_or_start(
        &self,
        start: impl FnOnce(Arc<Watched>) -> Result<(), Errno>,
    ) -> Result<Arc<Watched>, Errno> {
        let mut guard = lock(&self.0);
        if let Some(watched) = &*guard {
            return Ok(Arc::clone(watched));
        }
        let (sockets, wakeup) = (SocketWatch::new()?, Wakeup::new()?);
        let (has_ended, connections) = (AtomicBool::new(false), Mutex::default());
        let watched = Arc::new(Watched { sockets, wakeup, has_ended, connections });
        start(Arc::clone(&watched))?;
        Ok(Arc::clone(guard.insert(watched)))
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        if let Some(watched) = lock(&self.0).take() {
            watched.has_ended.store(true, Ordering::Release);
            watched.wakeup.wake();
        }
    }
}

impl Watched {
    /// Watches a connection until its socket is closed.
    pub(crate) fn add(&self, streams: &Arc<Multiplexed>) -> Result<(), Errno> {
        let mut connections = lock(&self.connections);
        if connections.len() == connections.capacity() {
            connections.retain(|_, other| other.strong_count() > 0);
        }
        connections.insert(streams.fd().as_raw_fd(), Arc::downgrade(streams));
        self.sockets.add(streams.fd())
    }

    /// Waits for events, and returns their connections; `None`: the thread is to end.
    pub(crate) fn wait(&self) -> Option<Vec<Arc<Multiplexed>>> {
        self.wakeup.wait_with(self.sockets.as_fd(), true, false, HOUR);
        if self.has_ended.load(Ordering::Acquire) {
            return None;
        }
        let (sockets, connections) = (self.sockets.sockets(), lock(&self.connections));
        Some(sockets.iter().filter_map(|socket| connections.get(socket)?.upgrade()).collect())
    }
}
