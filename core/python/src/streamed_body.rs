//! The body of a request that the application receives while it runs.

use poorhttp_reactor::{BodyError, BodyPart, Exchange, Interest};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyConnectionResetError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::body_inputs::streamed;
use crate::dispatched::Dispatched;
use crate::ffi::room_of;
use crate::request::{LARGE, Request, Waits};

/// Milliseconds for which a thread waits at most before Python may run signal handlers: a signal may have come just before.
const WAIT: u64 = 1_000;
/// The same while the request has a time limit, whose exception is raised in between.
const TIMED_WAIT: u64 = 100;

/// Makes the `wsgi.input` that receives the body of `request`.
#[cold]
pub(crate) fn set_input(environ: &Bound<'_, PyDict>, request: &Bound<'_, Request>) -> PyResult<()> {
    let py = environ.py();
    environ.set_item(intern!(py, "wsgi.input"), streamed(py)?.call1((request,))?)
}

/// Receives a part of the body into a buffer. If nothing has come, waits and returns `None`: the caller shall try again, and
/// run what Python has to run meanwhile. 0: the body is complete.
pub(crate) fn receive(
    py: Python<'_>,
    dispatched: &Dispatched,
    waits: Option<&Waits>,
    timed: bool,
    buffer: &PyBuffer<u8>,
) -> PyResult<Option<usize>> {
    match receive_part(py, dispatched, buffer)? {
        BodyPart::Content(bytes) => Ok(Some(bytes)),
        BodyPart::End => Ok(Some(0)),
        BodyPart::NothingYet(timeout) => {
            wait(py, dispatched, waits, timed, timeout)?;
            Ok(None)
        }
    }
}

/// Receives what is there of the body into a buffer.
pub(crate) fn receive_part(py: Python<'_>, dispatched: &Dispatched, buffer: &PyBuffer<u8>) -> PyResult<BodyPart> {
    let room = room_of(buffer)?;
    if room.is_empty() {
        return Ok(BodyPart::Content(0));
    }
    let is_large = room.len() >= LARGE;
    let mut work = |exchange: &mut Exchange| exchange.receive_body(room);
    let received = if is_large { dispatched.detached(py, work) } else { work(&mut dispatched.exchange(py)) };
    received.map_err(|error| exception(py, error))
}

/// Waits until something may have come, or the time is over.
fn wait(py: Python<'_>, dispatched: &Dispatched, waits: Option<&Waits>, timed: bool, timeout: u64) -> PyResult<()> {
    if let Some(waits) = waits {
        return waits.wait(py, dispatched, Interest::DATA, timeout);
    }
    let Some(waiter) = dispatched.exchange(py).waiter() else { return Ok(()) };
    let timeout = timeout.min(if timed { TIMED_WAIT } else { WAIT });
    py.detach(|| waiter.wait(Interest::DATA, timeout));
    py.check_signals()
}

/// The exception for what has ended the body.
#[cold]
fn exception(py: Python<'_>, error: BodyError) -> PyErr {
    match error {
        BodyError::Disconnected => PyConnectionResetError::new_err("the client has left in the middle of its request"),
        BodyError::Over => PyValueError::new_err("read of a request that has been answered, or belongs to the parent"),
        BodyError::Refused(reject) => {
            let status = format!("{} {}", reject.status, reject.phrase());
            let made = py
                .import(intern!(py, "poorhttp.errors"))
                .and_then(|errors| errors.getattr(intern!(py, "BodyRefused"))?.call1((status, reject.reason)));
            made.map_or_else(|error| error, PyErr::from_value)
        }
    }
}
