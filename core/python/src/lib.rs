//! `poorhttp._core`: the reactor as Python classes. `_core.pyi` documents them for Python.

mod body_inputs;
mod cgi_program;
mod compression;
mod connection;
mod dispatched;
mod early_hints;
mod environ;
mod error_log;
mod errors;
mod escape;
mod ffi;
mod forks;
mod form;
mod gil_queue;
mod head;
mod http2;
mod inotify;
mod interrupter;
mod logged_variables;
mod meta_variables;
mod options;
mod reactor;
mod request;
mod request_name;
mod response_values;
mod sink;
mod static_files;
mod streamed_body;
mod thread_pool;
mod title;
mod tls;
mod upgrade;
mod worker_status;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic of a thread that held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reactor of Poor HTTP. It was not checked for use without the interpreter lock, so a free-threaded Python enables the
/// lock when it imports this.
#[pyo3::pymodule(gil_used = true)]
mod _core {
    use super::errors::{os_error, value_error};

    #[pymodule_export]
    use super::body_inputs::set_body_inputs;
    #[pymodule_export]
    use super::cgi_program::{CgiProgram, find_program, split_target};
    #[pymodule_export]
    use super::connection::Connection;
    #[pymodule_export]
    use super::early_hints::{client_disconnected, current_request, early_hints};
    #[pymodule_export]
    use super::error_log::{LogWriter, note_unfinished_line, set_shared_level, share_log_level};
    #[pymodule_export]
    use super::escape::{escape, fill};
    #[pymodule_export]
    use super::forks::{
        begin_python_fork, end_python_fork, forget_fd, fork_for_server, note_fd, note_signals, watch_forks,
    };
    #[pymodule_export]
    use super::form::read_fields;
    #[pymodule_export]
    use super::inotify::Inotify;
    #[pymodule_export]
    use super::options::option_fields;
    #[pymodule_export]
    use super::reactor::Reactor;
    #[pymodule_export]
    use super::request::Request;
    #[pymodule_export]
    use super::request_name::RequestName;
    #[pymodule_export]
    use super::sink::Sink;
    #[pymodule_export]
    use super::title::{set_process_title, set_thread_name};
    #[pymodule_export]
    use super::tls::use_kernel_tls;
    #[pymodule_export]
    use super::upgrade::UpgradedConnection;
    #[pymodule_export]
    use super::worker_status::{SharedStatuses, WorkerStatus, sum_figures, worker_metrics};

    /// Raises ValueError if an access log format is invalid.
    #[pyo3::pyfunction]
    fn check_log_format(text: &str) -> pyo3::PyResult<()> {
        poorhttp_reactor::AccessLog::check(text).map_err(value_error)
    }

    /// The reason phrases of statuses, by their codes.
    #[pyo3::pyfunction]
    fn reason_phrases() -> std::collections::BTreeMap<u16, &'static str> {
        poorhttp_http::REASON_PHRASES.into()
    }

    /// Removes the requests of the parent from the title of this process, which was just forked.
    #[pyo3::pyfunction]
    fn forget_title(py: pyo3::Python<'_>) {
        super::title::forget(py);
    }

    /// Has a signal sent to this process when its parent dies, which ends it within a time.
    #[pyo3::pyfunction]
    fn end_after_parent(number: i32, seconds: f64) -> pyo3::PyResult<()> {
        super::ffi::end_after_parent(number, (seconds * 1_000.0) as u64).map_err(Into::into)
    }

    /// Sends TERM to this process when its parent dies.
    #[pyo3::pyfunction]
    fn end_with_parent() -> pyo3::PyResult<()> {
        use rustix::process::{Signal, set_parent_process_death_signal};
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(os_error)
    }

    /// Address of the C function that handles a signal; 0: the default action, 1: it is ignored.
    #[pyo3::pyfunction]
    fn signal_action(number: i32) -> pyo3::PyResult<usize> {
        super::ffi::signal_action(number).map_err(os_error)
    }

    /// Makes this process the parent of orphaned descendants.
    #[pyo3::pyfunction]
    fn adopt_orphans() -> pyo3::PyResult<()> {
        // Any process id enables it.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(os_error)
    }

    /// Asks the kernel for huge pages behind a large buffer that is about to be filled.
    #[pyo3::pyfunction]
    fn advise_huge_pages(buffer: pyo3::buffer::PyBuffer<u8>) {
        super::ffi::advise_huge_pages(&buffer);
    }

    /// Has the kernel merge equal pages of this process and of those that it forks.
    #[pyo3::pyfunction]
    fn merge_memory() -> pyo3::PyResult<()> {
        super::ffi::merge_memory().map_err(os_error)
    }

    /// Returns free memory of the C library's heap to the system.
    #[pyo3::pyfunction]
    fn trim_memory() {
        super::ffi::trim_memory();
    }

    /// What this module had itself before TLS got one of its own: plug-ins of others may name it here.
    #[pyo3::pyfunction]
    fn __getattr__<'py>(py: pyo3::Python<'py>, name: &str) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::PyAny>> {
        use pyo3::prelude::*;
        if !matches!(name, "TlsConfig" | "TlsSettings" | "advance_tickets" | "self_signed") {
            let text = format!("module 'poorhttp._core' has no attribute {name:?}");
            return Err(pyo3::exceptions::PyAttributeError::new_err(text));
        }
        py.import("poorhttp.plugins.tls._tls")?.getattr(name)
    }

    /// Whether the build is optimised, for benchmarks.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const build_profile: &str = if cfg!(debug_assertions) { "debug" } else { "release" };
}
