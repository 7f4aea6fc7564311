//! The error log, and Python's file descriptors.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use poorhttp_reactor::{Facility, Level};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use rustix::io::Errno;

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

/// Where the lines of a log go, until a log takes it.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct Sink {
    inner: Mutex<Option<poorhttp_reactor::Sink>>,
}

impl Sink {
    fn new(sink: poorhttp_reactor::Sink) -> Self {
        Sink { inner: Mutex::new(Some(sink)) }
    }

    pub(crate) fn take(&self) -> PyResult<poorhttp_reactor::Sink> {
        let sink = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        sink.ok_or_else(|| PyValueError::new_err("a log has taken this sink already"))
    }
}

#[pymethods]
impl Sink {
    #[staticmethod]
    #[pyo3(signature = (fd, *, marked = false))]
    fn lines(fd: RawFd, marked: bool) -> PyResult<Self> {
        Ok(Sink::new(poorhttp_reactor::Sink::lines(own(fd)?, marked)))
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, access = false))]
    fn syslog(path: PathBuf, access: bool) -> PyResult<Self> {
        let facility = if access { Facility::Local0 } else { Facility::Daemon };
        Ok(Sink::new(poorhttp_reactor::Sink::syslog(&path, facility).map_err(unreachable)?))
    }

    #[staticmethod]
    fn journald(path: PathBuf) -> PyResult<Self> {
        Ok(Sink::new(poorhttp_reactor::Sink::journald(&path).map_err(unreachable)?))
    }

    #[staticmethod]
    fn records(fd: RawFd) -> PyResult<Self> {
        Ok(Sink::new(poorhttp_reactor::Sink::records(own(fd)?).map_err(unreachable)?))
    }
}

/// Writes messages to the error log.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct LogWriter {
    pub(crate) inner: Arc<poorhttp_reactor::ErrorLog>,
}

fn unreachable(error: Errno) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), error.to_string()))
}

fn level(name: &str) -> PyResult<Level> {
    Level::named(name).ok_or_else(|| PyValueError::new_err(format!("unknown log level {name:?}")))
}

#[pymethods]
impl LogWriter {
    #[new]
    fn new(sink: &Bound<'_, Sink>, lowest: &str) -> PyResult<Self> {
        let lowest = level(lowest)?;
        let error_log = poorhttp_reactor::ErrorLog::new(sink.get().take()?, lowest);
        Ok(LogWriter { inner: Arc::new(error_log) })
    }

    fn reopen(&self, py: Python<'_>, sink: &Bound<'_, Sink>) -> PyResult<()> {
        let sink = sink.get().take()?;
        py.detach(|| self.inner.reopen(sink));
        Ok(())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.inner.close());
    }

    fn set_label(&self, py: Python<'_>, label: &str) {
        py.detach(|| self.inner.set_label(label));
    }

    #[getter]
    fn label(&self) -> String {
        self.inner.label()
    }

    /// Without the interpreter: who reads the other end may need it.
    fn write(&self, py: Python<'_>, level_name: &str, message: &Bound<'_, PyString>) -> PyResult<()> {
        let level = level(level_name)?;
        // What an exception says may hold half of a surrogate pair: a file name, say.
        let message = message.to_string_lossy();
        py.detach(|| self.inner.write(level, &message));
        Ok(())
    }
}
