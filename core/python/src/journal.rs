//! The error log, and Python's file descriptors.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use poorhttp_reactor::Level;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Our own copy of a descriptor that Python knows by its number.
#[expect(unsafe_code, reason = "Python names descriptors by number")]
pub(crate) fn own(fd: RawFd) -> PyResult<OwnedFd> {
    if fd < 0 {
        return Err(PyValueError::new_err(format!("{fd} is not a file descriptor")));
    }
    // SAFETY: it is borrowed only for the `dup` in this statement. The caller, our own Python code, passes a descriptor that
    // it holds open meanwhile; should it not be open, `dup` fails with EBADF.
    let copy = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    copy.map_err(|error| PyOSError::new_err((error.raw_os_error(), format!("descriptor {fd}: {error}"))))
}

/// Writes lines to the error log.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct Journal {
    pub(crate) inner: Arc<poorhttp_reactor::Journal>,
}

fn level(name: &str) -> PyResult<Level> {
    Level::named(name).ok_or_else(|| PyValueError::new_err(format!("unknown log level {name:?}")))
}

#[pymethods]
impl Journal {
    #[new]
    fn new(fd: RawFd, lowest: &str) -> PyResult<Self> {
        let journal = poorhttp_reactor::Journal::new(own(fd)?, level(lowest)?);
        Ok(Journal { inner: Arc::new(journal) })
    }

    fn write(&self, level_name: &str, message: &Bound<'_, PyString>) -> PyResult<()> {
        // What an exception says may hold half of a surrogate pair: a file name, say.
        self.inner.write(level(level_name)?, &message.to_string_lossy());
        Ok(())
    }
}
