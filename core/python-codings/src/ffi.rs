//! Encoders as C functions for the reactor, which is in another extension module. The only file of this module with `unsafe`.
//!
//! Each function of the table is called by `core/python/src/ffi.rs` alone, whose objects hold the pointers: an encoder is used by
//! one thread at a time, and until `drop`.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice::{from_raw_parts, from_raw_parts_mut};

use poorhttp_codings::Encoder;
use poorhttp_http::ContentCoding;
use poorhttp_interface::codings::{CODINGS, CodingsTable, Encoder as _, Failed, RawStep, body_of, flush_of};
use poorhttp_interface::table::Header;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The table, for the reactor.
pub(crate) fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    let table = CodingsTable { header: Header::of::<CodingsTable>(), new, drop: drop_encoder, reset, step };
    PyCapsule::new_with_value(py, table, CODINGS)
}

unsafe extern "C" fn new(coding: usize, level: i32, body: u32, length: usize) -> *mut c_void {
    let made = catch_unwind(|| {
        let coding = ContentCoding::ALL.get(coding).ok_or(Failed)?;
        Encoder::new(*coding, level, body_of(body, length))
    });
    match made {
        Ok(Ok(encoder)) => Box::into_raw(Box::new(encoder)).cast(),
        _ => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn drop_encoder(encoder: *mut c_void) {
    // SAFETY: it was made by `new` of a box, and the caller does not use it any more.
    let encoder = unsafe { Box::from_raw(encoder.cast::<Encoder>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(encoder)));
}

unsafe extern "C" fn reset(encoder: *mut c_void, body: u32, length: usize) -> bool {
    // SAFETY: it was made by `new`, and the caller has it for itself.
    let encoder = unsafe { &mut *encoder.cast::<Encoder>() };
    matches!(catch_unwind(AssertUnwindSafe(|| encoder.reset(body_of(body, length)))), Ok(Ok(())))
}

unsafe extern "C" fn step(
    encoder: *mut c_void,
    input: *const u8,
    length: usize,
    then: u32,
    room: *mut u8,
    size: usize,
    step: *mut RawStep,
) -> bool {
    // SAFETY: the encoder was made by `new`, and the caller has it and the room for itself, and the input while the call lasts.
    let (encoder, input, room) =
        unsafe { (&mut *encoder.cast::<Encoder>(), from_raw_parts(input, length), from_raw_parts_mut(room, size)) };
    match catch_unwind(AssertUnwindSafe(|| encoder.step(input, flush_of(then), room))) {
        Ok(Ok(done)) => {
            // SAFETY: the caller has room for it.
            unsafe { step.write(RawStep { taken: done.taken, made: done.made, is_done: done.is_done }) };
            true
        }
        _ => false,
    }
}
