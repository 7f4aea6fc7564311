//! Starts threads in the place of those whose responses stream.

use std::sync::Arc;

use poorhttp_reactor::{ErrorLog, Level, ThreadPool};
use pyo3::prelude::*;

use crate::gil_queue::GilQueue;
use crate::worker_status::WorkerStatus;

/// The threads of mode `threading`, as the reactor sees them.
pub(crate) struct PythonThreads {
    /// `Worker.replace_thread`: called with the native ID of a thread.
    pub(crate) replace: Py<PyAny>,
    pub(crate) queue: Arc<GilQueue>,
    pub(crate) worker_status: Option<Py<WorkerStatus>>,
    pub(crate) error_log: Arc<ErrorLog>,
}

impl std::fmt::Debug for PythonThreads {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PythonThreads")
    }
}

impl ThreadPool for PythonThreads {
    fn replace(&self, number: u64, thread: u32) -> bool {
        let replace = |py: Python<'_>| self.replace.call1(py, (thread,))?.extract::<bool>(py);
        // None: Python is about to end.
        let is_replaced = match Python::try_attach(replace) {
            Some(Ok(is_replaced)) => is_replaced,
            Some(Err(error)) => {
                self.error_log.write(Level::Error, &format!("a thread cannot be replaced: {error}"));
                false
            }
            None => false,
        };
        if is_replaced {
            self.queue.note_replaced();
            if let Some(status) = &self.worker_status {
                status.get().inner().set_streaming(number);
            }
        }
        is_replaced
    }
}
