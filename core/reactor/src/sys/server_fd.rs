//! Descriptors of the server, which a process that the application forks does not keep.
//!
//! A socket listens, and a peer sees no end of file, as long as any process has it open. So their numbers are noted, and the
//! extension has each of them refer to something harmless in such a process (`core/python/src/forks.rs`).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Descriptors whose numbers are noted: as many as a process may have by the kernel's default (`fs.nr_open`). Pages that no
/// number needs take no memory.
const MOST: usize = 1 << 20;

/// One bit for each number. Not behind a lock: a process may be forked while another thread holds it.
static NOTED: [AtomicU64; MOST / 64] = [const { AtomicU64::new(0) }; MOST / 64];
/// Words that were ever used.
static WORDS: AtomicUsize = AtomicUsize::new(0);

fn place(fd: RawFd) -> Option<(usize, u64)> {
    let number = usize::try_from(fd).ok().filter(|&number| number < MOST)?;
    Some((number / 64, 1 << (number % 64)))
}

/// Notes an open descriptor of the server.
pub fn note_descriptor(fd: RawFd) {
    if let Some((word, bit)) = place(fd) {
        NOTED[word].fetch_or(bit, Ordering::Relaxed);
        if WORDS.load(Ordering::Relaxed) <= word {
            WORDS.fetch_max(word + 1, Ordering::Relaxed);
        }
    }
}

/// Forgets a descriptor, before it is closed or given away.
pub fn forget_descriptor(fd: RawFd) {
    if let Some((word, bit)) = place(fd) {
        NOTED[word].fetch_and(!bit, Ordering::Relaxed);
    }
}

/// Passes each noted descriptor to `act`, and forgets it. Neither allocates nor takes a lock.
pub fn take_descriptors(mut act: impl FnMut(RawFd)) {
    for (word, bits) in NOTED.iter().enumerate().take(WORDS.load(Ordering::Relaxed)) {
        // Pages that were never used stay so.
        let mut left = match bits.load(Ordering::Relaxed) {
            0 => 0,
            _ => bits.swap(0, Ordering::Relaxed),
        };
        while left != 0 {
            act((word * 64) as RawFd + left.trailing_zeros() as RawFd);
            left &= left - 1;
        }
    }
}

/// A descriptor that is noted as long as it is open.
#[derive(Debug)]
pub struct ServerFd(OwnedFd);

impl From<OwnedFd> for ServerFd {
    fn from(fd: OwnedFd) -> Self {
        note_descriptor(fd.as_raw_fd());
        ServerFd(fd)
    }
}

impl AsFd for ServerFd {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for ServerFd {
    fn drop(&mut self) {
        forget_descriptor(self.0.as_raw_fd());
    }
}
