//! Starts threads of mode `threading`: one more when requests wait, and one in place of each that streams a response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use poorhttp_reactor::{ErrorLog, Level, ThreadPool};
use pyo3::prelude::*;

use crate::gil_queue::GilQueue;
use crate::worker_status::WorkerStatus;

/// The threads of mode `threading`, as the reactor sees them.
pub(crate) struct PythonThreads {
    /// `Worker.replace_thread`: called with the native ID of a thread, or 0 for one more.
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

impl PythonThreads {
    /// Starts a thread, in the place of one if `thread` is not 0.
    fn start(&self, thread: u32) -> bool {
        let start = |py: Python<'_>| self.replace.call1(py, (thread,))?.extract::<bool>(py);
        // None: Python is about to end.
        match Python::try_attach(start) {
            Some(Ok(is_started)) => is_started,
            Some(Err(error)) => {
                self.error_log.write(Level::Error, &format!("a thread cannot be started: {error}"));
                false
            }
            None => false,
        }
    }
}

impl ThreadPool for PythonThreads {
    fn replace(&self, number: u64, thread: u32) -> bool {
        let is_replaced = self.start(thread);
        if is_replaced {
            self.queue.note_replaced();
            if let Some(status) = &self.worker_status {
                status.get().inner().set_streaming(number);
            }
        }
        is_replaced
    }

    fn add(&self) -> bool {
        self.start(0)
    }

    fn interpreter_wait(&self) -> Option<Duration> {
        let begun = Instant::now();
        Python::try_attach(|_| begun.elapsed())
    }
}
