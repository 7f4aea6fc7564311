//! Detects that this process was forked (fork(2)), and reads times of threads and the limit of file descriptors (getrlimit(2)).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::cell::Cell;

use rustix::process::{Resource, getpid, getrlimit};

/// How often this process is a fork of one that had reactors.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Whether this process may have children that hold connections open which we close.
static HAS_CHILDREN: AtomicBool = AtomicBool::new(false);

/// Notes that this process is about to fork.
pub fn note_child() {
    HAS_CHILDREN.store(true, Ordering::Relaxed);
}

/// Whether it ever has.
#[inline]
pub(crate) fn has_children() -> bool {
    HAS_CHILDREN.load(Ordering::Relaxed)
}

/// Notes that this process is a fork: reactors made before it belong to the parent, whose connections they share.
pub fn note_fork() {
    HAS_CHILDREN.store(false, Ordering::Relaxed);
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// How often this has happened, in this process and those it comes from.
#[inline]
pub fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// The process ID.
pub(crate) fn id() -> u32 {
    getpid().as_raw_nonzero().get().unsigned_abs()
}

/// The native ID of this thread, asked for once.
pub fn thread_id() -> u32 {
    thread_local! {
        /// And the number of forks before that: the thread that forks has another ID in the child.
        static KNOWN: Cell<(u64, u32)> = const { Cell::new((u64::MAX, 0)) };
    }
    let (forks, known) = (forks(), KNOWN.get());
    if known.0 == forks {
        return known.1;
    }
    let id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    KNOWN.set((forks, id));
    id
}

/// Microseconds in which a thread of this process ran, or waited for a processor (proc_pid_schedstat(5)). None: `/proc` is not
/// there, or the kernel does not count that.
pub(crate) fn wanted_time(thread: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let mut nanoseconds = text.split_ascii_whitespace().map_while(|number| number.parse::<u64>().ok());
    Some(nanoseconds.next()?.saturating_add(nanoseconds.next()?) / 1_000)
}

/// Descriptors that this process may have (`RLIMIT_NOFILE`).
pub(crate) fn max_descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
