//! Interrupts applications that take too long. What is known of threads and greenlets is in `poorhttp/worker/timeouts.py`; this is
//! what must not be torn apart by the interpreter.
//!
//! Everything that is done to a request that is in hand is done with the interpreter attached, and without running a single
//! bytecode between the look whether it still is and the deed. So nothing strikes a request that is done with, nor the next
//! one of the same thread.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use poorhttp_reactor::{ErrorLog, Exchange, InFlight, Level, TimedRequest, TimeoutHandler};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rustc_hash::FxHashMap;
use rustix::process::{Signal, getpid, kill_process};

/// A request in hand.
struct Running {
    in_flight: InFlight,
    /// Thread or greenlet.
    runner: Py<PyAny>,
    /// An interruption is under way.
    struck: AtomicBool,
    /// Takes back what has not struck yet.
    undo: Mutex<Option<(Py<PyAny>, Py<PyTuple>)>>,
}

/// How to interrupt: a function, its arguments, and those that take it back.
type Means = (Py<PyAny>, Py<PyTuple>, Option<Py<PyTuple>>);

/// Those whose time is over, until somebody sees to them.
#[derive(Default)]
struct Overdue {
    waiting: VecDeque<Arc<TimedRequest>>,
    /// Somebody does.
    is_seen_to: bool,
}

pub(crate) struct Interrupter {
    /// `poorhttp.worker.timeouts.Threads`, or one like it.
    python: Py<PyAny>,
    /// Its method that says who runs.
    current: Py<PyAny>,
    /// A signal dumps all tracebacks, whoever holds the interpreter.
    dumps: bool,
    running: Mutex<FxHashMap<u64, Arc<Running>>>,
    overdue: Mutex<Overdue>,
    error_log: Arc<ErrorLog>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Interrupter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Interrupter")
    }
}

impl Interrupter {
    pub(crate) fn new(python: &Bound<'_, PyAny>, error_log: Arc<ErrorLog>) -> PyResult<Self> {
        Ok(Interrupter {
            current: python.getattr("current")?.unbind(),
            dumps: python.getattr("dumps")?.extract()?,
            python: python.clone().unbind(),
            running: Mutex::default(),
            overdue: Mutex::default(),
            error_log,
        })
    }

    /// Whoever calls this is about to run a request.
    pub(crate) fn enter(&self, py: Python<'_>, exchange: &mut Exchange) -> PyResult<()> {
        let runner = self.current.call0(py)?;
        let Some(in_flight) = exchange.hand_out() else { return Ok(()) };
        let running = Running { in_flight, runner, struck: AtomicBool::new(false), undo: Mutex::default() };
        lock(&self.running).insert(exchange.number(), Arc::new(running));
        Ok(())
    }

    /// The request is done with, and is not interrupted from now on.
    pub(crate) fn leave(&self, py: Python<'_>, number: u64) {
        let Some(running) = lock(&self.running).remove(&number) else { return };
        running.in_flight.end();
        if running.struck.swap(false, Ordering::Relaxed)
            && let Some((function, arguments)) = lock(&running.undo).take()
        {
            self.call(py, &function, &arguments);
        }
    }

    /// Whether whoever runs here is to be interrupted. It then is: this is said once.
    pub(crate) fn take_timeout(&self, py: Python<'_>, runner: &Bound<'_, PyAny>) -> bool {
        let struck: Vec<_> =
            lock(&self.running).values().filter(|running| running.struck.load(Ordering::Relaxed)).cloned().collect();
        struck.iter().any(|running| {
            runner.eq(running.runner.bind(py)).unwrap_or(false) && running.struck.swap(false, Ordering::Relaxed)
        })
    }

    /// Tells a person where the application is, and interrupts it.
    fn interrupt(&self, py: Python<'_>, watched: &TimedRequest) -> PyResult<()> {
        let find = || lock(&self.running).get(&watched.number()).cloned();
        let Some(running) = find() else { return Ok(()) };
        let facts = (watched.number(), watched.line(), watched.age() as f64 / 1_000.0, &running.runner);
        let means = self.python.call_method1(py, "report", facts);
        watched.note_reported();
        let (function, arguments, undo): Means = means?.extract(py)?;
        // It may have ended in the meantime.
        if find().is_some() {
            *lock(&running.undo) = undo.map(|undo| (function.clone_ref(py), undo));
            running.struck.store(true, Ordering::Relaxed);
            self.call(py, &function, &arguments);
            watched.end_wait();
        }
        Ok(())
    }

    fn call(&self, py: Python<'_>, function: &Py<PyAny>, arguments: &Py<PyTuple>) {
        if let Err(error) = function.bind(py).call1(arguments.bind(py)) {
            self.complain(&error);
        }
    }

    #[cold]
    fn complain(&self, error: &PyErr) {
        self.error_log.write(Level::Error, &format!("an application cannot be interrupted: {error}"));
    }

    /// Sees to all whose time is over.
    fn see_to_overdue(&self) {
        loop {
            let mut overdue = lock(&self.overdue);
            let Some(watched) = overdue.waiting.pop_front() else {
                overdue.is_seen_to = false;
                return;
            };
            drop(overdue);
            // Waits for as long as somebody else has the interpreter.
            if let Some(Err(error)) = Python::try_attach(|py| self.interrupt(py, &watched)) {
                self.complain(&error);
            }
        }
    }
}

/// What the watch calls.
#[derive(Debug)]
pub(crate) struct OverdueRequests(pub(crate) Arc<Interrupter>);

impl TimeoutHandler for OverdueRequests {
    fn overdue(&self, request: Arc<TimedRequest>) {
        let mut overdue = lock(&self.0.overdue);
        overdue.waiting.push_back(request);
        if !overdue.is_seen_to {
            let interrupter = Arc::clone(&self.0);
            let thread = thread::Builder::new().name("poorhttp-alarm".to_owned());
            overdue.is_seen_to = thread.spawn(move || interrupter.see_to_overdue()).is_ok();
        }
    }

    fn stuck(&self, request: &TimedRequest) {
        if self.0.dumps && !request.is_reported() {
            let _ = kill_process(getpid(), Signal::URG);
        }
    }
}
