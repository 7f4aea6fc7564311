//! Cache of open descriptors and of small files' content, shared by all static roots of a process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::cached_file::CachedFile;
use crate::listing::Listings;

/// Bytes that an entry costs besides its name, fields and content.
const OVERHEAD: usize = 1024;

/// Cached open files. They are the larger ones, whose opening costs little beside sending them.
const MAX_DESCRIPTORS: usize = 64;

/// Seconds after which an unused file is closed; it may take twice as long. Until then, a file that is removed occupies the
/// disk, and its file system cannot be unmounted.
const MAX_IDLE: u64 = 10;

/// Bytes up to which files are read into memory.
const SMALL: u64 = 64 * 1024;

/// How many files were in the cache, and how many were not; in memory that other processes may read.
#[repr(C)]
#[derive(Debug, Default)]
pub struct CacheCounts {
    /// They were sent from there.
    pub hits: AtomicU64,
    /// They had to be opened.
    pub misses: AtomicU64,
}

/// Recently requested files: the content of small ones, descriptors of larger ones. Eviction is by second chance (the clock
/// algorithm). By default nothing is cached.
#[derive(Debug, Default)]
pub struct Cache {
    /// Bytes of memory that may be used.
    pub(crate) size: usize,
    index: Mutex<Index>,
    /// Listings have as many bytes again.
    listings: Mutex<Listings>,
    counts: Option<&'static CacheCounts>,
}

/// A part of the cache with names of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Partition(usize);

#[derive(Debug, Default)]
struct Index {
    /// For each partition, positions in `slots` by name.
    names: Vec<FxHashMap<Arc<[u8]>, usize>>,
    slots: Vec<Slot>,
    /// Position in `slots` at which the next eviction begins.
    hand: usize,
    weight: usize,
    descriptors: usize,
    /// Seconds since 1970 of the last [`Cache::tidy`] that looked at entries.
    tidied: u64,
}

#[derive(Debug)]
struct Slot {
    partition: Partition,
    name: Arc<[u8]>,
    entry: Arc<CachedFile>,
    weight: usize,
    descriptors: usize,
}

impl Cache {
    /// A cache of at most `size` bytes; 0 caches nothing, not even open files.
    pub fn new(size: u64) -> Self {
        Cache { size: usize::try_from(size).unwrap_or(usize::MAX), ..Cache::default() }
    }

    /// The same, and it counts there.
    pub fn counting(self, counts: Option<&'static CacheCounts>) -> Self {
        Cache { counts, ..self }
    }

    /// A file was found here.
    #[inline]
    pub(crate) fn add_hit(&self) {
        if let Some(counts) = self.counts {
            counts.hits.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A file was opened, because it was not here.
    pub(crate) fn add_miss(&self) {
        if let Some(counts) = self.counts {
            counts.misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn listings(&self) -> MutexGuard<'_, Listings> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an empty partition.
    pub(crate) fn add_partition(&self) -> Partition {
        let mut index = self.index();
        index.names.push(FxHashMap::default());
        Partition(index.names.len() - 1)
    }

    /// Bytes up to which a file is read into memory: at most an eighth of the cache.
    pub(crate) fn small(&self) -> u64 {
        if self.size == 0 { SMALL } else { SMALL.min(self.size as u64 / 8) }
    }

    /// Calls `make` with the entry of a name. Nothing is cloned, as this happens in every request.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        partition: Partition,
        name: &[u8],
        make: impl FnOnce(&Arc<CachedFile>) -> T,
    ) -> Option<T> {
        let index = self.index();
        let &at = index.names.get(partition.0)?.get(name)?;
        let slot = index.slots.get(at)?;
        slot.entry.set_used();
        Some(make(&slot.entry))
    }

    /// Adds an entry, if there is room for it.
    pub(crate) fn insert(&self, partition: Partition, name: &[u8], entry: &Arc<CachedFile>) {
        let weight = entry.weight() + 2 * name.len() + OVERHEAD;
        let descriptors = entry.descriptors();
        let mut index = self.index();
        let mut gone = vec![index.remove(partition, name)];
        if weight > self.size / 2 || descriptors > MAX_DESCRIPTORS {
            return;
        }
        while index.weight + weight > self.size || index.descriptors + descriptors > MAX_DESCRIPTORS {
            match index.evict() {
                None => break,
                slot => gone.push(slot),
            }
        }
        let name: Arc<[u8]> = Arc::from(name);
        let at = index.slots.len();
        if let Some(names) = index.names.get_mut(partition.0) {
            names.insert(Arc::clone(&name), at);
            index.weight += weight;
            index.descriptors += descriptors;
            index.slots.push(Slot { partition, name, entry: Arc::clone(entry), weight, descriptors });
        }
        // Files are closed and memory is freed without the lock.
        drop(index);
        drop(gone);
    }

    /// Closes files that were not requested lately, and drops outdated listings; to be called once a second while there are no
    /// requests, which do so themselves. Returns whether files are still open.
    pub fn tidy(&self, now: u64) -> bool {
        let outdated = self.listings().outdated(now);
        drop(outdated);
        let mut gone = Vec::new();
        let mut index = self.index();
        if index.tidied.abs_diff(now) < MAX_IDLE {
            return index.descriptors > 0;
        }
        index.tidied = now;
        let mut at = 0;
        while let Some(slot) = index.slots.get(at) {
            if slot.descriptors == 0 || slot.entry.take_used() {
                at += 1;
            } else {
                gone.push(index.take(at));
            }
        }
        let left = index.descriptors > 0;
        drop(index);
        drop(gone);
        left
    }

    /// Drops an entry that is no longer current.
    pub(crate) fn remove(&self, partition: Partition, name: &[u8]) {
        let gone = self.index().remove(partition, name);
        drop(gone);
    }
}

impl Index {
    fn remove(&mut self, partition: Partition, name: &[u8]) -> Option<Slot> {
        let &at = self.names.get(partition.0)?.get(name)?;
        Some(self.take(at))
    }

    /// Removes the next entry that was not used since the hand last passed it; the second round ends the search.
    fn evict(&mut self) -> Option<Slot> {
        while self.slots.get(self.hand)?.entry.take_used() {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        Some(self.take(self.hand))
    }

    /// Removes the slot at a position; the last slot moves there.
    fn take(&mut self, at: usize) -> Slot {
        let slot = self.slots.swap_remove(at);
        self.weight -= slot.weight;
        self.descriptors -= slot.descriptors;
        if let Some(names) = self.names.get_mut(slot.partition.0) {
            names.remove(&slot.name);
        }
        if let Some(moved) = self.slots.get(at) {
            let names = self.names.get_mut(moved.partition.0);
            if let Some(number) = names.and_then(|names| names.get_mut(&moved.name)) {
                *number = at;
            }
        }
        if self.hand >= self.slots.len() {
            self.hand = 0;
        }
        slot
    }
}
