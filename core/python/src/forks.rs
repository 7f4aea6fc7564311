//! Fork handlers (pthread_atfork(3)): what a forked process closes and resets before anything else.
//!
//! A process that the application forks gives up the server's descriptors and signals; one that the server forks keeps them.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use poorhttp_reactor::{forget_descriptor, note_child, note_descriptor, note_fork};
use pyo3::prelude::*;

use crate::ffi::{self, SignalMask};

/// Who forks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The application, by a library that Python does not know of.
    Library,
    /// The application, in Python: `poorhttp/process/fork.py` restores the signals, whose handlers only Python knows.
    Python,
    /// The server.
    Server,
}

thread_local! {
    /// Of the fork of this thread that is under way.
    static ORIGIN: Cell<Origin> = const { Cell::new(Origin::Library) };
    /// The signals that this thread blocked before a fork of [`Origin::Library`].
    static MASK: Cell<Option<SignalMask>> = const { Cell::new(None) };
}

/// Signals for which the server has handlers: for each the bit of its number minus 1, as in `/proc/PID/status`.
static HANDLED: AtomicU64 = AtomicU64::new(0);
/// Those of them that were ignored when it was started.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Installs the functions below in this process and all that come from it.
#[pyfunction]
pub(crate) fn watch_forks() -> PyResult<()> {
    static ONCE: Once = Once::new();
    let mut result = Ok(());
    ONCE.call_once(|| result = ffi::at_fork(before, after_in_parent, after_in_child));
    result.map_err(Into::into)
}

/// Forks this process as `posix.fork()` does, for a process of the server.
#[pyfunction]
pub(crate) fn fork_for_server(py: Python<'_>) -> PyResult<i32> {
    // Not `os.fork`, which gevent may have replaced by one that waits for the child.
    let fork = py.import("posix")?.getattr("fork")?;
    let origin = ORIGIN.replace(Origin::Server);
    let result = fork.call0();
    ORIGIN.set(origin);
    result?.extract()
}

/// Notes that Python forks this process. `False`: for the server.
#[pyfunction]
pub(crate) fn begin_python_fork() -> bool {
    let is_ours = ORIGIN.get() == Origin::Server;
    if !is_ours {
        ORIGIN.set(Origin::Python);
    }
    !is_ours
}

/// Notes the end of [`begin_python_fork`], in the parent and in the child; returns the same.
#[pyfunction]
pub(crate) fn end_python_fork() -> bool {
    let is_ours = ORIGIN.get() == Origin::Server;
    if !is_ours {
        ORIGIN.set(Origin::Library);
    }
    !is_ours
}

/// Has forks of libraries restore these signals, bits as above: the default action, or to be ignored again.
#[pyfunction]
pub(crate) fn note_signals(handled: u64, ignored: u64) {
    HANDLED.store(handled, Ordering::Relaxed);
    IGNORED.store(ignored, Ordering::Relaxed);
}

/// Notes a descriptor that processes forked by the application do not keep, until `forget_fd`.
#[pyfunction]
pub(crate) fn note_fd(fd: i32) {
    note_descriptor(fd);
}

/// Forgets a descriptor, before it is closed.
#[pyfunction]
pub(crate) fn forget_fd(fd: i32) {
    forget_descriptor(fd);
}

// The following run inside fork(2). In the child only this thread exists, so they neither allocate nor take locks.

extern "C" fn before() {
    if ORIGIN.get() != Origin::Server {
        note_child();
    }
    if ORIGIN.get() == Origin::Library {
        // A signal that came before its handler is removed in the child would be lost.
        MASK.set(ffi::block_signals(HANDLED.load(Ordering::Relaxed)));
    }
}

extern "C" fn after_in_parent() {
    if let Some(mask) = MASK.take() {
        ffi::set_mask(&mask);
    }
}

extern "C" fn after_in_child() {
    note_fork();
    if ORIGIN.get() == Origin::Server {
        return;
    }
    ffi::replace_descriptors();
    if ORIGIN.get() == Origin::Library {
        let (handled, ignored) = (HANDLED.swap(0, Ordering::Relaxed), IGNORED.load(Ordering::Relaxed));
        ffi::restore_signals(handled, ignored);
    }
    after_in_parent();
}
