//! What a worker has in hand, in memory that outlives it.
//!
//! The memory is shared by a worker and its supervisor, which made it before it forked. The worker enters each request
//! before it is handed out and strikes it out when it is done with; once the worker is dead the supervisor reads what
//! is left.
//!
//! It begins with the counters of the worker ([`Counters`]), which are read at any time. Behind them are [`SLOTS`] octets, the length of the line at each place (0: the place is free), and the places
//! themselves: a request's number in native byte order, and its line: method and target as they came, as much of them as
//! fits. The length is written last and cleared first, so whenever a worker dies what is read is complete.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};

use poorhttp_reactor::{Counters, Counts};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// As many as a word has bits.
const SLOTS: usize = u64::BITS as usize;
/// Octets of one. Four pages for all with their lengths, of which few workers ever touch more than the first.
const SLOT_SIZE: usize = 254;
const NUMBER: usize = size_of::<u64>();
const COUNTERS: usize = size_of::<Counters>();

/// The requests that a worker has in hand.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct WorkerStatus {
    memory: PyBuffer<u8>,
    /// The number of the request that is entered at each place.
    numbers: [AtomicU64; SLOTS],
    /// A bit for each place that is free.
    free: AtomicU64,
}

/// Where a request was entered.
pub(crate) struct Entry {
    worker_status: Py<WorkerStatus>,
    slot: usize,
    number: u64,
    removed: AtomicBool,
}

/// The lengths, and the places behind each other.
type Parts<'a> = (&'a [Cell<u8>; SLOTS], &'a [Cell<u8>]);

fn copy(from: &[u8], to: &[Cell<u8>]) {
    to.iter().zip(from).for_each(|(cell, octet)| cell.set(*octet));
}

impl WorkerStatus {
    #[inline]
    fn parts<'a>(&'a self, py: Python<'a>) -> Option<Parts<'a>> {
        #[expect(
            deprecated,
            reason = "sound: nobody else writes to it, and the supervisor reads when its writer is dead"
        )]
        let (lengths, slots) = self.memory.as_mut_slice(py)?.get(COUNTERS..)?.split_first_chunk()?;
        Some((lengths, slots.get(..SLOTS * SLOT_SIZE)?))
    }

    #[expect(unsafe_code, reason = "counters that processes share lie in memory that Python has mapped")]
    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        // SAFETY: `new` has seen to it that the buffer is writable, aligned and large enough, and it stays where it is as
        // long as we hold it. Any octets are a valid `Counters`, which consists of atomics, and nobody accesses this part of
        // the buffer otherwise (`parts` begins behind it).
        unsafe { &*self.memory.buf_ptr().cast::<Counters>() }
    }

    /// The counters of the worker that keeps this ledger, for as long as the process lives.
    #[expect(unsafe_code, reason = "what is kept for ever lives for ever")]
    pub(crate) fn static_counters(slf: &Py<Self>, py: Python<'_>) -> &'static Counters {
        let counters: *const Counters = slf.get().counters();
        std::mem::forget(slf.clone_ref(py));
        // SAFETY: it lies in the buffer of a ledger that has just been kept for ever.
        unsafe { &*counters }
    }

    /// Enters a request. If more are in hand than there are places, newer ones displace older ones.
    #[inline]
    pub(crate) fn enter(slf: &Py<Self>, py: Python<'_>, number: u64, line: &[u8]) -> Option<Entry> {
        let worker_status = slf.get();
        let index = match worker_status.free.load(Ordering::Relaxed) {
            0 => (number % SLOTS as u64) as usize,
            free => free.trailing_zeros() as usize,
        };
        let (lengths, slots) = worker_status.parts(py)?;
        let (head, room) = slots.chunks_exact(SLOT_SIZE).nth(index)?.split_at(NUMBER);
        let length = lengths.get(index)?;
        length.set(0);
        compiler_fence(Ordering::Release);
        copy(&number.to_ne_bytes(), head);
        copy(line, room);
        compiler_fence(Ordering::Release);
        length.set(line.len().min(room.len()) as u8);
        worker_status.numbers[index].store(number, Ordering::Relaxed);
        worker_status.free.fetch_and(!(1 << index), Ordering::Relaxed);
        worker_status.counters().add_in_flight();
        Some(Entry { worker_status: slf.clone_ref(py), slot: index, number, removed: AtomicBool::new(false) })
    }
}

impl Entry {
    /// Whether it was not struck out.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        !self.removed.load(Ordering::Relaxed)
    }

    /// Strikes it out; once is enough, more often does no harm.
    #[inline]
    pub(crate) fn remove(&self, py: Python<'_>) {
        if self.removed.swap(true, Ordering::Relaxed) {
            return;
        }
        let worker_status = self.worker_status.get();
        worker_status.counters().remove_in_flight();
        // It may have been displaced.
        let mine =
            worker_status.numbers[self.slot].compare_exchange(self.number, 0, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_ok()
            && let Some((lengths, _)) = worker_status.parts(py)
        {
            lengths[self.slot].set(0);
            worker_status.free.fetch_or(1 << self.slot, Ordering::Relaxed);
        }
    }
}

#[pymethods]
impl WorkerStatus {
    #[classattr]
    const SIZE: usize = COUNTERS + SLOTS * (1 + SLOT_SIZE);

    /// Over memory of this size that can be written to.
    #[new]
    fn new(py: Python<'_>, memory: PyBuffer<u8>) -> PyResult<Self> {
        let numbers = [const { AtomicU64::new(0) }; SLOTS];
        let worker_status = WorkerStatus { memory, numbers, free: AtomicU64::new(u64::MAX) };
        let is_aligned = worker_status.memory.buf_ptr().cast::<Counters>().is_aligned();
        match worker_status.parts(py) {
            Some(_) if is_aligned => Ok(worker_status),
            Some(_) => Err(PyValueError::new_err("worker status needs memory that is aligned for 64 bits")),
            None => {
                Err(PyValueError::new_err(format!("worker status needs {} octets that can be written to", Self::SIZE)))
            }
        }
    }

    /// Number and line of each request in hand, the newest first. Nothing in a line can forge a line of a log.
    fn in_flight(&self, py: Python<'_>) -> Vec<(u64, String)> {
        let Some((lengths, slots)) = self.parts(py) else { return Vec::new() };
        let mut found: Vec<_> = lengths
            .iter()
            .zip(slots.chunks_exact(SLOT_SIZE))
            .filter(|(length, _)| length.get() > 0)
            .filter_map(|(length, slot)| {
                let octets: Vec<u8> = slot.iter().map(Cell::get).collect();
                let (number, line) = octets.split_first_chunk()?;
                let line = line.get(..length.get().into())?;
                Some((u64::from_ne_bytes(*number), line.escape_ascii().to_string()))
            })
            .collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found
    }

    /// Strikes out everything: a new worker begins.
    fn clear(&self, py: Python<'_>) {
        if let Some((lengths, _)) = self.parts(py) {
            lengths.iter().for_each(|length| length.set(0));
            self.counters().clear();
        }
    }

    /// Sets how many requests the application can have at the same time.
    fn set_slots(&self, slots: u64) {
        self.counters().set_slots(slots);
    }

    /// Notes whether somebody checks now and then whether they are all taken: if not, the worker tells when they are.
    fn set_watched(&self, watched: bool) {
        self.counters().set_watched(watched);
    }

    /// Whether they are all taken.
    fn is_full(&self) -> bool {
        self.counters().is_full()
    }

    /// Requests begun, those that the application has, connections, and answers by the first digit of their status.
    fn counts(&self) -> (u64, u64, u64, [u64; 5]) {
        let Counts { requests, in_flight, connections, answers } = self.counters().counts();
        (requests, in_flight, connections, answers)
    }
}
