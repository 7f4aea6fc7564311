//! The Python class `Sink`: a destination of log lines, to be given to the error log or access log.

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::Mutex;

use poorhttp_reactor::Facility;
use pyo3::prelude::*;

use crate::errors::{os_error, value_error};
use crate::ffi::duplicate;
use crate::lock;

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
        lock(&self.inner).take().ok_or_else(|| value_error("a log has taken this sink already"))
    }
}

#[pymethods]
impl Sink {
    #[staticmethod]
    #[pyo3(signature = (fd, *, marked = false))]
    fn lines(fd: RawFd, marked: bool) -> PyResult<Self> {
        Ok(Sink::new(poorhttp_reactor::Sink::lines(duplicate(fd)?, marked)))
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, access = false))]
    fn syslog(path: PathBuf, access: bool) -> PyResult<Self> {
        let facility = if access { Facility::Local0 } else { Facility::Daemon };
        Ok(Sink::new(poorhttp_reactor::Sink::syslog(&path, facility).map_err(os_error)?))
    }

    #[staticmethod]
    fn journald(path: PathBuf) -> PyResult<Self> {
        Ok(Sink::new(poorhttp_reactor::Sink::journald(&path).map_err(os_error)?))
    }

    #[staticmethod]
    fn records(fd: RawFd) -> PyResult<Self> {
        Ok(Sink::new(poorhttp_reactor::Sink::records(duplicate(fd)?).map_err(os_error)?))
    }
}
