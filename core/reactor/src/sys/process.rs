//! Process state: detects forks, and reads the limit of file descriptors.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::process::{Resource, getrlimit};

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
pub(crate) fn forks() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Descriptors that this process may have (`RLIMIT_NOFILE`).
pub(crate) fn max_descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
