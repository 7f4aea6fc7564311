//! What a worker has in hand, in memory that outlives it.
//!
//! The memory is shared by a worker and its supervisor, which made it before it forked. The worker enters each request
//! before it is handed out and strikes it out when it is done with; once the worker is dead the supervisor reads what
//! is left.
//!
//! It consists of [`PLACES`] places of [`PLACE`] octets: a request's number (0: the place is free), the length of its
//! line, both in native byte order, and the line: method and target as they came, as much of them as fits.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PySlice;

const PLACE: usize = 256;
/// As many as a word has bits.
const PLACES: usize = u64::BITS as usize;
const NUMBER: usize = size_of::<u64>();
const LENGTH: usize = size_of::<u16>();
const FREE: &[u8; PLACE] = &[0; PLACE];

/// The requests that a worker has in hand.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct Ledger {
    memory: Py<PyAny>,
    places: [Place; PLACES],
    /// A bit for each place that is free.
    free: AtomicU64,
}

struct Place {
    /// Had when it is first needed: most workers need one.
    memory: PyOnceLock<PyBuffer<u8>>,
    /// The number of the request that is entered here.
    number: AtomicU64,
}

impl Place {
    const fn new() -> Self {
        Place { memory: PyOnceLock::new(), number: AtomicU64::new(0) }
    }
}

/// Where a request was entered.
pub(crate) struct Entry {
    ledger: Py<Ledger>,
    place: usize,
    number: u64,
}

impl Ledger {
    /// Enters a request. If more are in hand than there are places, newer ones displace older ones.
    pub(crate) fn enter(slf: &Py<Self>, py: Python<'_>, number: u64, line: [&[u8]; 3]) -> PyResult<Entry> {
        let ledger = slf.get();
        let index = match ledger.free.load(Ordering::Relaxed) {
            0 => (number % PLACES as u64) as usize,
            free => free.trailing_zeros() as usize,
        };
        let mut written = *FREE;
        let (head, room) = written.split_at_mut(NUMBER + LENGTH);
        let mut length = 0;
        for part in line {
            let taken = part.len().min(room.len() - length);
            room[length..length + taken].copy_from_slice(&part[..taken]);
            length += taken;
        }
        head[..NUMBER].copy_from_slice(&number.to_ne_bytes());
        head[NUMBER..].copy_from_slice(&(length as u16).to_ne_bytes());
        ledger.write(py, index, &written)?;
        ledger.places[index].number.store(number, Ordering::Relaxed);
        ledger.free.fetch_and(!(1 << index), Ordering::Relaxed);
        Ok(Entry { ledger: slf.clone_ref(py), place: index, number })
    }

    fn write(&self, py: Python<'_>, index: usize, octets: &[u8; PLACE]) -> PyResult<()> {
        let memory = self.places[index].memory.get_or_try_init(py, || {
            let at = (index * PLACE) as isize;
            PyBuffer::get(&self.memory.bind(py).get_item(PySlice::new(py, at, at + PLACE as isize, 1))?)
        })?;
        memory.copy_from_slice(py, octets)
    }
}

impl Entry {
    /// Strikes it out; once is enough, more often does no harm.
    #[inline]
    pub(crate) fn strike(&self, py: Python<'_>) {
        let ledger = self.ledger.get();
        let mine =
            ledger.places[self.place].number.compare_exchange(self.number, 0, Ordering::Relaxed, Ordering::Relaxed);
        // It can be written: it was when this was entered.
        if mine.is_ok() && ledger.write(py, self.place, FREE).is_ok() {
            ledger.free.fetch_or(1 << self.place, Ordering::Relaxed);
        }
    }
}

#[pymethods]
impl Ledger {
    #[classattr]
    const SIZE: usize = PLACES * PLACE;

    /// Over memory of this size, which can be sliced, as a memoryview can.
    #[new]
    fn new(memory: Py<PyAny>) -> Self {
        Ledger { memory, places: [const { Place::new() }; PLACES], free: AtomicU64::new(u64::MAX) }
    }

    /// Number and line of each request in hand, the newest first. Nothing in a line can forge a line of a log.
    fn in_hand(&self, py: Python<'_>) -> PyResult<Vec<(u64, String)>> {
        let memory = PyBuffer::<u8>::get(self.memory.bind(py))?.to_vec(py)?;
        let mut found: Vec<_> = memory
            .chunks_exact(PLACE)
            .filter_map(|place| {
                let (number, rest) = place.split_first_chunk()?;
                let (length, room) = rest.split_first_chunk()?;
                let line = &room[..room.len().min(u16::from_ne_bytes(*length).into())];
                match u64::from_ne_bytes(*number) {
                    0 => None,
                    number => Some((number, line.escape_ascii().to_string())),
                }
            })
            .collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        Ok(found)
    }

    /// Strikes out everything: a new worker begins.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        PyBuffer::get(self.memory.bind(py))?.copy_from_slice(py, &[0u8; Self::SIZE])
    }
}
