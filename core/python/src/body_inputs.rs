//! The classes of Python by which applications read request bodies, `wsgi.input`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

struct Inputs {
    spooled: Py<PyAny>,
    streamed: Py<PyAny>,
}

static INPUTS: PyOnceLock<Inputs> = PyOnceLock::new();

/// Names the classes. Only the first call counts: they do not change.
#[pyfunction]
pub(crate) fn set_body_inputs(py: Python<'_>, spooled: Py<PyAny>, streamed: Py<PyAny>) {
    let _ = INPUTS.set(py, Inputs { spooled, streamed });
}

fn inputs(py: Python<'_>) -> PyResult<&Inputs> {
    INPUTS.get(py).ok_or_else(|| PyRuntimeError::new_err("set_body_inputs was not called"))
}

/// The class for a body in a temporary file.
pub(crate) fn spooled(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    Ok(inputs(py)?.spooled.bind(py))
}

/// The class for a body that the application receives while it runs.
pub(crate) fn streamed(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    Ok(inputs(py)?.streamed.bind(py))
}
