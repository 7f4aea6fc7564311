//! The other side of `core/python/src/ffi.rs`: TLS sessions as C functions, which the reactor calls from another extension module.
//!
//! Also takes a descriptor of Python. The only file of this module with `unsafe`.
//!
//! Each function of the table is called by `core/python/src/ffi.rs` alone, whose objects hold the pointers: those of a session are
//! used by one thread at a time, and until `session_drop`; a share of certificates, until `config_drop`.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::Arc;

use poorhttp_interface::table::{Header, Sink};
use poorhttp_interface::tls::{CERTIFICATES, Certificates, SharedCertificates, TlsTable, flags};
use poorhttp_tls::TlsConfig;
use poorhttp_tls::session::Session;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::value_error;

/// Takes over a descriptor that a Python function has opened for the caller.
pub(crate) fn adopt(fd: RawFd) -> PyResult<OwnedFd> {
    if fd < 0 {
        return Err(value_error(format_args!("{fd} is not a file descriptor")));
    }
    // SAFETY: the function has returned it as its own, so nothing else closes it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A share of certificates in a capsule.
struct Shared(SharedCertificates);

// SAFETY: it is a share of a `TlsConfig`, which is `Sync`, and functions.
unsafe impl Send for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: it is the share that `capsule` has made, and nobody else gives it back.
        unsafe { config_drop(self.0.config) }
    }
}

/// Certificates for the reactor.
pub(crate) fn capsule<'py>(py: Python<'py>, config: &Arc<TlsConfig>) -> PyResult<Bound<'py, PyCapsule>> {
    let config = Arc::into_raw(Arc::clone(config)).cast();
    PyCapsule::new_with_value(py, Shared(SharedCertificates { table: &TABLE, config }), CERTIFICATES)
}

static TABLE: TlsTable = TlsTable {
    header: Header::of::<TlsTable>(),
    config_clone,
    config_drop,
    config_replace,
    session_new,
    session_drop,
    take_control,
    begin,
    receive,
    encrypt,
    close,
    can_offload,
    offload,
    variables,
};

/// A session, and whether a panic has left it in an unknown state: then it has failed.
struct Shell {
    session: Session,
    is_broken: bool,
}

impl Shell {
    fn flags(&self) -> u32 {
        flags::of(&self.session) | if self.is_broken { flags::FAILED } else { 0 }
    }

    /// Does something with the session; `None`: it is broken, or that has broken it.
    fn with<T>(&mut self, act: impl FnOnce(&mut Session) -> T) -> Option<T> {
        if self.is_broken {
            return None;
        }
        let done = catch_unwind(AssertUnwindSafe(|| act(&mut self.session)));
        self.is_broken = done.is_err();
        done.ok()
    }
}

/// Passes bytes to the other module.
fn put(sink: Sink, bytes: &[u8]) {
    // SAFETY: the sink belongs to a call that lasts, and its function reads these bytes only.
    unsafe { (sink.put)(sink.context, bytes.as_ptr(), bytes.len()) }
}

/// # Safety
///
/// `config` is a share.
unsafe fn shared<'a>(config: *const c_void) -> &'a TlsConfig {
    // SAFETY: the caller has a share of it while it uses the reference.
    unsafe { &*config.cast::<TlsConfig>() }
}

/// # Safety
///
/// `session` is one of `session_new`, and nothing else uses it meanwhile.
unsafe fn shell<'a>(session: *mut c_void) -> &'a mut Shell {
    // SAFETY: it was made of a box of this type, and the caller vouches for the rest.
    unsafe { &mut *session.cast::<Shell>() }
}

unsafe extern "C" fn config_clone(config: *const c_void) {
    // SAFETY: `config` is a share, so the count is not zero.
    unsafe { Arc::increment_strong_count(config.cast::<TlsConfig>()) }
}

unsafe extern "C" fn config_drop(config: *const c_void) {
    // SAFETY: the caller gives its share back, and does not use it any more. What is dropped are keys and tables, without code of
    // others: a panic is not to be expected, and would end the process here.
    unsafe { Arc::decrement_strong_count(config.cast::<TlsConfig>()) }
}

unsafe extern "C" fn config_replace(config: *const c_void, bytes: *const u8, length: usize, error: Sink) -> bool {
    // SAFETY: the caller has a share, and these bytes while the call lasts.
    let (config, bytes) = unsafe { (shared(config), from_raw_parts(bytes, length)) };
    match catch_unwind(AssertUnwindSafe(|| Certificates::replace(config, bytes))) {
        Ok(Ok(())) => true,
        Ok(Err(reason)) => {
            put(error, reason.as_bytes());
            false
        }
        Err(_) => {
            put(error, PANIC);
            false
        }
    }
}

/// The reason of a failure that nobody has foreseen.
const PANIC: &[u8] = b"an internal error";

unsafe extern "C" fn session_new(config: *const c_void, error: Sink, flags: *mut u32) -> *mut c_void {
    // SAFETY: the caller has a share.
    let config = unsafe { shared(config) };
    match catch_unwind(AssertUnwindSafe(|| Session::new(config.current()))) {
        Ok(Ok(session)) => {
            let shell = Box::new(Shell { session, is_broken: false });
            // SAFETY: the caller has room for one number.
            unsafe { flags.write(shell.flags()) };
            Box::into_raw(shell).cast()
        }
        Ok(Err(reason)) => {
            put(error, reason.to_string().as_bytes());
            std::ptr::null_mut()
        }
        Err(_) => {
            put(error, PANIC);
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn session_drop(session: *mut c_void) {
    // SAFETY: it was made by `session_new` of a box, and the caller does not use it any more.
    let shell = unsafe { Box::from_raw(session.cast::<Shell>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(shell)));
}

unsafe extern "C" fn take_control(session: *mut c_void, control: Sink) -> u32 {
    // SAFETY: the caller has the session for itself.
    let shell = unsafe { shell(session) };
    if let Some(records) = shell.with(Session::take_control) {
        put(control, &records);
    }
    shell.flags()
}

unsafe extern "C" fn begin(session: *const c_void, buffer: *mut u8, size: usize) -> usize {
    // SAFETY: the caller has the session and the buffer for itself.
    let (shell, buffer) = unsafe { (shell(session.cast_mut()), from_raw_parts_mut(buffer, size)) };
    shell.with(|session| session.begin(buffer)).unwrap_or(0)
}

unsafe extern "C" fn receive(
    session: *mut c_void,
    received: *mut u8,
    length: usize,
    content: Sink,
    error: Sink,
) -> u32 {
    // SAFETY: the caller has the session and the buffer for itself.
    let (shell, received) = unsafe { (shell(session), from_raw_parts_mut(received, length)) };
    match shell.with(|session| session.receive(received, |bytes| put(content, bytes))) {
        Some(Ok(())) => {}
        Some(Err(reason)) => put(error, reason.to_string().as_bytes()),
        None => put(error, PANIC),
    }
    shell.flags()
}

unsafe extern "C" fn encrypt(
    session: *mut c_void,
    content: *const u8,
    length: usize,
    records: *mut u8,
    size: usize,
) -> isize {
    // SAFETY: the caller has the session and the room for itself, and the content while the call lasts.
    let (shell, content, records) =
        unsafe { (shell(session), from_raw_parts(content, length), from_raw_parts_mut(records, size)) };
    number(shell.with(|session| session.encrypt(content, records).ok()).flatten())
}

unsafe extern "C" fn close(session: *mut c_void) -> u32 {
    // SAFETY: the caller has the session for itself.
    let shell = unsafe { shell(session) };
    shell.with(Session::close);
    shell.flags()
}

unsafe extern "C" fn can_offload(session: *const c_void) -> i32 {
    // SAFETY: the caller has the session for itself.
    let shell = unsafe { shell(session.cast_mut()) };
    shell.with(|session| session.can_offload()).flatten().map_or(-1, |records| records as i32)
}

unsafe extern "C" fn offload(session: *mut c_void, keys: *mut u8, size: usize) -> isize {
    // SAFETY: the caller has the session and the room for itself.
    let (shell, room) = unsafe { (shell(session), from_raw_parts_mut(keys, size)) };
    let given = shell.with(|session| {
        let keys = session.offload().ok()?;
        room.get_mut(..keys.as_bytes().len())?.copy_from_slice(keys.as_bytes());
        Some(keys.as_bytes().len())
    });
    number(given.flatten())
}

unsafe extern "C" fn variables(session: *const c_void, pairs: Sink) {
    // SAFETY: the caller has the session for itself.
    let shell = unsafe { shell(session.cast_mut()) };
    for (name, value) in shell.with(|session| poorhttp_interface::tls::Session::variables(session)).unwrap_or_default()
    {
        put(pairs, name.as_bytes());
        put(pairs, value.as_bytes());
    }
}

/// Bytes, or -1. No buffer has more than `isize::MAX`.
fn number(bytes: Option<usize>) -> isize {
    bytes.map_or(-1, |bytes| bytes as isize)
}
