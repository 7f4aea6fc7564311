//! Functions of the environ about the request that a thread runs, in modes with threads: `wsgi.early_hints`, which sends a 103
//! response (RFC 8297), and `poorhttp.client_disconnected`.
//!
//! One function of each serves all requests, and finds the request that its thread runs: a key of the environ that is set for each
//! request would cost 3 % of a small one.

use std::cell::Cell;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::request::Request;
use crate::request_name::RequestName;

thread_local! {
    /// The last one that the thread has run: it stays until the next, for to forget it before each wait would cost more.
    static CURRENT: Cell<Option<Py<Request>>> = const { Cell::new(None) };
}

/// This thread runs a request from now on.
#[inline]
pub(crate) fn enter(request: &Bound<'_, Request>) {
    let before = CURRENT.replace(Some(request.clone().unbind()));
    drop(before);
}

/// This thread runs no more requests.
pub(crate) fn leave() {
    let before = CURRENT.take();
    drop(before);
}

/// The request that this thread runs, or has run last.
fn current(py: Python<'_>) -> Option<Py<Request>> {
    let request = CURRENT.take()?;
    let current = request.clone_ref(py);
    CURRENT.set(Some(request));
    Some(current)
}

/// The name of the request that this thread runs, with the option `request_id`; `None` in a thread that runs none, in mode `gevent`
/// and without the option.
#[pyfunction]
pub(crate) fn current_request(py: Python<'_>) -> Option<RequestName> {
    current(py)?.get().try_name().filter(|name| !name.0.id.is_empty())
}

/// Whether the client of the request that this thread runs has left. RuntimeError: it runs none.
#[pyfunction]
pub(crate) fn client_disconnected(py: Python<'_>) -> PyResult<bool> {
    match current(py) {
        Some(request) => Ok(request.get().client_disconnected(py)),
        None => Err(PyRuntimeError::new_err(
            "poorhttp.client_disconnected was called in a thread that runs no request: only the thread of a request can ask",
        )),
    }
}

/// Sends a response 103 with these header fields, if this thread runs a request.
#[pyfunction]
pub(crate) fn early_hints(py: Python<'_>, headers: &Bound<'_, PyList>) -> PyResult<()> {
    current(py).map_or(Ok(()), |request| request.get().early_hints(py, headers))
}
