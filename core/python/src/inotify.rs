//! File-system notifications for the development server, as a Python class.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, RawFd};

use poorhttp_watch::Change;
use pyo3::prelude::*;

use crate::errors::os_error;

#[pyclass(module = "poorhttp._core")]
pub(crate) struct Inotify {
    inner: poorhttp_watch::Inotify,
}

#[pymethods]
impl Inotify {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Inotify { inner: poorhttp_watch::Inotify::new().map_err(os_error)? })
    }

    fn fileno(&self) -> RawFd {
        self.inner.fd().as_raw_fd()
    }

    fn watch(&mut self, folders: Vec<OsString>) -> PyResult<bool> {
        self.inner.watch(&folders).map_err(os_error)
    }

    fn read(&mut self) -> PyResult<Option<HashMap<OsString, &'static str>>> {
        let changes = self.inner.read().map_err(os_error)?;
        Ok(changes.map(|all| all.into_iter().map(|(path, what)| (path, name(what))).collect()))
    }
}

fn name(change: Change) -> &'static str {
    match change {
        Change::Written => "written",
        Change::Touched => "touched",
        Change::Changed => "changed",
    }
}
