//! The header of a table of C functions, by which one extension module calls another.
//!
//! - Memory never changes its owner, because each extension module may have an allocator of its own: bytes go into buffers of the
//!   caller, or to a [`Sink`] while the call lasts.
//! - No panic leaves a function; it returns a failure.
//! - Both modules are built from the same source. If they are not, the name of the capsule or [`Header`] tells.

use std::ffi::c_void;

/// Takes bytes while a call lasts. Called with its own `context`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sink {
    /// Belongs to whoever has made the sink.
    pub context: *mut c_void,
    /// Takes so many bytes at this address.
    pub put: unsafe extern "C" fn(context: *mut c_void, bytes: *const u8, length: usize),
}

/// What each table begins with.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the table.
    pub size: usize,
    /// Version of the server, as a number: `1.2.3` is 1_002_003.
    pub version: u32,
}

impl Header {
    /// That of a table of this type.
    pub const fn of<T>() -> Self {
        let version = number(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
            + number(env!("CARGO_PKG_VERSION_MINOR")) * 1_000
            + number(env!("CARGO_PKG_VERSION_PATCH"));
        Header { size: size_of::<T>(), version }
    }
}

/// The number that digits write.
const fn number(digits: &str) -> u32 {
    let (digits, mut at, mut value) = (digits.as_bytes(), 0, 0);
    while at < digits.len() {
        value = value * 10 + (digits[at] - b'0') as u32;
        at += 1;
    }
    value
}
