//! A request, as a Python class.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use poorhttp_reactor::{Exchange, SendError};
use pyo3::exceptions::{PyConnectionResetError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::ffi::duplicate;
use crate::interrupter::Interrupter;
use crate::worker_status::Entry;

/// Bytes from which a body is sent with the interpreter released, as copying it takes longer than that.
const LARGE: usize = 128 << 10;

/// A request, which is also its `start_response` and `write`.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct Request {
    exchange: Mutex<Exchange>,
    /// Taken once. The application may put `start_response` into the environ: a reference back would make a cycle.
    environ: Mutex<Option<Py<PyDict>>>,
    /// Called with a descriptor, to wait until it is writable; `None`: the thread blocks.
    wait_writable: Option<Py<PyAny>>,
    number: u64,
    /// Method and target, kept after the response, as the application may still fail then.
    line: OnceLock<String>,
    /// Entry in the worker's status memory, if it has a supervisor.
    entry: Option<Entry>,
    /// Whether the application's time is measured.
    timed: bool,
    /// Interrupts the application on a timeout.
    interrupter: Option<Arc<Interrupter>>,
}

/// The exception to raise for a [`SendError`] or a Python error.
struct Failure(PyErr);

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        Failure(match error {
            SendError::Invalid(invalid) => PyValueError::new_err(invalid.to_string()),
            SendError::Disconnected => PyConnectionResetError::new_err("the client has left"),
            SendError::Over => PyRuntimeError::new_err("this request has been answered already"),
            SendError::Full(_) => PyConnectionResetError::new_err("the client takes nothing"),
        })
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl Request {
    pub(crate) fn new(
        exchange: Exchange,
        environ: Py<PyDict>,
        wait_writable: Option<Py<PyAny>>,
        entry: Option<Entry>,
        interrupter: Option<Arc<Interrupter>>,
    ) -> Self {
        let (number, timed) = (exchange.number(), exchange.is_timed());
        Request {
            timed,
            exchange: Mutex::new(exchange),
            environ: Mutex::new(Some(environ)),
            wait_writable,
            number,
            line: OnceLock::new(),
            entry,
            interrupter,
        }
    }

    /// The application has finished.
    #[inline]
    fn response_done(&self, py: Python<'_>) {
        if let Some(entry) = &self.entry {
            entry.remove(py);
        }
        self.disarm(py);
    }

    #[inline]
    fn disarm(&self, py: Python<'_>) {
        if let Some(interrupter) = &self.interrupter {
            interrupter.leave(py, self.number);
        }
    }

    #[inline]
    fn exchange(&self, py: Python<'_>) -> MutexGuard<'_, Exchange> {
        self.exchange.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// The exchange, with its request line saved before the response ends.
    fn exchange_to_end(&self, py: Python<'_>) -> MutexGuard<'_, Exchange> {
        let exchange = self.exchange(py);
        self.line.get_or_init(|| exchange.request_line());
        exchange
    }

    /// Releases the interpreter for work that may block on a disk or takes long.
    fn without_interpreter<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Exchange) -> T + Send) -> T {
        py.detach(|| work(&mut self.exchange.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    #[inline]
    fn start(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        fields: &Bound<'_, PyAny>,
        exc_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let status = status.cast::<PyString>().map_err(|_| wrong_type("status", "a str", status))?.to_str()?;
        let fields = fields.cast::<PyList>().map_err(|_| wrong_type("headers", "a list of tuples", fields))?;
        let mut exchange = self.exchange(py);
        match exc_info {
            None if exchange.response().is_started() => {
                return Err(PyRuntimeError::new_err("start_response was called a second time without exc_info"));
            }
            Some(exc_info) if !exchange.restart() => {
                // The head was sent, so PEP 3333 wants the exception raised again.
                let exc_info = exc_info.cast::<PyTuple>().map_err(|_| wrong_type("exc_info", "a tuple", exc_info))?;
                return Err(PyErr::from_value(exc_info.get_item(1)?));
            }
            _ => {}
        }
        exchange.start(status, |write| {
            for field in fields {
                let pair =
                    field.cast::<PyTuple>().map_err(|_| wrong_type("a header", "a tuple of name and value", &field))?;
                if pair.len() != 2 {
                    // The repr of the tuple would run application code while this request is locked.
                    let message = format!("a header must be a tuple of name and value, not of {} items", pair.len());
                    return Err(PyTypeError::new_err(message).into());
                }
                let (name, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
                let name = name.cast::<PyString>().map_err(|_| wrong_type("a header's name", "a str", &name))?;
                let text = value.cast::<PyString>().map_err(|_| {
                    wrong_type(&format!("the value of header {}", name.to_string_lossy()), "a str", &value)
                })?;
                write(name.to_str()?, text.to_str()?)?;
            }
            Ok::<(), Failure>(())
        })?;
        Ok(())
    }

    /// Sends a piece of the body. `false`: later pieces would not be sent.
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = body_bytes(data)?;
        let mut rest = bytes;
        loop {
            let write = |exchange: &mut Exchange| (exchange.write(rest), exchange.wants_more());
            let mut exchange = self.exchange(py);
            let (sent, wanted) = match rest.len() < LARGE && !exchange.is_behind() {
                true => write(&mut exchange),
                false => {
                    drop(exchange);
                    self.without_interpreter(py, write)
                }
            };
            match sent {
                Err(SendError::Full(taken)) => rest = rest.get(taken..).unwrap_or_default(),
                sent => {
                    return sent.map(|()| wanted).map_err(|error| Failure::from(error).into());
                }
            }
            if let Err(error) = self.wait_for_client(py) {
                if rest.len() < bytes.len() {
                    self.exchange(py).break_off();
                }
                return Err(error);
            }
        }
    }

    /// Waits until the client has received enough for more to be queued, in the way of the worker's mode.
    #[cold]
    fn wait_for_client(&self, py: Python<'_>) -> PyResult<()> {
        let mut sent = Err(SendError::Full(0));
        while let Err(SendError::Full(_)) = sent {
            let Some(socket) = self.exchange(py).socket() else { break };
            match &self.wait_writable {
                Some(wait) => {
                    wait.call1(py, (socket.as_fd().as_raw_fd(),))?;
                }
                None => {
                    let timeout = self.exchange(py).send_timeout_left();
                    if timeout == 0 {
                        self.exchange(py).cut();
                    } else {
                        let timeout =
                            Timespec { tv_sec: (timeout / 1_000) as i64, tv_nsec: (timeout % 1_000 * 1_000_000) as _ };
                        let mut sockets = [PollFd::new(&socket, PollFlags::OUT)];
                        py.detach(|| poll(&mut sockets, Some(&timeout)).is_ok());
                    }
                    py.check_signals()?;
                }
            }
            sent = self.without_interpreter(py, Exchange::send_queued);
        }
        sent.map_err(|error| Failure::from(error).into())
    }
}

fn wrong_type(what: &str, wanted: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let kind = got.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what} must be {wanted}, not {kind}"))
}

#[pymethods]
impl Request {
    /// `start_response` (PEP 3333) with two or three arguments, `write` with one. Returns itself as the `write` callable.
    #[pyo3(signature = (status, response_headers = None, exc_info = None))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        status: &Bound<'py, PyAny>,
        response_headers: Option<&Bound<'py, PyAny>>,
        exc_info: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let (py, this) = (slf.py(), slf.get());
        let Some(fields) = response_headers else {
            if status.is_instance_of::<PyString>() {
                return Err(PyTypeError::new_err("start_response takes a status and a list of headers"));
            }
            this.send(py, status)?;
            return Ok(slf.clone());
        };
        this.start(py, status, fields, exc_info)?;
        Ok(slf.clone())
    }

    /// Returns the environ once, then `None`. Starts the timeout.
    fn take_environ(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        let environ = self.environ.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        if self.timed && environ.is_some() {
            match &self.interrupter {
                Some(interrupter) => interrupter.enter(py, &mut self.exchange(py))?,
                None => _ = self.exchange(py).hand_out(),
            }
        }
        Ok(environ)
    }

    fn disarm_timeout(&self, py: Python<'_>) {
        self.disarm(py);
    }

    fn expect_wait(&self, py: Python<'_>) {
        self.exchange(py).expect_wait();
    }

    /// Whether the server answered because the application took too long.
    #[getter]
    fn timed_out(&self, py: Python<'_>) -> bool {
        self.exchange(py).has_timed_out()
    }

    /// Method and target, for logs.
    #[getter]
    fn line(&self, py: Python<'_>) -> String {
        self.line.get().cloned().unwrap_or_else(|| self.exchange(py).request_line())
    }

    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    #[getter]
    fn started(&self, py: Python<'_>) -> bool {
        self.exchange(py).response().is_started()
    }

    #[getter]
    fn committed(&self, py: Python<'_>) -> bool {
        self.exchange(py).response().is_committed()
    }

    #[getter]
    fn over(&self, py: Python<'_>) -> bool {
        self.exchange(py).is_over()
    }

    /// Whether the request belongs to the process that forked this one.
    #[getter]
    fn foreign(&self) -> bool {
        // After a fork the mutex may be held by a thread that exists only in the parent.
        self.exchange.try_lock().map_or(true, |exchange| exchange.is_foreign())
    }

    #[getter]
    fn disconnected(&self, py: Python<'_>) -> bool {
        self.exchange(py).is_lost()
    }

    /// Whether the server has closed the connection before the response was complete, and logged why.
    #[getter]
    fn cut(&self, py: Python<'_>) -> bool {
        self.exchange(py).is_cut()
    }

    #[getter]
    fn stopping(&self, py: Python<'_>) -> bool {
        self.exchange(py).is_stopping()
    }

    /// Sends the response with a list or tuple of bytes. `False`: another type; nothing was sent.
    fn finish(&self, py: Python<'_>, body: &Bound<'_, PyAny>) -> PyResult<bool> {
        let sent = if let Ok(list) = body.cast_exact::<PyList>() {
            match list.len() {
                1 => self.finish_with(py, &[list.get_item(0)?]),
                _ => self.finish_with(py, &list.iter().collect::<Vec<_>>()),
            }
        } else if let Ok(tuple) = body.cast_exact::<PyTuple>() {
            self.finish_with(py, &tuple.iter().collect::<Vec<_>>())
        } else {
            return Ok(false);
        };
        sent?;
        self.response_done(py);
        Ok(true)
    }

    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.send(py, data)
    }

    /// The application has finished, so the request is no longer in flight.
    fn done(&self, py: Python<'_>) {
        // A child forked by the application must not change its parent's status memory.
        if (self.entry.is_some() || self.interrupter.is_some()) && !self.exchange(py).is_foreign() {
            self.response_done(py);
        }
    }

    /// Sends the response with a part of an open file (sendfile(2)).
    fn send_file(&self, py: Python<'_>, fd: i32, offset: u64, length: u64) -> PyResult<()> {
        drop(self.exchange_to_end(py));
        let file = duplicate(fd)?;
        let sent = self.without_interpreter(py, |exchange| exchange.send_file(file, offset, length));
        sent.map_err(|error| Failure::from(error).into())
    }

    /// Sends the response to a GET of this path, if it is in a published folder.
    fn send_static(&self, py: Python<'_>, path: &[u8]) -> bool {
        drop(self.exchange_to_end(py));
        self.without_interpreter(py, |exchange| poorhttp_reactor::send_static(exchange, path))
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let mut exchange = self.exchange_to_end(py);
        let ended = match exchange.names_file() || exchange.is_behind() {
            false => exchange.end(),
            true => {
                drop(exchange);
                self.without_interpreter(py, Exchange::end)
            }
        };
        ended.map_err(|error| Failure::from(error).into())
    }

    /// Keeps the response open as a long poll; the application has finished.
    #[pyo3(signature = (final_chunk, *, missed = 0))]
    fn long_poll(&self, py: Python<'_>, final_chunk: &[u8], missed: u64) -> PyResult<()> {
        self.exchange_to_end(py).hold_open(final_chunk, missed).map_err(Failure::from)?;
        self.response_done(py);
        Ok(())
    }

    fn restart(&self, py: Python<'_>) -> bool {
        self.exchange(py).restart()
    }

    fn abort(&self, py: Python<'_>) {
        self.exchange(py).abort();
        self.done(py);
    }
}

impl Request {
    #[inline]
    fn finish_with(&self, py: Python<'_>, items: &[Bound<'_, PyAny>]) -> PyResult<()> {
        match items {
            [item] => {
                let bytes = body_bytes(item)?;
                let mut exchange = self.exchange(py);
                if bytes.len() < LARGE && !exchange.names_file() && !exchange.is_behind() {
                    return exchange.finish(&[bytes]).map_err(|error| Failure::from(error).into());
                }
                drop(exchange);
                self.finish_in_turn(py, &[bytes])
            }
            _ => self.finish_in_turn(py, &items.iter().map(body_bytes).collect::<PyResult<Vec<&[u8]>>>()?),
        }
    }

    /// Sends several pieces, a large one, or any behind data that is still queued.
    fn finish_in_turn(&self, py: Python<'_>, parts: &[&[u8]]) -> PyResult<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut exchange = self.exchange(py);
        let mut sent = match length < LARGE && !exchange.names_file() && !exchange.is_behind() {
            true => exchange.finish(parts),
            false => {
                drop(exchange);
                self.without_interpreter(py, |exchange| exchange.finish(parts))
            }
        };
        while let Err(SendError::Full(taken)) = sent {
            self.wait_for_client(py)?;
            sent = self.without_interpreter(py, |exchange| exchange.finish_from(parts, taken));
        }
        sent.map_err(|error| Failure::from(error).into())
    }
}

#[inline]
fn body_bytes<'a>(item: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    match item.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes()),
        Err(_) => Err(wrong_type("a piece of the body", "bytes (PEP 3333)", item)),
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let is_listed = self.entry.as_ref().is_some_and(|entry| entry.is_present());
        if (is_listed || self.interrupter.is_some())
            && !self.exchange.get_mut().unwrap_or_else(PoisonError::into_inner).is_foreign()
        {
            Python::try_attach(|py| self.response_done(py));
        }
    }
}
