//! The Python class of a request, which worker threads take from the reactor and answer.

use std::os::fd::{IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use poorhttp_http::Response;
use poorhttp_reactor::{BodyPart, Exchange, Interest, NotHijacked, SendError};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::dispatched::Dispatched;
use crate::early_hints;
use crate::environ::{Environs, set_request_id};
use crate::ffi::{duplicate, set_context_variable, text};
use crate::head;
use crate::logged_variables::LoggedVariables;
use crate::request_name::RequestName;
use crate::response_values::{Failure, body_bytes, write_byte_fields, write_fields, wrong_type};
use crate::streamed_body;
use crate::upgrade::{UpgradedConnection, not_hijacked};

/// Bytes from which a body is sent with the interpreter released, as copying it takes longer than that.
pub(crate) const LARGE: usize = 128 << 10;

/// The same for a body that may be compressed: that takes longer than to wait for the interpreter.
const LARGE_CODED: usize = 16 << 10;

/// A request, which is also its `start_response` and `write`.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct Request {
    dispatched: Dispatched,
    /// Taken once. The application may put `start_response` into the environ: a reference back would make a cycle.
    environ: Mutex<Option<Py<PyDict>>>,
    /// Makes the environ when it is taken; `None`: it is made already.
    environs: Option<Arc<Environs>>,
    /// How it waits for its client; `None`: the thread blocks.
    waits: Option<Arc<Waits>>,
    /// Called with the environ and this request, to offer its connection to the application.
    offer: Option<Py<PyAny>>,
    /// Its name, kept after the response, as the application may still fail then.
    name: OnceLock<Box<poorhttp_reactor::RequestName>>,
    /// Reads variables for the access log.
    variables: Option<Box<LoggedVariables>>,
    /// Whether the application's time is measured.
    timed: bool,
    /// Whether the application receives the body.
    streamed: bool,
}

/// Milliseconds that event loops can wait.
const LONGEST: u64 = 86_400_000;

/// How a mode waits for clients without blocking the thread.
pub(crate) struct Waits {
    /// Makes an event: `set()` ends `wait(seconds)`.
    new_event: Py<PyAny>,
    /// Where greenlets find the name of the request that they run, a ContextVar.
    context: Option<Py<PyAny>>,
}

impl Waits {
    pub(crate) fn new(new_event: Py<PyAny>, context: Option<Py<PyAny>>) -> Self {
        Waits { new_event, context }
    }

    /// Waits until what is awaited may have come, at most so many milliseconds.
    pub(crate) fn wait(
        &self,
        py: Python<'_>,
        dispatched: &Dispatched,
        interest: Interest,
        milliseconds: u64,
    ) -> PyResult<()> {
        let event = self.new_event.bind(py).call0()?;
        dispatched.exchange(py).notify(interest, notice(event.getattr(intern!(py, "set"))?.unbind()));
        event.call_method1(intern!(py, "wait"), (milliseconds.min(LONGEST) as f64 / 1_000.0,))?;
        Ok(())
    }
}

/// A function of Python that is called when what a stream waits for has come.
fn notice(function: Py<PyAny>) -> impl FnOnce() + Send + 'static {
    move || {
        let call = |py: Python<'_>| {
            if let Err(error) = function.call0(py) {
                error.write_unraisable(py, None);
            }
        };
        // None: Python is about to end.
        let _ = Python::try_attach(call);
    }
}

impl Request {
    // A copy of it for each step costs a request 1 % of its instructions.
    #[inline(always)]
    pub(crate) fn new(
        py: Python<'_>,
        exchange: Exchange,
        dispatch: impl FnOnce(Exchange) -> Dispatched,
        (environ, environs): (Option<Py<PyDict>>, Option<Arc<Environs>>),
        waits: Option<Arc<Waits>>,
        offer: Option<Py<PyAny>>,
    ) -> Self {
        let variables = environ.as_ref().and_then(|environ| LoggedVariables::of(py, &exchange, environ));
        let (timed, streamed) = (exchange.is_timed(), exchange.is_streamed());
        Request {
            dispatched: dispatch(exchange),
            environ: Mutex::new(environ),
            environs,
            waits,
            offer,
            name: OnceLock::new(),
            variables,
            timed,
            streamed,
        }
    }

    /// Saves what logs need of the request before the response ends.
    fn save_name(&self, exchange: &Exchange) {
        self.name.get_or_init(|| Box::new(exchange.request_name()));
    }

    /// Its name in logs. `None`: the request is locked, perhaps by this thread, in which a finalizer of the application runs.
    pub(crate) fn try_name(&self) -> Option<RequestName> {
        let name = || Some(self.dispatched.try_exchange()?.request_name());
        self.name.get().map(|name| (**name).clone()).or_else(name).map(RequestName)
    }

    /// The response is about to end.
    #[inline]
    fn note_variables(&self, py: Python<'_>) {
        if let Some(variables) = &self.variables {
            variables.note(py, &mut self.dispatched.exchange(py));
        }
    }

    /// Sends so many bytes by `work`; with the interpreter released if that takes long.
    #[inline]
    fn send_with<T: Send>(&self, py: Python<'_>, length: usize, work: impl FnOnce(&mut Exchange) -> T + Send) -> T {
        let mut exchange = self.dispatched.exchange(py);
        let large = if exchange.may_compress() { LARGE_CODED } else { LARGE };
        if length < large && !exchange.names_file() && !exchange.is_behind() {
            return work(&mut exchange);
        }
        drop(exchange);
        self.dispatched.detached(py, work)
    }

    #[inline]
    fn start(
        &self,
        py: Python<'_>,
        status: &Bound<'_, PyAny>,
        fields: &Bound<'_, PyAny>,
        exc_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let status = status.cast::<PyString>().map_err(|_| wrong_type("status", "a str", status))?;
        let fields = fields.cast::<PyList>().map_err(|_| wrong_type("headers", "a list of tuples", fields))?;
        let mut exchange = self.dispatched.exchange(py);
        if exchange.is_upgraded() {
            return Ok(());
        }
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
        exchange.start(text(status)?, |out| write_fields(fields, |name, value| out.field(name, value)))?;
        Ok(())
    }

    /// Sends a response 103 with these fields.
    #[cold]
    pub(crate) fn early_hints(&self, py: Python<'_>, fields: &Bound<'_, PyList>) -> PyResult<()> {
        Ok(self.dispatched.exchange(py).early_hints(|write| write_fields(fields, write))?)
    }

    /// `write` of PEP 3333.
    fn write_piece(&self, py: Python<'_>, piece: &Bound<'_, PyAny>) -> PyResult<()> {
        if piece.is_instance_of::<PyString>() && !self.dispatched.exchange(py).response().is_started() {
            // Rather the status of a call without headers.
            return Err(PyTypeError::new_err("start_response takes a status and a list of headers"));
        }
        // Pieces that nobody gets (HEAD, 204) are no mistake; an empty one exceeds nothing.
        if !self.send(py, piece)? && !body_bytes(piece)?.is_empty() {
            let excess = self.dispatched.exchange(py).excess();
            if excess > 0 {
                let message =
                    format!("write() has given {excess} bytes more than the Content-Length; they were not sent");
                return Err(PyValueError::new_err(message));
            }
        }
        Ok(())
    }

    /// Sends a piece of the body. `false`: later pieces would not be sent.
    fn send(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        let bytes = body_bytes(data)?;
        let mut rest = bytes;
        if self.dispatched.exchange(py).is_upgraded() {
            return Ok(false);
        }
        loop {
            let write = |exchange: &mut Exchange| (exchange.write(rest), exchange.wants_more());
            match self.send_with(py, rest.len(), write) {
                (Ok(()), wanted) => return Ok(wanted),
                (Err(SendError::Full(taken)), _) => rest = rest.get(taken..).unwrap_or_default(),
                (Err(error), _) => return Err(error.into()),
            }
            if let Err(error) = self.wait_for_client(py, Exchange::send_queued) {
                if rest.len() < bytes.len() {
                    self.dispatched.exchange(py).break_off();
                }
                return Err(error);
            }
        }
    }

    /// Has the deadline of a full send queue watched: no thread waits for this client.
    #[cold]
    fn check_deadline(&self, py: Python<'_>) -> Result<(), Failure> {
        match self.dispatched.detached(py, Exchange::send_queued) {
            Ok(()) | Err(SendError::Full(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the environ, now that it is asked for.
    #[cold]
    fn make_environ(&self, py: Python<'_>, environs: &Environs) -> PyResult<Py<PyDict>> {
        let mut exchange = self.dispatched.exchange(py);
        let environ = environs.build(py, &mut exchange)?;
        if let Some(id) = exchange.request_id() {
            set_request_id(&environ, &id)?;
        }
        Ok(environ.unbind())
    }

    /// Waits until the client has received enough for `work` not to be [`SendError::Full`], in the way of the worker's mode.
    #[cold]
    fn wait_for_client(
        &self,
        py: Python<'_>,
        work: impl Fn(&mut Exchange) -> Result<(), SendError> + Send + Copy,
    ) -> Result<(), Failure> {
        let mut sent = Err(SendError::Full(0));
        while let Err(SendError::Full(_)) = sent {
            let Some(waiter) = self.dispatched.exchange(py).waiter() else { break };
            let timeout = self.dispatched.exchange(py).send_timeout_left();
            match &self.waits {
                _ if timeout == 0 => self.dispatched.exchange(py).cut(),
                Some(waits) => waits.wait(py, &self.dispatched, Interest::ROOM, timeout)?,
                None => py.detach(|| waiter.wait(Interest::ROOM, timeout)),
            }
            if self.waits.is_none() {
                py.check_signals()?;
            }
            sent = self.dispatched.detached(py, work);
        }
        Ok(sent?)
    }
}

#[pymethods]
impl Request {
    /// `start_response` (PEP 3333) with two or three arguments: returns itself as the `write` callable. With one it is `write`, or
    /// `wsgi.early_hints` for a list, and returns `None`.
    #[pyo3(signature = (status, response_headers = None, exc_info = None))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        status: &Bound<'py, PyAny>,
        response_headers: Option<&Bound<'py, PyAny>>,
        exc_info: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, Self>>> {
        let (py, this) = (slf.py(), slf.get());
        let Some(fields) = response_headers else {
            match status.cast::<PyList>() {
                Ok(fields) if !fields.iter().any(|field| field.is_instance_of::<PyBytes>()) => {
                    this.early_hints(py, fields)?;
                }
                _ => this.write_piece(py, status)?,
            }
            return Ok(None);
        };
        this.start(py, status, fields, exc_info)?;
        Ok(Some(slf.clone()))
    }

    /// Returns the environ once, then `None`. Starts the timeout.
    fn take_environ(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyDict>>> {
        let (py, this) = (slf.py(), slf.get());
        let environ = this.environ.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        let environ = match (environ, &this.environs) {
            (Some(environ), _) => environ,
            (None, Some(environs)) => this.make_environ(py, environs)?,
            (None, None) => return Ok(None),
        };
        if let Some(waits) = &this.waits {
            // A thread runs several requests at once. The base environ has the key, so the copy need not grow.
            environ.bind(py).set_item(intern!(py, "wsgi.early_hints"), slf)?;
            if let Some(context) = &waits.context {
                set_context_variable(context.bind(py), Bound::new(py, this.name(py))?.as_any())?;
            }
        } else {
            early_hints::enter(slf);
        }
        if this.streamed {
            streamed_body::set_input(environ.bind(py), slf)?;
        }
        if this.timed {
            this.dispatched.start_timeout(py)?;
        }
        if let Some(offer) = &this.offer {
            offer.call1(py, (&environ, slf))?;
        }
        Ok(Some(environ))
    }

    /// Returns the head in parts, with `lazy_environ`; see `_core.pyi`.
    fn take_head<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let environs = self.environs.as_ref().ok_or_else(|| PyRuntimeError::new_err("take_head needs lazy_environ"))?;
        head::make(py, &mut self.dispatched.exchange(py), &environs.bases)
    }

    /// Starts the timeout, if the environ is not taken.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        if self.timed { self.dispatched.start_timeout(py) } else { Ok(()) }
    }

    /// Whether the application receives the body.
    #[getter]
    fn streamed(&self) -> bool {
        self.streamed
    }

    /// Starts the response with fields of bytes. Nothing is sent yet.
    fn start_bytes(&self, py: Python<'_>, status: &Bound<'_, PyString>, headers: &Bound<'_, PyAny>) -> PyResult<()> {
        let status = text(status)?;
        // Their iterator may be code of the application, which must not run while the request is locked.
        let pairs = headers.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let mut exchange = self.dispatched.exchange(py);
        if exchange.response().is_started() {
            return Err(PyRuntimeError::new_err("the response was started a second time"));
        }
        let is_426 = status.starts_with("426");
        Ok(exchange.start(status, |out| write_byte_fields(&pairs, is_426, |name, value| out.field(name, value)))?)
    }

    /// Sends the head, as the body comes later.
    fn send_head(&self, py: Python<'_>) -> Result<(), Failure> {
        Ok(self.dispatched.exchange(py).send_head()?)
    }

    /// Sends as much of the last piece of the body as there is room for, from byte `taken` on, and returns up to where.
    #[pyo3(signature = (data, taken = 0))]
    fn finish_nowait(&self, py: Python<'_>, data: &Bound<'_, PyAny>, taken: usize) -> Result<usize, Failure> {
        let bytes = body_bytes(data)?;
        self.note_variables(py);
        let left = bytes.len().saturating_sub(taken);
        match self.send_with(py, left, |exchange| exchange.finish_from(&[bytes], taken)) {
            Ok(()) => {
                self.dispatched.done(py);
                Ok(bytes.len())
            }
            Err(SendError::Full(taken)) => self.check_deadline(py).map(|()| taken),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the response with trailer fields of bytes.
    fn finish_with_trailers(&self, py: Python<'_>, headers: &Bound<'_, PyAny>) -> Result<(), Failure> {
        let pairs = headers.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let mut lines = Vec::new();
        write_byte_fields(&pairs, false, |name, value| Response::trailer(&mut lines, name, value))?;
        self.note_variables(py);
        self.send_with(py, 0, |exchange| {
            self.save_name(exchange);
            exchange.end_with_trailers(&lines)
        })?;
        self.dispatched.done(py);
        Ok(())
    }

    /// Receives a part of the body into a buffer, and waits if nothing has come. 0: the body is complete. `None`: call again.
    fn receive_body(&self, py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<Option<usize>> {
        streamed_body::receive(py, &self.dispatched, self.waits.as_deref(), self.timed, &buffer)
    }

    /// Receives a part of the body into a buffer, as far as it is there. 0: the body is complete. `None`: nothing has come.
    fn receive_nowait(&self, py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<Option<usize>> {
        match streamed_body::receive_part(py, &self.dispatched, &buffer)? {
            BodyPart::Content(bytes) => Ok(Some(bytes)),
            BodyPart::End => Ok(Some(0)),
            BodyPart::NothingYet(_) => Ok(None),
        }
    }

    /// Sends as much of a piece of the body as there is room for, and returns its length.
    fn send_nowait(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> Result<usize, Failure> {
        let bytes = body_bytes(data)?;
        match self.send_with(py, bytes.len(), |exchange| exchange.write(bytes)) {
            Ok(()) => Ok(bytes.len()),
            Err(SendError::Full(taken)) => self.check_deadline(py).map(|()| taken),
            Err(error) => Err(error.into()),
        }
    }

    /// Has `function` called once when data or room has come, or the client has left.
    #[pyo3(signature = (function, *, data = false, room = false))]
    fn notify(&self, py: Python<'_>, function: Py<PyAny>, data: bool, room: bool) {
        self.dispatched.exchange(py).notify(Interest { data, room }, notice(function));
    }

    /// Gives the connection to the application: a descriptor, and what its socket reports to. `in_pool`: the request still
    /// counts among those that the application can have at the same time.
    fn take_over(&self, py: Python<'_>, in_pool: bool) -> PyResult<(RawFd, UpgradedConnection)> {
        self.save_name(&self.dispatched.exchange(py));
        loop {
            let taken = self.dispatched.exchange(py).take_over();
            match taken {
                Ok((socket, upgraded)) => {
                    self.dispatched.note_upgraded(py, !in_pool);
                    return Ok((socket.into_raw_fd(), UpgradedConnection(upgraded)));
                }
                Err(NotHijacked::Full) => self.wait_for_client(py, Exchange::send_all_queued)?,
                Err(error) => return Err(not_hijacked(error)),
            }
        }
    }

    /// The same in an event loop. `None`: earlier responses must be sent before, and `notify` tells when there is room.
    fn take_over_nowait(&self, py: Python<'_>) -> PyResult<Option<(RawFd, UpgradedConnection)>> {
        self.save_name(&self.dispatched.exchange(py));
        let taken = self.dispatched.exchange(py).take_over();
        match taken {
            Ok((socket, upgraded)) => {
                self.dispatched.note_upgraded(py, true);
                Ok(Some((socket.into_raw_fd(), UpgradedConnection(upgraded))))
            }
            Err(NotHijacked::Full) => Ok(None),
            Err(error) => Err(not_hijacked(error)),
        }
    }

    /// Whether the application has got the connection.
    #[getter]
    fn upgraded(&self, py: Python<'_>) -> bool {
        self.dispatched.exchange(py).is_upgraded()
    }

    /// Ends a connection that the application has got; `complete`: it has not failed.
    fn end_upgraded(&self, py: Python<'_>, complete: bool) {
        self.note_variables(py);
        self.dispatched.exchange(py).end_upgraded(complete);
        self.done(py);
    }

    fn disarm_timeout(&self, py: Python<'_>) {
        self.dispatched.disarm_timeout(py);
    }

    fn expect_wait(&self, py: Python<'_>) {
        self.dispatched.exchange(py).expect_wait();
    }

    /// Whether the server answered because the application took too long.
    #[getter]
    fn timed_out(&self, py: Python<'_>) -> bool {
        self.dispatched.exchange(py).has_timed_out()
    }

    /// Its name in logs.
    #[getter]
    pub(crate) fn name(&self, py: Python<'_>) -> RequestName {
        let known = self.name.get().map(|name| (**name).clone());
        RequestName(known.unwrap_or_else(|| self.dispatched.exchange(py).request_name()))
    }

    /// Method and target, for logs.
    #[getter]
    fn line(&self, py: Python<'_>) -> String {
        self.name(py).0.line
    }

    #[getter]
    fn number(&self) -> u64 {
        self.dispatched.number()
    }

    #[getter]
    fn committed(&self, py: Python<'_>) -> bool {
        self.dispatched.exchange(py).response().is_committed()
    }

    #[getter]
    fn foreign(&self) -> bool {
        self.dispatched.is_foreign()
    }

    #[getter]
    fn disconnected(&self, py: Python<'_>) -> bool {
        self.dispatched.exchange(py).is_lost()
    }

    /// Whether the client has left: asks the kernel, unless that is known.
    pub(crate) fn client_disconnected(&self, py: Python<'_>) -> bool {
        self.dispatched.exchange(py).has_client_left()
    }

    /// Whether the server has closed the connection before the response was complete, and logged why.
    #[getter]
    fn cut(&self, py: Python<'_>) -> bool {
        self.dispatched.exchange(py).is_cut()
    }

    #[getter]
    fn stopping(&self, py: Python<'_>) -> bool {
        self.dispatched.exchange(py).is_stopping()
    }

    /// Sends the response with a list or tuple of bytes. `False`: another type; nothing was sent.
    fn finish(&self, py: Python<'_>, body: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        if let Ok(list) = body.cast_exact::<PyList>() {
            match list.len() {
                1 => self.finish_with(py, &[list.get_item(0)?])?,
                _ => self.finish_with(py, &list.iter().collect::<Vec<_>>())?,
            }
        } else if let Ok(tuple) = body.cast_exact::<PyTuple>() {
            self.finish_with(py, &tuple.iter().collect::<Vec<_>>())?;
        } else {
            return Ok(false);
        }
        self.dispatched.done(py);
        Ok(true)
    }

    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> Result<bool, Failure> {
        self.send(py, data)
    }

    /// The application has finished, so the request is no longer in flight.
    fn done(&self, py: Python<'_>) {
        // A child forked by the application must not change its parent's status memory.
        if self.dispatched.is_noted() && !self.dispatched.is_foreign() {
            self.dispatched.done(py);
        }
    }

    /// Sends the response with a part of an open file (sendfile(2)). `False`: it is to be compressed, and sent by `write`.
    fn send_file(&self, py: Python<'_>, fd: i32, offset: u64, length: u64) -> Result<bool, Failure> {
        let file = duplicate(fd)?;
        if self.dispatched.exchange(py).compresses_file(length) {
            return Ok(false);
        }
        self.note_variables(py);
        Ok(self.dispatched.detached(py, |exchange| {
            self.save_name(exchange);
            exchange.send_file(file, offset, length).map(|()| true)
        })?)
    }

    /// Sends the response to a GET of this path, if it is in a published folder.
    fn send_static(&self, py: Python<'_>, path: &[u8]) -> bool {
        self.note_variables(py);
        self.dispatched.detached(py, |exchange| {
            self.save_name(exchange);
            poorhttp_reactor::send_static(exchange, path)
        })
    }

    fn end(&self, py: Python<'_>) -> Result<(), Failure> {
        self.note_variables(py);
        Ok(self.send_with(py, 0, |exchange| {
            self.save_name(exchange);
            exchange.end()
        })?)
    }

    /// Keeps the response open as a long poll; the application has finished.
    #[pyo3(signature = (final_chunk, *, missed = 0))]
    fn long_poll(&self, py: Python<'_>, final_chunk: &[u8], missed: u64) -> Result<(), Failure> {
        self.note_variables(py);
        let mut exchange = self.dispatched.exchange(py);
        self.save_name(&exchange);
        exchange.hold_open(final_chunk, missed)?;
        drop(exchange);
        self.dispatched.done(py);
        Ok(())
    }

    fn restart(&self, py: Python<'_>) -> bool {
        self.dispatched.exchange(py).restart()
    }

    fn abort(&self, py: Python<'_>) {
        self.note_variables(py);
        self.dispatched.exchange(py).abort();
        self.done(py);
    }
}

impl Request {
    #[inline]
    fn finish_with(&self, py: Python<'_>, items: &[Bound<'_, PyAny>]) -> Result<(), Failure> {
        match items {
            [item] => self.finish_parts(py, &[body_bytes(item)?]),
            _ => self.finish_parts(py, &items.iter().map(body_bytes).collect::<PyResult<Vec<&[u8]>>>()?),
        }
    }

    fn finish_parts(&self, py: Python<'_>, parts: &[&[u8]]) -> Result<(), Failure> {
        let length = parts.iter().map(|part| part.len()).sum();
        self.note_variables(py);
        let mut sent = self.send_with(py, length, |exchange| exchange.finish(parts));
        while let Err(SendError::Full(taken)) = sent {
            self.wait_for_client(py, Exchange::send_queued)?;
            sent = self.dispatched.detached(py, |exchange| exchange.finish_from(parts, taken));
        }
        Ok(sent?)
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if self.dispatched.is_noted() && !self.dispatched.is_foreign() {
            Python::try_attach(|py| self.dispatched.done(py));
        }
    }
}
