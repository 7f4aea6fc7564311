//! State that the Python classes `Request` and `Connection` share: exchange, status entry, and timeout of one request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use poorhttp_reactor::Exchange;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::interrupter::Interrupter;
use crate::lock;
use crate::worker_status::InFlightEntry;

pub(crate) struct Dispatched {
    exchange: Mutex<Exchange>,
    number: u64,
    /// Forks of this process before the request began.
    forks: u64,
    /// Entry in the worker's status memory, if it has a supervisor.
    entry: Option<InFlightEntry>,
    /// Interrupts the application on a timeout.
    interrupter: Option<Arc<Interrupter>>,
}

impl Dispatched {
    #[inline(always)]
    pub(crate) fn new(exchange: Exchange, entry: Option<InFlightEntry>, interrupter: Option<Arc<Interrupter>>) -> Self {
        let forks = poorhttp_reactor::forks();
        Dispatched { number: exchange.number(), forks, exchange: Mutex::new(exchange), entry, interrupter }
    }

    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    pub(crate) fn exchange(&self, py: Python<'_>) -> MutexGuard<'_, Exchange> {
        self.exchange.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// The exchange, unless somebody uses it.
    pub(crate) fn try_exchange(&self) -> Option<MutexGuard<'_, Exchange>> {
        match self.exchange.try_lock() {
            Ok(exchange) => Some(exchange),
            Err(TryLockError::Poisoned(exchange)) => Some(exchange.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The exchange, while no other thread can use it.
    #[inline]
    pub(crate) fn exchange_mut(&mut self) -> &mut Exchange {
        self.exchange.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the interpreter for work that may block on a disk or takes long.
    pub(crate) fn detached<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Exchange) -> T + Send) -> T {
        py.detach(|| work(&mut lock(&self.exchange)))
    }

    /// Starts the timeout of the application.
    pub(crate) fn start_timeout(&self, py: Python<'_>) -> PyResult<()> {
        match &self.interrupter {
            Some(interrupter) => interrupter.enter(py, &mut self.exchange(py))?,
            None => {
                let mut exchange = self.exchange(py);
                exchange.hand_out();
                self.note_begin(exchange.handed_out());
                return Ok(());
            }
        }
        self.note_begin(self.exchange(py).handed_out());
        Ok(())
    }

    fn note_begin(&self, handed_out: u64) {
        if let Some(entry) = &self.entry {
            entry.begin(handed_out);
        }
    }

    /// The application has got the connection; `has_left`: the request is not in flight any more, but is still shown.
    #[cold]
    pub(crate) fn note_upgraded(&self, py: Python<'_>, has_left: bool) {
        if let Some(entry) = &self.entry {
            entry.set_upgraded(py, has_left);
        }
        self.disarm_timeout(py);
    }

    #[inline]
    pub(crate) fn disarm_timeout(&self, py: Python<'_>) {
        if let Some(interrupter) = &self.interrupter {
            interrupter.leave(py, self.number);
        }
    }

    /// The application has finished.
    #[inline]
    pub(crate) fn done(&self, py: Python<'_>) {
        if let Some(entry) = &self.entry {
            entry.remove(py);
        }
        self.disarm_timeout(py);
    }

    /// Whether anything may be left to do when the application has finished.
    pub(crate) fn is_noted(&self) -> bool {
        self.interrupter.is_some() || self.entry.as_ref().is_some_and(InFlightEntry::is_present)
    }

    /// Whether the request belongs to the process that forked this one. Takes no lock: after a fork, the holder of the lock may
    /// be a thread that exists only in the parent.
    pub(crate) fn is_foreign(&self) -> bool {
        self.forks != poorhttp_reactor::forks()
    }
}
