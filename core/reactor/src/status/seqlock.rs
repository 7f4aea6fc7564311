//! Seqlock: a sequence number by which readers in other processes detect an entry that is half written.
//!
//! The number of an entry is odd while the entry is written: a reader that finds the same even number before and after has not
//! seen parts of two entries. A worker that dies while it writes leaves an odd number, and that entry is lost.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// How often a reader tries to see an entry that is being written.
const TRIES: usize = 16;

/// Writes an entry by `set`. One thread at a time.
pub(super) fn write(sequence: &AtomicU64, set: impl FnOnce()) {
    // Odd already if a worker has died here.
    let odd = sequence.load(Ordering::Relaxed) | 1;
    sequence.store(odd, Ordering::Relaxed);
    fence(Ordering::Release);
    set();
    sequence.store(odd.wrapping_add(1), Ordering::Release);
}

/// Reads an entry by `get`; `None`: it was never written, or not completed.
pub(super) fn read<T>(sequence: &AtomicU64, get: impl Fn() -> T) -> Option<T> {
    for _ in 0..TRIES {
        match sequence.load(Ordering::Acquire) {
            0 => return None,
            before if before.is_multiple_of(2) => {
                let entry = get();
                fence(Ordering::Acquire);
                if sequence.load(Ordering::Relaxed) == before {
                    return Some(entry);
                }
            }
            _ => std::hint::spin_loop(),
        }
    }
    None
}

/// Whether an entry was written, and is complete.
pub(super) fn is_complete(sequence: &AtomicU64) -> bool {
    let sequence = sequence.load(Ordering::Acquire);
    sequence != 0 && sequence.is_multiple_of(2)
}

/// Whether an entry was ever written: pages that were not cost no memory.
pub(super) fn is_touched(sequence: &AtomicU64) -> bool {
    sequence.load(Ordering::Relaxed) != 0
}
