//! A raw TCP connection, as a Python class.

use std::net::SocketAddr;
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use poorhttp_reactor::Exchange;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyString;
use rustix::net::AddressFamily;

use crate::interrupter::Interrupter;
use crate::worker_status::Entry;

/// A connection handed out unread.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct Connection {
    exchange: Mutex<Exchange>,
    number: u64,
    /// Client address, for logs.
    line: String,
    peer: Option<SocketAddr>,
    /// Entry in the worker's status memory, if it has a supervisor.
    entry: Option<Entry>,
    /// Interrupts the handler on a timeout.
    interrupter: Option<Arc<Interrupter>>,
}

impl Connection {
    pub(crate) fn new(
        exchange: Exchange,
        line: String,
        entry: Option<Entry>,
        interrupter: Option<Arc<Interrupter>>,
    ) -> Self {
        let (number, peer) = (exchange.number(), exchange.peer());
        Connection { exchange: Mutex::new(exchange), number, line, peer, entry, interrupter }
    }

    fn exchange(&self, py: Python<'_>) -> MutexGuard<'_, Exchange> {
        self.exchange.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// The handler has finished.
    fn response_done(&self, py: Python<'_>) {
        if let Some(entry) = &self.entry {
            entry.remove(py);
        }
        self.disarm(py);
    }

    fn disarm(&self, py: Python<'_>) {
        if let Some(interrupter) = &self.interrupter {
            interrupter.leave(py, self.number);
        }
    }
}

#[pymethods]
impl Connection {
    /// A duplicate of the socket's descriptor for the handler, and the address family.
    fn duplicate(&self, py: Python<'_>) -> PyResult<(RawFd, u16)> {
        let duplicate = self.exchange(py).duplicate();
        let socket = duplicate.map_err(|error| PyOSError::new_err((error.raw_os_error(), error.to_string())))?;
        let family = match self.peer {
            Some(SocketAddr::V4(_)) => AddressFamily::INET,
            Some(SocketAddr::V6(_)) => AddressFamily::INET6,
            None => AddressFamily::UNIX,
        };
        Ok((socket.into_raw_fd(), family.as_raw()))
    }

    /// Starts the timeout of the handler. Returns the client address as `socket.accept` does.
    fn begin(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match &self.interrupter {
            Some(interrupter) => interrupter.enter(py, &mut self.exchange(py))?,
            None => _ = self.exchange(py).hand_out(),
        }
        match self.peer {
            Some(SocketAddr::V4(peer)) => {
                Ok((peer.ip().to_string(), peer.port()).into_pyobject(py)?.into_any().unbind())
            }
            Some(SocketAddr::V6(peer)) => {
                let flow = u32::from_be(peer.flowinfo());
                let address = (peer.ip().to_string(), peer.port(), flow, peer.scope_id());
                Ok(address.into_pyobject(py)?.into_any().unbind())
            }
            None => Ok(PyString::new(py, "").into_any().unbind()),
        }
    }

    fn disarm_timeout(&self, py: Python<'_>) {
        self.disarm(py);
    }

    /// Closes the connection; if `complete`, sent data still arrives.
    #[pyo3(signature = (complete = true))]
    fn end(&self, py: Python<'_>, complete: bool) -> PyResult<()> {
        if self.foreign() {
            return Err(PyRuntimeError::new_err("this connection is the parent's"));
        }
        self.exchange(py).end_raw_tcp(complete);
        self.response_done(py);
        Ok(())
    }

    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    #[getter]
    fn line(&self) -> &str {
        &self.line
    }

    /// Whether the connection belongs to the process that forked this one.
    #[getter]
    fn foreign(&self) -> bool {
        // After a fork the mutex may be held by a thread that exists only in the parent.
        self.exchange.try_lock().map_or(true, |exchange| exchange.is_foreign())
    }

    /// Whether the connection was closed because the handler took too long.
    #[getter]
    fn timed_out(&self, py: Python<'_>) -> bool {
        self.exchange(py).has_timed_out()
    }

    #[getter]
    fn disconnected(&self, py: Python<'_>) -> bool {
        self.exchange(py).is_client_gone()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let exchange = self.exchange.get_mut().unwrap_or_else(PoisonError::into_inner);
        if exchange.is_over() || exchange.is_foreign() {
            return;
        }
        exchange.end_raw_tcp(false);
        Python::try_attach(|py| self.response_done(py));
    }
}
