//! Python classes of the worker status: shared memory with the counters and requests in flight of each worker.
//!
//! A worker and its main process share the memory, which the main process makes before it forks. The worker enters each request
//! before it is handed out and removes it when it is done; after the worker's death the main process reads the rest. What is
//! where in the memory: `core/reactor/src/status/`.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use poorhttp_reactor::{
    BOUNDS, Counters, Counts, Finished, Histogram, InFlightRequest, METRICS, Metric, Reading, Refusal, SLOTS, Value,
    thread_id,
};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList, PyTuple};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::errors::{os_error, value_error};
use crate::ffi::{StatusMemory, duplicate};
use crate::title;

/// Nobody can change the size: a process that reads beyond the end of a mapped file is killed.
const SEALS: SealFlags = SealFlags::GROW.union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// The statuses of several workers, in a file in memory that a new main process can inherit.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct SharedStatuses {
    memory: Arc<StatusMemory>,
    /// None where files of this size are forbidden (`RLIMIT_FSIZE`), which is true of files in memory, too.
    file: Option<OwnedFd>,
}

impl SharedStatuses {
    /// The counters of all of them, for as long as this process lives.
    pub(crate) fn leak_counters(&self) -> Vec<&'static Counters> {
        leak(&self.memory).places().iter().map(|status| &status.counters).collect()
    }
}

/// Keeps the mapping as long as the process lives.
fn leak(memory: &Arc<StatusMemory>) -> &'static StatusMemory {
    Box::leak(Box::new(Arc::clone(memory)))
}

#[pymethods]
impl SharedStatuses {
    /// Makes memory for the statuses of so many workers.
    #[new]
    fn new(places: usize) -> PyResult<Self> {
        let length = places.saturating_mul(WorkerStatus::SIZE) as u64;
        let make = || {
            let file = memfd_create("poorhttp-status", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
            ftruncate(&file, length)?;
            fcntl_add_seals(&file, SEALS)?;
            rustix::io::Result::Ok(file)
        };
        let file = match make() {
            Err(Errno::FBIG) => None,
            made => Some(made.map_err(os_error)?),
        };
        let memory = StatusMemory::map(file.as_ref().map(AsFd::as_fd), places)?;
        Ok(SharedStatuses { memory: Arc::new(memory), file })
    }

    /// Uses the memory of the main process before, whose descriptor this one has inherited. ValueError: it is no such memory.
    #[staticmethod]
    fn inherited(fd: RawFd) -> PyResult<Self> {
        let file = duplicate(fd)?;
        let seals =
            fcntl_get_seals(&file).map_err(|_| value_error(format_args!("descriptor {fd} is no shared memory")))?;
        let length = fstat(&file).map_err(os_error)?.st_size as usize;
        if !seals.contains(SEALS) || length == 0 || !length.is_multiple_of(WorkerStatus::SIZE) {
            return Err(value_error(format_args!("descriptor {fd} has no statuses of workers of this version")));
        }
        let memory = StatusMemory::map(Some(file.as_fd()), length / WorkerStatus::SIZE)?;
        Ok(SharedStatuses { memory: Arc::new(memory), file: Some(file) })
    }

    /// Of the file in memory; -1 if there is none.
    fn fileno(&self) -> RawFd {
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// For how many workers there is room.
    fn __len__(&self) -> usize {
        self.memory.places().len()
    }
}

/// Counters, requests in flight and slow requests of one worker.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct WorkerStatus {
    memory: Arc<StatusMemory>,
    place: usize,
    /// A bit for each free slot for requests in flight; for the worker.
    free: AtomicU64,
}

/// A request in flight and its slot.
pub(crate) struct InFlightEntry {
    worker_status: Py<WorkerStatus>,
    slot: usize,
    number: u64,
    /// One of the following.
    state: AtomicU8,
}

const IN_FLIGHT: u8 = 0;
const LEFT: u8 = 1;
const REMOVED: u8 = 2;

impl WorkerStatus {
    #[inline]
    pub(crate) fn inner(&self) -> &poorhttp_reactor::WorkerStatus {
        &self.memory.places()[self.place]
    }

    /// The same, for as long as this process lives.
    pub(crate) fn leak(&self) -> &'static poorhttp_reactor::WorkerStatus {
        &leak(&self.memory).places()[self.place]
    }

    /// Whether there may be a request or an upgraded connection in a slot.
    #[inline]
    fn has_entries(&self) -> bool {
        self.free.load(Ordering::Relaxed) != u64::MAX
    }

    /// Enters a request with its ID, which is empty if it has none. Without a free slot, it replaces an older one.
    #[inline]
    pub(crate) fn enter(slf: &Py<Self>, py: Python<'_>, number: u64, line: &[u8], id: &[u8]) -> InFlightEntry {
        let worker_status = slf.get();
        let slot = match worker_status.free.load(Ordering::Relaxed) {
            0 => (number % SLOTS as u64) as usize,
            free => free.trailing_zeros() as usize,
        };
        worker_status.inner().enter(slot, number, line, id);
        worker_status.free.fetch_and(!(1 << slot), Ordering::Relaxed);
        title::begin(py, number, line);
        InFlightEntry { worker_status: slf.clone_ref(py), slot, number, state: AtomicU8::new(IN_FLIGHT) }
    }
}

impl InFlightEntry {
    /// Whether it was not removed yet.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        self.state.load(Ordering::Relaxed) != REMOVED
    }

    /// This thread runs the request since `begun`, in microseconds of the monotonic clock; 0: no times are taken.
    #[inline]
    pub(crate) fn begin(&self, begun: u64) {
        if begun != 0 {
            self.worker_status.get().inner().begin(self.slot, self.number, begun, thread_id());
        }
    }

    /// The application has got the connection of the request; `has_left`: the request is not in flight any more.
    pub(crate) fn set_upgraded(&self, py: Python<'_>, has_left: bool) {
        let to = if has_left { LEFT } else { IN_FLIGHT };
        if self.state.compare_exchange(IN_FLIGHT, to, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let inner = self.worker_status.get().inner();
            inner.set_upgraded(self.slot, self.number, has_left);
            if has_left {
                title::end(py, self.number, || inner.oldest().map(|request| (request.number, request.line)));
            }
        }
    }

    /// Removes the request; idempotent.
    #[inline]
    pub(crate) fn remove(&self, py: Python<'_>) {
        let (worker_status, inner) = (self.worker_status.get(), self.worker_status.get().inner());
        let is_ours = match self.state.swap(REMOVED, Ordering::Relaxed) {
            IN_FLIGHT => inner.remove(self.slot, self.number),
            LEFT => inner.remove_upgraded(self.slot, self.number),
            _ => return,
        };
        // Otherwise a newer request has replaced it.
        if is_ours {
            worker_status.free.fetch_or(1 << self.slot, Ordering::Relaxed);
        }
        // Most requests are the only one, so no slot is looked at.
        let oldest = || if worker_status.has_entries() { inner.oldest() } else { None };
        title::end(py, self.number, || oldest().map(|request| (request.number, request.line)));
    }
}

/// Microseconds of the monotonic clock.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

fn seconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e6
}

/// Bytes of a text that was escaped when it was noted.
fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn histogram<'py>(py: Python<'py>, histogram: &Histogram) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("counts", histogram.counts().to_vec())?;
    dict.set_item("sum", seconds(histogram.sum()))?;
    Ok(dict)
}

/// The `Figures` of the status document (`poorhttp/plugins/monitor/admin/model.py`): all rows of the table of metrics.
fn figures<'py>(py: Python<'py>, reading: &Reading<'_>) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for metric in METRICS {
        match (metric.read)(reading) {
            Value::Number(number) => all.set_item(metric.key, number)?,
            Value::Microseconds(duration) => all.set_item(metric.key, seconds(duration))?,
            Value::Labelled(numbers) => all.set_item(metric.key, numbers.into_py_dict(py)?)?,
            Value::Durations(durations) => all.set_item(metric.key, histogram(py, durations)?)?,
        }
    }
    Ok(all)
}

/// Kind, key of `Figures`, name, label, its values that are shown (none: all) and help text of each metric that workers count.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn worker_metrics()
-> Vec<(String, &'static str, &'static str, &'static str, Vec<&'static str>, &'static str)> {
    let row = |each: &Metric| {
        let Metric { kind, key, name, label, shown, help, .. } = *each;
        (format!("{kind:?}").to_lowercase(), key, name, label, shown.to_vec(), help)
    };
    METRICS.iter().map(row).collect()
}

/// Seconds since the oldest request in flight began.
fn oldest(status: &poorhttp_reactor::WorkerStatus, now: u64) -> u64 {
    let requests = status.in_flight();
    let begun = requests
        .iter()
        .filter(|request| request.begun != 0 && !request.is_upgraded && !request.is_streaming)
        .map(|request| request.begun);
    begun.min().map_or(0, |begun| now.saturating_sub(begun))
}

/// The sum of the metrics of several workers. Of those that have ended, only what they have counted is added.
#[pyfunction]
pub(crate) fn sum_figures<'py>(
    py: Python<'py>,
    alive: Vec<PyRef<'py, WorkerStatus>>,
    ended: Vec<PyRef<'py, WorkerStatus>>,
) -> PyResult<Bound<'py, PyDict>> {
    let (sum, now) = (Counters::default(), now());
    ended.iter().for_each(|status| sum.add(&status.inner().counters, false));
    alive.iter().for_each(|status| sum.add(&status.inner().counters, true));
    let oldest = alive.iter().map(|status| oldest(status.inner(), now)).max().unwrap_or(0);
    figures(py, &Reading::new(&sum, oldest))
}

/// The present moment of both clocks, read once for all entries, whose order it must not change.
struct Present {
    /// Microseconds of the monotonic clock.
    now: u64,
    /// Seconds since 1970.
    time_of_day: f64,
}

impl Present {
    fn read() -> Self {
        let time_of_day = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        Present { now: now(), time_of_day }
    }

    /// Seconds since 1970 at a time of the monotonic clock.
    fn time_of_day(&self, when: u64) -> f64 {
        self.time_of_day - seconds(self.now.saturating_sub(when))
    }
}

/// The `Finished` of the status document.
fn finished_to_dict<'py>(py: Python<'py>, finished: &Finished, present: &Present) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("when", present.time_of_day(finished.ended))?;
    dict.set_item("line", String::from_utf8_lossy(&finished.line))?;
    dict.set_item("status", finished.status)?;
    dict.set_item("waited", seconds(finished.waited))?;
    dict.set_item("application", seconds(finished.application))?;
    dict.set_item("sending", seconds(finished.sending))?;
    dict.set_item("sent", finished.sent)?;
    dict.set_item("pid", finished.pid)?;
    dict.set_item("number", finished.number)?;
    dict.set_item("id", text(&finished.id))?;
    Ok(dict)
}

/// The `Refusal` of the status document.
fn refusal_to_dict<'py>(py: Python<'py>, refusal: &Refusal, present: &Present) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("when", present.time_of_day(refusal.when))?;
    dict.set_item("status", refusal.status)?;
    dict.set_item("reason", text(&refusal.reason))?;
    dict.set_item("client", text(&refusal.client))?;
    dict.set_item("line", String::from_utf8_lossy(&refusal.line))?;
    dict.set_item("pid", refusal.pid)?;
    dict.set_item("number", refusal.number)?;
    dict.set_item("id", text(&refusal.id))?;
    Ok(dict)
}

#[pymethods]
impl WorkerStatus {
    #[classattr]
    const SIZE: usize = size_of::<poorhttp_reactor::WorkerStatus>();

    /// Upper bounds of the buckets of the histograms, in seconds.
    #[classattr]
    #[allow(non_snake_case)]
    fn BOUNDS(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, BOUNDS.map(seconds))
    }

    /// The status in this place of the memory.
    #[new]
    fn new(memory: &Bound<'_, SharedStatuses>, place: usize) -> PyResult<Self> {
        let memory = Arc::clone(&memory.get().memory);
        let places = memory.places().len();
        if place >= places {
            return Err(value_error(format_args!("place {place} of a memory with {places}")));
        }
        Ok(WorkerStatus { memory, place, free: AtomicU64::new(u64::MAX) })
    }

    /// Number and line of each request in flight, the newest first. The lines are escaped, for logs. `in_pool`: without those
    /// whose threads have left the count of `threads`.
    #[pyo3(signature = (in_pool = false))]
    fn in_flight(&self, in_pool: bool) -> Vec<(u64, String)> {
        let requests = self.inner().in_flight().into_iter();
        let requests = requests.filter(|request| !(request.has_left || (in_pool && request.is_streaming)));
        requests.map(|request| (request.number, text(&request.line))).collect()
    }

    /// Requests in flight and upgraded connections, the oldest first.
    fn requests<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let now = now();
        let list = PyList::empty(py);
        for InFlightRequest { number, line, begun, thread, id, is_upgraded, is_streaming, .. } in
            self.inner().in_flight().iter().rev()
        {
            let dict = PyDict::new(py);
            dict.set_item("number", number)?;
            dict.set_item("line", text(line))?;
            dict.set_item("seconds", if *begun == 0 { 0.0 } else { seconds(now.saturating_sub(*begun)) })?;
            dict.set_item("thread", thread)?;
            dict.set_item("id", text(id))?;
            dict.set_item("upgraded", is_upgraded)?;
            dict.set_item("streaming", is_streaming)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    /// The slowest requests of the last hour, the last errors, and the last refusals.
    #[allow(clippy::type_complexity)]
    fn finished<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyList>)> {
        let (inner, present) = (self.inner(), Present::read());
        let list = |found: Vec<Finished>| {
            let dicts: PyResult<Vec<_>> = found.iter().map(|one| finished_to_dict(py, one, &present)).collect();
            PyList::new(py, dicts?)
        };
        let refusals: PyResult<Vec<_>> =
            inner.refusals().iter().map(|refusal| refusal_to_dict(py, refusal, &present)).collect();
        Ok((list(inner.slowest(present.now))?, list(inner.errors())?, PyList::new(py, refusals?)?))
    }

    /// The metrics of this worker, under the name that the status document has for them.
    fn figures<'py>(slf: PyRef<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        sum_figures(slf.py(), vec![slf], Vec::new())
    }

    /// Lines of its logs that were lost.
    fn lines_lost(&self) -> u64 {
        self.inner().counters.metrics.lines_lost.load(Ordering::Relaxed)
    }

    /// Resets everything for a new worker.
    fn clear(&self) {
        self.inner().clear();
        self.free.store(u64::MAX, Ordering::Relaxed);
    }

    /// Adds counters and entries of an ended worker to this status, and clears them there. Its requests in flight stay.
    fn absorb(&self, ended: &Self) {
        self.inner().absorb(ended.inner());
    }

    /// Sequence number: odd while counters of an ended worker are moved into this status.
    fn moves(&self) -> u64 {
        self.inner().moves()
    }

    /// A number for the main process's own use.
    fn own_number(&self, which: usize) -> u64 {
        self.inner().own_number(which)
    }

    /// Adds to such a number.
    #[pyo3(signature = (which, more = 1))]
    fn add_to_own_number(&self, which: usize, more: u64) {
        self.inner().add_to_own_number(which, more);
    }

    /// Sets how many requests the application can have at the same time.
    fn set_slots(&self, slots: u64) {
        self.inner().counters.set_slots(slots);
    }

    /// Asks for so many threads, with `threads = auto`; `hold`: from now on.
    #[pyo3(signature = (threads, hold = false))]
    fn want_threads(&self, threads: u64, hold: bool) {
        self.inner().counters.want_threads(threads, hold);
    }

    /// Sets whether the supervisor checks for free slots; if not, the worker reports when all are taken.
    fn set_watched(&self, watched: bool) {
        self.inner().counters.set_watched(watched);
    }

    /// Has the worker report its next request.
    fn await_request(&self) {
        self.inner().counters.await_request();
    }

    /// Whether it accepts connections.
    #[getter]
    fn accepts(&self) -> bool {
        self.inner().counters.accepts()
    }

    /// Shows the other workers that this one does not accept.
    fn stop_accepting(&self) {
        self.inner().counters.stop_accepting();
    }

    /// Whether they are all taken.
    fn is_full(&self) -> bool {
        self.inner().counters.is_full()
    }

    /// Requests begun; requests in flight in the application; open connections; responses by the first digit of their status;
    /// connections with a protocol upgrade now; protocol upgrades so far.
    fn counts(&self) -> (u64, u64, u64, [u64; 5], u64, u64) {
        let Counts { requests, in_flight, connections, answers, upgraded, upgrades, .. } =
            self.inner().counters.counts();
        (requests, in_flight, connections, answers, upgraded, upgrades)
    }
}
