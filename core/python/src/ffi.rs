//! All `unsafe` code: each method of TLS sessions and codings, through the C tables of other modules; system calls; memory.
//!
//! A file descriptor given as a number, memory shared by processes, TCP_INFO, memory of large `bytes`, text to and from
//! `str`, malloc_trim, mallopt, PR_SET_MEMORY_MERGE, kernel TLS, buffers that Python wants filled, the arguments of this process, the
//! actions of signals, what follows the end of the parent, and what is done inside fork(2).

#![expect(
    unsafe_code,
    reason = "Python passes descriptors by number; shared memory is mapped; no crate has TCP_INFO, malloc_trim, mallopt, \
        PR_SET_MEMORY_MERGE or records of kernel TLS; \
        PyO3 clears the memory of bytes before it fills them, or panics if there is none, and is slow with text; \
        advice on memory is by address; \
        PyO3 gives a buffer as cells, which no other thread may fill; the kernel takes the arguments of a process by address; \
        no crate has pthread_atfork, sigaction and timer_create, and a forked process closes descriptors that others own"
)]

use std::ffi::{CStr, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering};

use poorhttp_http::ContentCoding;
use poorhttp_interface::codings::{
    Body, CODINGS, CodingsTable, Encoder, Encoders, Failed, Flush, RawStep, Step, body_number, flush_number,
};
use poorhttp_interface::kernel::{KernelKeys, Records};
use poorhttp_interface::table::{Header, Sink};
use poorhttp_interface::tls::{self, CERTIFICATES, Certificates, Session, SharedCertificates, TlsTable, flags};
use poorhttp_reactor::{WorkerStatus, take_descriptors};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyOSError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyString};

use crate::errors::value_error;

/// Milliseconds since the last bytes have come on a TCP socket.
pub(crate) fn since_input(socket: BorrowedFd<'_>) -> Option<u64> {
    // The fields of `struct tcp_info` (tcp(7)): eight bytes, and then 32-bit numbers.
    const LAST_DATA_RECV: usize = 13;
    let mut info = [0_u32; LAST_DATA_RECV + 1];
    let mut length = size_of_val(&info) as libc::socklen_t;
    let room = info.as_mut_ptr().cast();
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes, which `info` has. Any bytes are numbers.
    let failed = unsafe { libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, room, &mut length) };
    (failed == 0 && length as usize == size_of_val(&info)).then(|| u64::from(info[LAST_DATA_RECV]))
}

/// Bytes sent on a TCP socket that its peer has not acknowledged; also after a reset.
pub(crate) fn unacknowledged(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open, and the kernel writes one number.
    let failed = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    (failed == 0).then(|| u64::try_from(bytes).unwrap_or(0))
}

/// Address of the function that handles a signal; SIG_DFL and SIG_IGN are 0 and 1.
pub(crate) fn signal_action(number: i32) -> io::Result<usize> {
    // SAFETY: zero is a valid value of each field.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only fills `action`.
    match unsafe { libc::sigaction(number, std::ptr::null(), &raw mut action) } {
        0 => Ok(action.sa_sigaction),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The timer of this process that kills it, by the number that the kernel has given; negative: it has none.
static ORPHAN_TIMER: AtomicI32 = AtomicI32::new(-1);
/// The process that [`ORPHAN_TIMER`] belongs to: its children inherit the number, and no timer.
static ORPHAN_TIMER_OF: AtomicI32 = AtomicI32::new(0);
/// Milliseconds for which this process may go on when its parent has ended.
static ORPHAN_TIME: AtomicU64 = AtomicU64::new(0);

/// The signal of threads that are cancelled (`SIGCANCEL`; musl: `SIGTIMER`). C libraries keep it for themselves: their functions
/// neither change its action nor block it, so an application that ignores or blocks all signals leaves it alone.
const RESERVED: i32 = 32;
/// Bytes of a set of signals, as the kernel counts them.
const SIGNAL_SET: usize = 8;

/// Has a signal sent to this process when its parent ends. Then this process gets TERM, and is killed after `milliseconds`, also if
/// its threads are in code that no signal interrupts. The signal is [`RESERVED`], or `number` if the former is in use.
pub(crate) fn end_after_parent(number: i32, milliseconds: u64) -> io::Result<()> {
    ORPHAN_TIME.store(milliseconds.max(1), Ordering::Relaxed);
    let own = std::process::id() as i32;
    if ORPHAN_TIMER_OF.swap(own, Ordering::Relaxed) != own {
        let mut timer: libc::c_int = -1;
        // SAFETY: zero is a valid value of each field.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_SIGNAL, libc::SIGKILL);
        // Not by the C library, whose timers are no numbers, and are in another library in old versions of it.
        // SAFETY: the kernel reads `event` and writes one number. If it makes no timer, there is only TERM.
        let failed =
            unsafe { libc::syscall(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
        ORPHAN_TIMER.store(if failed == 0 { timer } else { -1 }, Ordering::Relaxed);
    }
    // SAFETY: zero is a valid value of each field.
    let (mut action, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_end_of_parent as extern "C" fn(libc::c_int) as usize;
    // On the thread's alternate stack, if it has one: the stack of a coroutine may have no room for a handler.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler does only what is allowed in one.
    if unsafe { libc::sigaction(number, &raw const action, &raw mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let sent = if copy_action_to_reserved(number) {
        // SAFETY: the action was in force before. The application may use the signal.
        unsafe { libc::sigaction(number, &raw const before, std::ptr::null_mut()) };
        RESERVED
    } else {
        number
    };
    let unblocked = 1_u64 << (sent - 1);
    let nothing = std::ptr::null_mut::<u64>();
    // SAFETY: the kernel reads as many bytes as `unblocked` has. The C library would leave a reserved signal blocked.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_UNBLOCK, &raw const unblocked, nothing, SIGNAL_SET) };
    // SAFETY: it takes numbers only.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, sent as libc::c_ulong) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives [`RESERVED`] the action of the signal `number`. `false`: it has a handler, that of the C library in its versions before
/// 2.34 or when a library has cancelled a thread. A parent may have left it ignored, which does not count.
fn copy_action_to_reserved(number: i32) -> bool {
    // The kernel's structure, of 32 bytes at most, which begins with the handler. The C library has filled the rest.
    let (mut ours, mut reserved) = ([0_usize; 8], [0_usize; 8]);
    let nothing = std::ptr::null_mut::<usize>();
    // SAFETY: the kernel writes a structure that has room in each array, and reads the one that it wrote.
    unsafe {
        let exchange = |signal: i32, new: *mut usize, old: *mut usize| {
            libc::syscall(libc::SYS_rt_sigaction, signal, new, old, SIGNAL_SET) == 0
        };
        exchange(number, nothing, ours.as_mut_ptr())
            && exchange(RESERVED, nothing, reserved.as_mut_ptr())
            && [libc::SIG_DFL, libc::SIG_IGN, ours[0]].contains(&reserved[0])
            && exchange(RESERVED, ours.as_mut_ptr(), nothing)
    }
}

/// The handler of the signal of [`end_after_parent`].
extern "C" fn on_end_of_parent(_: libc::c_int) {
    // SAFETY: these functions are allowed in a handler. `errno` is that of this thread, and what the handler has interrupted finds
    // its own value there.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        arm_orphan_timer();
        libc::kill(libc::getpid(), libc::SIGTERM);
        *errno = before;
    }
}

/// Has the kernel kill this process after the time of [`end_after_parent`], if that was called in it. Its signal may not have come:
/// the kernel sends none after a change of the user, and where `RESERVED` is in use the application may have blocked it. Does only
/// what is allowed in a handler.
pub(crate) fn arm_orphan_timer() {
    let time = ORPHAN_TIME.load(Ordering::Relaxed);
    // SAFETY: the kernel reads `spec`, which on machines of 64 bits has the form of the C library. No timer has the number -1.
    unsafe {
        let mut spec: libc::itimerspec = std::mem::zeroed();
        spec.it_value.tv_sec = (time / 1_000) as libc::time_t;
        spec.it_value.tv_nsec = (time % 1_000 * 1_000_000) as libc::c_long;
        if ORPHAN_TIMER_OF.load(Ordering::Relaxed) == libc::getpid() {
            let timer = ORPHAN_TIMER.load(Ordering::Relaxed);
            let nothing = std::ptr::null_mut::<libc::itimerspec>();
            libc::syscall(libc::SYS_timer_settime, timer, 0, &raw const spec, nothing);
        }
    }
}

/// A `bytes` with this content, or a MemoryError.
pub(crate) fn bytes<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    // SAFETY: a slice has at most `isize::MAX` bytes, which Python copies. The result is a new reference, or null with an
    // exception set.
    let made = unsafe {
        let made = ffi::PyBytes_FromStringAndSize(content.as_ptr().cast(), content.len() as ffi::Py_ssize_t);
        Bound::from_owned_ptr_or_err(py, made)
    }?;
    Ok(made.cast_into()?)
}

/// The text of a `str`, as PyO3's `to_str` without a `Result` in memory, which costs a request of two fields 1 % of its
/// instructions. An error if it has lone surrogates.
#[inline(always)]
pub(crate) fn text<'a>(string: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    let mut length = 0;
    // SAFETY: the result is null with an exception set, or points to so many bytes of UTF-8, which the string keeps as long as
    // it exists.
    unsafe {
        let bytes = ffi::PyUnicode_AsUTF8AndSize(string.as_ptr(), &raw mut length);
        match bytes.is_null() {
            true => Err(fetched(string.py())),
            false => Ok(str::from_utf8_unchecked(std::slice::from_raw_parts(bytes.cast(), length as usize))),
        }
    }
}

/// A `str` of these characters of Latin-1. PyO3 makes one of UTF-8, which is checked first.
#[inline]
pub(crate) fn latin1<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    let highest = if bytes.is_ascii() { 0x7f } else { 0xff };
    // SAFETY: a slice has at most `isize::MAX` bytes. PyUnicode_New returns a new reference that nobody else has yet, or null
    // with an exception set. The string has room for `bytes.len()` characters of one byte each, none of them above `highest`.
    let made = unsafe {
        let made = ffi::PyUnicode_New(bytes.len() as ffi::Py_ssize_t, highest);
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        let characters = ffi::PyUnicode_DATA(made.as_ptr()).cast::<u8>();
        characters.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        made
    };
    Ok(made.cast_into()?)
}

/// Sets a `ContextVar` in the current context.
pub(crate) fn set_context_variable(variable: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    // SAFETY: both are references to objects that live during the call, which refuses what is no ContextVar. The result is a new
    // reference, or null with an exception set.
    let token = unsafe {
        let token = ffi::PyContextVar_Set(variable.as_ptr(), value.as_ptr());
        Bound::from_owned_ptr_or_err(variable.py(), token)
    };
    token.map(drop)
}

#[cold]
fn fetched(py: Python<'_>) -> PyErr {
    PyErr::fetch(py)
}

/// Asks for huge pages behind a buffer that is about to be filled, if it is so large that `malloc` has mapped it for itself:
/// 100 MB have 25,600 small pages, whose faults cost four times as much as the copying.
pub(crate) fn advise_huge_pages(buffer: &PyBuffer<u8>) {
    const LARGE: usize = 32 << 20;
    const HUGE: usize = 2 << 20;
    let (begin, length) = (buffer.buf_ptr() as usize, buffer.len_bytes());
    if length < LARGE || !buffer.is_c_contiguous() {
        return;
    }
    let (first, end) = (begin.next_multiple_of(HUGE), (begin + length) / HUGE * HUGE);
    // SAFETY: these pages are inside the buffer, and the advice leaves their content as it is.
    unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
}

/// The first byte of `memory`, which is kept for as long as the process lives.
pub(crate) fn shared_byte(memory: PyBuffer<u8>) -> PyResult<&'static AtomicU8> {
    if memory.readonly() || memory.len_bytes() == 0 {
        return Err(value_error("a shared byte needs writable memory"));
    }
    let memory = Box::leak(Box::new(memory));
    // SAFETY: the buffer is writable and not empty, and is never released. Any byte is a valid `AtomicU8`, and nothing else
    // accesses this one.
    Ok(unsafe { &*memory.buf_ptr().cast::<AtomicU8>() })
}

/// The bytes of a buffer that Python wants filled.
#[allow(clippy::mut_from_ref)]
pub(crate) fn room_of(buffer: &PyBuffer<u8>) -> PyResult<&mut [u8]> {
    if buffer.readonly() || !buffer.is_c_contiguous() {
        return Err(value_error("a body is received into a writable buffer without gaps"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the memory stays where it is while the buffer is borrowed. Any bytes are valid in it, and as with `readinto` of
    // Python's own files it is for the caller to let no other thread use it meanwhile.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.buf_ptr().cast(), buffer.len_bytes()) })
}

/// Returns free memory of the C library's heap to the system, if the library can (malloc_trim(3)).
pub(crate) fn trim_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes the locks of the heap, and moves nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Has the C library give all threads memory from two heaps. By itself it makes up to eight for each processor, one for each new
/// thread, and what was freed in one is of no use to another: threads that come and go take more and more, though those that run
/// Python wait for each other anyway. Who has set a number in the environment, or the library's `GLIBC_TUNABLES`, keeps it.
pub(crate) fn share_heaps() {
    #[cfg(target_env = "gnu")]
    if std::env::var_os("MALLOC_ARENA_MAX").is_none() && std::env::var_os("GLIBC_TUNABLES").is_none() {
        // SAFETY: it sets a number, under the lock of the heap.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 2);
        }
    }
}

/// Has the kernel merge equal pages of this process and of those that it forks, while KSM runs (Linux 6.4 and later).
pub(crate) fn merge_memory() -> io::Result<()> {
    let zero: libc::c_ulong = 0;
    // SAFETY: it takes numbers only, and changes nothing that a process can see.
    match unsafe { libc::prctl(libc::PR_SET_MEMORY_MERGE, 1 as libc::c_ulong, zero, zero, zero) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an option of a socket.
pub(crate) fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel reads as many bytes as `value` has.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends a record of this type on a socket for which the kernel makes records, without waiting.
pub(crate) fn send_record(socket: BorrowedFd<'_>, kind: u8, content: &[u8]) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: content.as_ptr().cast_mut().cast(), iov_len: content.len() };
    // Aligned as the header is.
    let mut control = [0_u64; 4];
    // SAFETY: a message of zeros is one without anything.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: `control` has room for a header and one byte; the kernel reads as much of it as `msg_controllen` says, and of
    // `content` what it has.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(1) as _;
        let header = &mut *libc::CMSG_FIRSTHDR(&message);
        (header.cmsg_level, header.cmsg_type) = (libc::SOL_TLS, libc::TLS_SET_RECORD_TYPE);
        header.cmsg_len = libc::CMSG_LEN(1) as _;
        *libc::CMSG_DATA(header) = kind;
        libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

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

/// Memory that processes share, with a [`WorkerStatus`] in each place.
pub(crate) struct StatusMemory {
    begin: NonNull<WorkerStatus>,
    places: usize,
}

// SAFETY: it gives nothing but shared references to values that consist of atomics.
unsafe impl Send for StatusMemory {}
// SAFETY: as above.
unsafe impl Sync for StatusMemory {}

impl StatusMemory {
    /// Maps a file with room for so many places, whose size must not change any more; without one, memory that only children share.
    pub(crate) fn map(file: Option<BorrowedFd<'_>>, places: usize) -> io::Result<Self> {
        let length = places.checked_mul(size_of::<WorkerStatus>()).filter(|&length| length > 0);
        let length = length.ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping is made, at an address that the kernel chooses.
        let begin = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_SHARED | if file.is_none() { libc::MAP_ANONYMOUS } else { 0 };
            libc::mmap(std::ptr::null_mut(), length, access, kind, file.map_or(-1, |file| file.as_raw_fd()), 0)
        };
        match NonNull::new(begin.cast::<WorkerStatus>()) {
            Some(begin) if begin.as_ptr().cast::<libc::c_void>() != libc::MAP_FAILED => {
                Ok(StatusMemory { begin, places })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What is in each place.
    #[inline]
    pub(crate) fn places(&self) -> &[WorkerStatus] {
        // SAFETY: the mapping has room for so many, begins at a page, and lasts as long as this. Any bytes are a valid
        // `WorkerStatus`, which consists of atomics; nothing accesses it otherwise. It is sealed (`worker_status.rs`), so no
        // process can make the file shorter.
        unsafe { std::slice::from_raw_parts(self.begin.as_ptr(), self.places) }
    }
}

impl Drop for StatusMemory {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.places * size_of::<WorkerStatus>()) };
    }
}

/// Memory that the kernel shows as the arguments of this process: `/proc/PID/cmdline`, `ps`, `top`.
///
/// Private memory, as the kernel shows no other: a process that is forked has a copy of its own.
#[derive(Debug)]
pub(crate) struct Arguments {
    begin: *mut u8,
    length: usize,
}

// SAFETY: the memory is never released, and only `write` changes it, with the interpreter attached.
unsafe impl Send for Arguments {}
// SAFETY: as above.
unsafe impl Sync for Arguments {}

unsafe extern "C" {
    /// The first argument of this process (program_invocation_name(3)).
    static program_invocation_name: *const libc::c_char;
}

/// `struct prctl_mm_map` (prctl(2), PR_SET_MM_MAP).
#[repr(C)]
struct MemoryMap {
    /// Code, data, and the start of the heap.
    start_code: u64,
    end_code: u64,
    start_data: u64,
    end_data: u64,
    start_brk: u64,
    brk: u64,
    start_stack: u64,
    arg_start: u64,
    arg_end: u64,
    env_start: u64,
    env_end: u64,
    /// No bytes: it stays as it is.
    auxv: u64,
    auxv_size: u32,
    /// None: it stays as it is.
    exe_fd: u32,
}

impl Arguments {
    /// A page of its own, or else the memory in which the arguments have been since the start. `None`: not known.
    pub(crate) fn of_this_process() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name before it may contain anything. What follows begins with the third field (proc(5)).
        let fields: Vec<u64> =
            stat.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let own = match field(20) {
            // Another thread could move the end of the heap meanwhile.
            Some(1) => Self::own_page(field),
            _ => None,
        };
        own.or_else(|| {
            let (begin, end) = (field(48)?, field(49)?);
            // Under valgrind and other emulators these are the arguments of the emulator.
            // SAFETY: the C library sets it before the program starts.
            let own = unsafe { program_invocation_name } as u64 == begin;
            (own && end > begin)
                .then(|| Arguments { begin: begin as *mut u8, length: (end - begin) as usize })
                .map(Self::taken)
        })
    }

    /// Has the kernel look for the arguments in new memory, which any process may if the kernel has checkpoint and restore.
    fn own_page(field: impl Fn(usize) -> Option<u64>) -> Option<Self> {
        const PR_SET_MM: libc::c_int = 35;
        const PR_SET_MM_MAP: libc::c_ulong = 14;
        const LENGTH: usize = 4096;
        // SAFETY: new memory, which nothing else refers to.
        let begin = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                LENGTH,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if begin == libc::MAP_FAILED {
            return None;
        }
        let page = Arguments { begin: begin.cast(), length: LENGTH };
        let map = MemoryMap {
            start_code: field(26)?,
            end_code: field(27)?,
            start_data: field(45)?,
            end_data: field(46)?,
            start_brk: field(47)?,
            // SAFETY: it changes nothing, and returns the end of the heap.
            brk: unsafe { libc::sbrk(0) } as u64,
            start_stack: field(28)?,
            arg_start: begin as u64,
            arg_end: begin as u64 + LENGTH as u64,
            env_start: field(50)?,
            env_end: field(51)?,
            auxv: 0,
            auxv_size: 0,
            exe_fd: u32::MAX,
        };
        let size = size_of::<MemoryMap>() as libc::c_ulong;
        // SAFETY: the kernel reads `size` bytes of `map`. All values but those of the arguments are as they were: this is the
        // only thread. The kernel itself uses none of them but the end of the heap.
        let failed = unsafe { libc::prctl(PR_SET_MM, PR_SET_MM_MAP, &raw const map, size, 0 as libc::c_ulong) };
        if failed != 0 {
            // SAFETY: nothing refers to it.
            unsafe { libc::munmap(begin, LENGTH) };
            return None;
        }
        Some(Self::taken(page))
    }

    /// Clears it. If the last byte is not 0, the kernel takes all for one text, which ends with the first 0.
    fn taken(self) -> Self {
        // SAFETY: `length` bytes, at least one, are writable, and nothing refers to them: of the original arguments, the C
        // library has only the name for its messages, which is a text still.
        unsafe {
            self.begin.write_bytes(0, self.length - 1);
            self.begin.add(self.length - 1).write(1);
        }
        self
    }

    /// Length of the longest text.
    pub(crate) fn room(&self) -> usize {
        self.length.saturating_sub(2)
    }

    /// Writes bytes at this place, as many as there is room for.
    #[inline]
    pub(crate) fn write(&self, _: Python<'_>, at: usize, bytes: &[u8]) {
        let length = bytes.len().min(self.length.saturating_sub(at + 1));
        // SAFETY: so many bytes are left before the last one. They belong to this object, which nobody else writes while this
        // thread has the interpreter; the kernel may read them at any time.
        unsafe { self.begin.add(at.min(self.length)).copy_from_nonoverlapping(bytes.as_ptr(), length) };
    }
}

/// Has these functions called in each fork(2): before, and after in the parent and in the child. They may only call what is
/// allowed in a signal handler (pthread_atfork(3)).
pub(crate) fn at_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) -> io::Result<()> {
    // SAFETY: the functions stay where they are, because Python never unloads an extension.
    match unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Has each noted descriptor of the server refer to an event counter at which nothing ever happens. Their numbers stay in use,
/// as objects of the parent will close them in this process; gevent's loop may go on polling one of them, and aborts if it
/// cannot. For a process that has just been forked.
pub(crate) fn replace_descriptors() {
    let open = || {
        // SAFETY: it takes numbers only.
        unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }
    };
    let nothing = open();
    take_descriptors(|fd| {
        // SAFETY: this is the only thread of the process, and the objects that own the descriptors do nothing with them in a
        // forked process but close them.
        unsafe {
            if nothing >= 0 {
                libc::dup3(nothing, fd, libc::O_CLOEXEC);
            } else {
                // No number is left, so the next one that is opened has this.
                libc::close(fd);
                open();
            }
        }
    });
    if nothing >= 0 {
        // SAFETY: it was opened above, and nothing else knows it.
        unsafe { libc::close(nothing) };
    }
}

/// The signals that a thread blocks.
pub(crate) type SignalMask = libc::sigset_t;

/// Blocks signals, for each the bit of its number minus 1, in this thread; returns those that it blocked before.
pub(crate) fn block_signals(signals: u64) -> Option<SignalMask> {
    // SAFETY: both sets are initialised by the first function that gets them, and the other functions change nothing else.
    unsafe {
        let (mut set, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&raw mut set);
        for number in numbers(signals) {
            libc::sigaddset(&raw mut set, number);
        }
        (libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) == 0).then_some(before)
    }
}

/// Blocks these signals and no others in this thread.
pub(crate) fn set_mask(mask: &SignalMask) {
    // SAFETY: the mask was initialised by `block_signals`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// Restores the default actions of signals, bits as above; those of `ignored` are ignored.
pub(crate) fn restore_signals(signals: u64, ignored: u64) {
    for number in numbers(signals) {
        let action = if ignored & 1 << (number - 1) == 0 { libc::SIG_DFL } else { libc::SIG_IGN };
        // SAFETY: neither action is a function that would be called.
        unsafe { libc::signal(number, action) };
    }
}

fn numbers(signals: u64) -> impl Iterator<Item = libc::c_int> {
    (0..u64::BITS).filter(move |bit| signals & 1 << bit != 0).map(|bit| bit as libc::c_int + 1)
}

/// A [`Sink`] that calls a closure, which is used only while this is borrowed.
struct Taker<'a> {
    take: &'a mut dyn FnMut(&[u8]),
    /// The closure has panicked.
    is_broken: bool,
}

impl<'a> Taker<'a> {
    fn new(take: &'a mut dyn FnMut(&[u8])) -> Self {
        Taker { take, is_broken: false }
    }

    fn sink(&mut self) -> Sink {
        Sink { context: (&raw mut *self).cast(), put }
    }
}

unsafe extern "C" fn put(context: *mut c_void, bytes: *const u8, length: usize) {
    // SAFETY: `context` is that of a `Taker` that `sink` was called for; it outlives the call of the other module, in the same
    // thread, and is not used otherwise meanwhile. The other module passes a slice.
    let (taker, bytes) = unsafe { (&mut *context.cast::<Taker<'_>>(), std::slice::from_raw_parts(bytes, length)) };
    if !taker.is_broken {
        // A panic must not get into the other module.
        taker.is_broken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (taker.take)(bytes))).is_err();
    }
}

/// Bytes that another module passes in one piece, as text.
fn reason(call: impl FnOnce(Sink)) -> String {
    let mut bytes = Vec::new();
    call(Taker::new(&mut |piece| bytes.extend_from_slice(piece)).sink());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a capsule of another extension module holds; an error if it is of another version.
fn held<'a, T>(capsule: &'a Bound<'_, PyAny>, name: &CStr) -> PyResult<&'a T> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?;
    // SAFETY: only our extension modules make capsules of this name, which has the version of what they hold, and they hold it as
    // long as they exist; `capsule` is borrowed as long as the result.
    Ok(unsafe { pointer.cast::<T>().as_ref() })
}

fn check(found: Header, wanted: Header) -> PyResult<()> {
    if found == wanted {
        return Ok(());
    }
    Err(value_error("an extension module was built from another version of the source; build all of them again"))
}

/// Certificates of the extension module for TLS: one share of them.
#[derive(Debug)]
pub(crate) struct ForeignCertificates {
    table: &'static TlsTable,
    config: *const c_void,
}

// SAFETY: a share may be used by any thread, also at the same time: it is that of a `TlsConfig`, which is `Send` and `Sync`.
unsafe impl Send for ForeignCertificates {}
// SAFETY: see above.
unsafe impl Sync for ForeignCertificates {}

impl ForeignCertificates {
    /// A share of those in a capsule.
    pub(crate) fn of(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let SharedCertificates { table, config } = *held(capsule, CERTIFICATES)?;
        check(table.header, Header::of::<TlsTable>())?;
        // SAFETY: the capsule holds its own share meanwhile.
        unsafe { (table.config_clone)(config) };
        Ok(ForeignCertificates { table, config })
    }
}

impl Drop for ForeignCertificates {
    fn drop(&mut self) {
        // SAFETY: it is the share of `of`, and is not used any more.
        unsafe { (self.table.config_drop)(self.config) }
    }
}

impl Certificates for ForeignCertificates {
    fn session(&self) -> Result<Box<dyn Session>, String> {
        let (mut flags, mut session) = (0, std::ptr::null_mut());
        // SAFETY: it is a share, and there is room for one number.
        let error = reason(|error| session = unsafe { (self.table.session_new)(self.config, error, &raw mut flags) });
        match NonNull::new(session) {
            Some(session) => Ok(Box::new(ForeignSession { table: self.table, session, flags })),
            None => Err(error),
        }
    }

    fn replace(&self, written: &[u8]) -> Result<(), String> {
        let mut is_done = false;
        let (bytes, length) = (written.as_ptr(), written.len());
        // SAFETY: it is a share, and the bytes are there while the call lasts.
        let error = reason(|error| is_done = unsafe { (self.table.config_replace)(self.config, bytes, length, error) });
        if is_done { Ok(()) } else { Err(error) }
    }
}

/// A session of the extension module for TLS. It has a share of its certificates itself.
#[derive(Debug)]
struct ForeignSession {
    table: &'static TlsTable,
    session: NonNull<c_void>,
    /// Those after the last call that may have changed them.
    flags: u32,
}

// SAFETY: a session may be used by any thread, by one at a time: it is a `Session`, which is `Send`.
unsafe impl Send for ForeignSession {}

impl Drop for ForeignSession {
    fn drop(&mut self) {
        // SAFETY: it is that of `session_new`, and is not used any more.
        unsafe { (self.table.session_drop)(self.session.as_ptr()) }
    }
}

impl ForeignSession {
    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

impl Session for ForeignSession {
    fn is_handshaking(&self) -> bool {
        self.has(flags::HANDSHAKING)
    }

    fn is_untouched(&self) -> bool {
        self.has(flags::UNTOUCHED)
    }

    fn is_closed(&self) -> bool {
        self.has(flags::CLOSED)
    }

    fn has_failed(&self) -> bool {
        self.has(flags::FAILED)
    }

    fn has_control(&self) -> bool {
        self.has(flags::CONTROL)
    }

    fn has_streams(&self) -> bool {
        self.has(flags::STREAMS)
    }

    fn take_control(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        if self.has_control() {
            let mut take = |bytes: &[u8]| records.extend_from_slice(bytes);
            // SAFETY: the session is borrowed for this call, and the sink is there while it lasts.
            self.flags = unsafe { (self.table.take_control)(self.session.as_ptr(), Taker::new(&mut take).sink()) };
        }
        records
    }

    fn begin(&self, buffer: &mut [u8]) -> usize {
        // SAFETY: the buffer is borrowed for this call. So is the session, which is not `Sync`: no other thread uses it.
        let begun = unsafe { (self.table.begin)(self.session.as_ptr(), buffer.as_mut_ptr(), buffer.len()) };
        begun.min(buffer.len())
    }

    fn receive(&mut self, received: &mut [u8], take: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        let mut taker = Taker::new(take);
        let (bytes, length) = (received.as_mut_ptr(), received.len());
        let content = taker.sink();
        let error = reason(|error| {
            // SAFETY: session and buffer are borrowed for this call, and the sinks are there while it lasts.
            self.flags = unsafe { (self.table.receive)(self.session.as_ptr(), bytes, length, content, error) };
        });
        if taker.is_broken {
            self.flags |= flags::FAILED;
        }
        if self.has_failed() { Err(error) } else { Ok(()) }
    }

    fn encrypt(&mut self, content: &[u8], records: &mut [u8]) -> Result<usize, tls::Failed> {
        let (from, length, to, size) = (content.as_ptr(), content.len(), records.as_mut_ptr(), records.len());
        // SAFETY: session, content and room are borrowed for this call.
        let made = unsafe { (self.table.encrypt)(self.session.as_ptr(), from, length, to, size) };
        usize::try_from(made).ok().filter(|&made| made <= size).ok_or(tls::Failed)
    }

    fn close(&mut self) {
        // SAFETY: the session is borrowed for this call.
        self.flags = unsafe { (self.table.close)(self.session.as_ptr()) };
    }

    fn can_offload(&self) -> Option<Records> {
        // SAFETY: the session is borrowed for this call, and is not `Sync`: no other thread uses it.
        let number = unsafe { (self.table.can_offload)(self.session.as_ptr()) };
        usize::try_from(number).ok().and_then(|number| Records::ALL.get(number).copied())
    }

    fn offload(&mut self) -> Result<KernelKeys, tls::Failed> {
        let keys = KernelKeys::written(|room| {
            // SAFETY: session and room are borrowed for this call.
            let made = unsafe { (self.table.offload)(self.session.as_ptr(), room.as_mut_ptr(), room.len()) };
            usize::try_from(made).ok()
        });
        keys.ok_or(tls::Failed).inspect_err(|_| self.flags |= flags::FAILED)
    }

    fn variables(&self) -> tls::Variables {
        let (mut found, mut name) = (Vec::new(), None);
        let mut take = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            match name.take() {
                None => name = Some(text),
                Some(name) => found.push((name.into(), text)),
            }
        };
        // SAFETY: the session is borrowed for this call, and is not `Sync`; the sink is there while the call lasts.
        unsafe { (self.table.variables)(self.session.as_ptr(), Taker::new(&mut take).sink()) }
        found
    }
}

/// Encoders of the extension module for content codings.
#[derive(Debug)]
pub(crate) struct ForeignEncoders(CodingsTable);

impl ForeignEncoders {
    /// Those of a capsule. Modules are never unloaded, so that their functions stay.
    pub(crate) fn of(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let table: CodingsTable = *held(capsule, CODINGS)?;
        check(table.header, Header::of::<CodingsTable>())?;
        Ok(ForeignEncoders(table))
    }
}

impl Encoders for ForeignEncoders {
    fn encoder(&self, coding: ContentCoding, level: i32, body: Body) -> Result<Box<dyn Encoder>, Failed> {
        let place = ContentCoding::ALL.iter().position(|each| *each == coding).ok_or(Failed)?;
        let (body, length) = body_number(body);
        // SAFETY: these are numbers.
        let encoder = NonNull::new(unsafe { (self.0.new)(place, level, body, length) }).ok_or(Failed)?;
        Ok(Box::new(ForeignEncoder { table: self.0, encoder }))
    }
}

/// An encoder of the extension module for content codings.
#[derive(Debug)]
struct ForeignEncoder {
    table: CodingsTable,
    encoder: NonNull<c_void>,
}

// SAFETY: an encoder may be used by any thread, by one at a time: it is an `Encoder`, which is `Send`.
unsafe impl Send for ForeignEncoder {}

impl Drop for ForeignEncoder {
    fn drop(&mut self) {
        // SAFETY: it is that of `new`, and is not used any more.
        unsafe { (self.table.drop)(self.encoder.as_ptr()) }
    }
}

impl Encoder for ForeignEncoder {
    fn reset(&mut self, body: Body) -> Result<(), Failed> {
        let (body, length) = body_number(body);
        // SAFETY: the encoder is borrowed for this call.
        if unsafe { (self.table.reset)(self.encoder.as_ptr(), body, length) } { Ok(()) } else { Err(Failed) }
    }

    fn step(&mut self, input: &[u8], then: Flush, room: &mut [u8]) -> Result<Step, Failed> {
        let (from, length, to, size) = (input.as_ptr(), input.len(), room.as_mut_ptr(), room.len());
        let (then, mut step) = (flush_number(then), RawStep::default());
        // SAFETY: encoder, input and room are borrowed for this call, and there is room for what was done.
        match unsafe { (self.table.step)(self.encoder.as_ptr(), from, length, then, to, size, &raw mut step) } {
            true => Ok(Step { taken: step.taken, made: step.made, is_done: step.is_done }),
            false => Err(Failed),
        }
    }
}
