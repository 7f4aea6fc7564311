//! Takes a descriptor of Python. The only file of this module with `unsafe`.

#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Takes over a descriptor that a Python function has opened for the caller.
pub(crate) fn adopt(fd: RawFd) -> PyResult<OwnedFd> {
    if fd < 0 {
        return Err(PyValueError::new_err(format!("{fd} is not a file descriptor")));
    }
    // SAFETY: `Request.take_over_nowait` has returned it as the caller's own, so nothing else closes it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
