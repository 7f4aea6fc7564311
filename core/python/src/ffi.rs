//! All unsafe code: owning a file descriptor given as a number, and counters in memory shared by processes.

#![expect(unsafe_code, reason = "Python passes descriptors by number and shared memory by address")]

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use poorhttp_reactor::Counters;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::errors::value_error;

/// Duplicates a descriptor that Python knows by its number.
pub(crate) fn duplicate(fd: RawFd) -> PyResult<OwnedFd> {
    if fd < 0 {
        return Err(value_error(format_args!("{fd} is not a file descriptor")));
    }
    // SAFETY: it is borrowed only for the `dup` in this statement. The caller, our own Python code, passes a descriptor that
    // it holds open meanwhile; should it not be open, `dup` fails with EBADF.
    let copy = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned();
    copy.map_err(|error| PyOSError::new_err((error.raw_os_error(), format!("descriptor {fd}: {error}"))))
}

/// The counters of a worker at the beginning of `memory`, which is kept for as long as the process lives.
pub(crate) fn counters_in(memory: PyBuffer<u8>) -> PyResult<(&'static PyBuffer<u8>, &'static Counters)> {
    let counters = memory.buf_ptr().cast::<Counters>();
    if memory.readonly() || memory.len_bytes() < size_of::<Counters>() || !counters.is_aligned() {
        return Err(value_error("counters need writable memory that is aligned for 64 bits"));
    }
    let memory = Box::leak(Box::new(memory));
    // SAFETY: the buffer is writable, aligned and large enough, and is never released. Any bytes are a valid `Counters`, which
    // consists of atomics, and nothing else accesses this part of the buffer.
    Ok((memory, unsafe { &*counters }))
}
