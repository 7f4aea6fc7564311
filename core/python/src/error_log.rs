//! The Python class `LogWriter`: writes messages to the error log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poorhttp_reactor::{Level, Message};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::value_error;
use crate::ffi::shared_byte;
use crate::request_name::RequestName;
use crate::sink::Sink;
use crate::worker_status::WorkerStatus;

/// Writes messages to the error log.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct LogWriter {
    pub(crate) inner: Arc<poorhttp_reactor::ErrorLog>,
}

fn level(name: &str) -> PyResult<Level> {
    Level::named(name).ok_or_else(|| value_error(format_args!("unknown log level {name:?}")))
}

/// Keeps the level of `set_log_level` in the first byte of `memory`.
#[pyfunction]
pub(crate) fn share_log_level(memory: PyBuffer<u8>) -> PyResult<()> {
    poorhttp_reactor::share_level(shared_byte(memory)?);
    Ok(())
}

/// Sets the lowest level of all processes that share it; empty: each log has its own.
#[pyfunction]
#[pyo3(name = "set_log_level")]
pub(crate) fn set_shared_level(name: &str) -> PyResult<()> {
    let shared = if name.is_empty() { None } else { Some(level(name)?) };
    poorhttp_reactor::set_level(shared);
    Ok(())
}

#[pymethods]
impl LogWriter {
    #[new]
    #[pyo3(signature = (sink, lowest, *, json = false))]
    fn new(sink: &Bound<'_, Sink>, lowest: &str, json: bool) -> PyResult<Self> {
        let lowest = level(lowest)?;
        Ok(LogWriter { inner: Arc::new(poorhttp_reactor::ErrorLog::new(sink.get().take()?, lowest, json)) })
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

    /// Counts lines that are lost in this status, too, which the process keeps mapped from then on.
    fn count_lost(&self, py: Python<'_>, status: &Bound<'_, WorkerStatus>) {
        let counter = &status.get().leak().counters.metrics.lines_lost;
        py.detach(|| self.inner.count_lost(counter));
    }

    #[getter]
    fn label(&self) -> String {
        self.inner.label()
    }

    /// With the interpreter released: the reader at the other end may need it.
    #[pyo3(signature = (level_name, message, request = None, *, traceback = None, from_application = false))]
    fn write(
        &self,
        py: Python<'_>,
        level_name: &str,
        message: &Bound<'_, PyString>,
        request: Option<&Bound<'_, RequestName>>,
        traceback: Option<&Bound<'_, PyString>>,
        from_application: bool,
    ) -> PyResult<()> {
        let level = level(level_name)?;
        // The text of an exception may hold half of a surrogate pair, for instance in a file name.
        let (text, traceback) = (message.to_string_lossy(), traceback.map(|traceback| traceback.to_string_lossy()));
        let request = request.map(|request| &request.get().0);
        py.detach(|| {
            let message = Message { level, text: &text, request, traceback: traceback.as_deref(), from_application };
            self.inner.write_message(&message);
        });
        Ok(())
    }
}

/// Some thread has written a line to `wsgi.errors` whose end is missing.
static UNFINISHED_LINE: AtomicBool = AtomicBool::new(false);

/// Whether any thread has written a line to `wsgi.errors` whose end is missing.
#[inline]
pub(crate) fn has_unfinished_line() -> bool {
    UNFINISHED_LINE.load(Ordering::Relaxed)
}

/// Notes whether any thread has written a line to `wsgi.errors` whose end is missing: then each calls `end_line` behind its
/// request.
#[pyfunction]
pub(crate) fn note_unfinished_line(is_unfinished: bool) {
    UNFINISHED_LINE.store(is_unfinished, Ordering::Relaxed);
}
