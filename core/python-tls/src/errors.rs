//! Python exceptions for errors of the operating system and for invalid values.

use std::fmt::Display;
use std::io;

use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};

/// OSError with the error's number.
pub(crate) fn os_error(error: impl Into<io::Error>) -> PyErr {
    let error = error.into();
    PyOSError::new_err((error.raw_os_error(), error.to_string()))
}

pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
