//! `wsgi.early_hints` of threads: one function for all requests, because a key of the environ that is set for each would cost 3 % of
//! a small request. It finds the request that its thread runs.

use std::cell::RefCell;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::request::Request;

thread_local! {
    static CURRENT: RefCell<Option<Py<Request>>> = const { RefCell::new(None) };
}

/// This thread runs a request from now on.
#[inline]
pub(crate) fn enter(request: &Bound<'_, Request>) {
    let before = CURRENT.replace(Some(request.clone().unbind()));
    drop(before);
}

/// This thread runs none, and is about to wait for one.
#[inline]
pub(crate) fn leave() {
    let before = CURRENT.take();
    drop(before);
}

/// Sends a response 103 with these header fields, if this thread runs a request.
#[pyfunction]
pub(crate) fn early_hints(py: Python<'_>, headers: &Bound<'_, PyList>) -> PyResult<()> {
    let request = CURRENT.with_borrow(|current| current.as_ref().map(|request| request.clone_ref(py)));
    request.map_or(Ok(()), |request| request.get().early_hints(py, headers))
}
