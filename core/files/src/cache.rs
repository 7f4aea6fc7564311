//! Entries that are kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::entry::Entry;
use crate::listing::Listings;

/// What an entry costs besides its name and what is in it.
const OVERHEAD: usize = 1024;

/// Open files that are kept. They are the larger ones, where opening costs little beside what is sent.
const MOST_DESCRIPTORS: usize = 64;

/// Seconds that a file is kept open without being asked for, at most twice as many. Until it is closed, a file that is removed needs
/// room on the disk, and what it is on cannot be unmounted.
const LONGEST_OPEN: u64 = 10;

/// Files that are at most so long are read into memory.
const SMALL: u64 = 64 * 1024;

/// What was asked for lately, of all sites of a process: contents of small files, descriptors of larger ones. What does not
/// fit pushes out what nobody has asked for again since the last time round (the clock, or second chance). By default nothing is kept.
#[derive(Debug, Default)]
pub struct Cache {
    most: usize,
    shelf: Mutex<Shelf>,
    /// Beside the entries, and within as many bytes once more.
    listings: Mutex<Listings>,
}

/// A part of the cache that belongs to one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place(usize);

#[derive(Debug, Default)]
struct Shelf {
    /// For each place, where in `books` a name is.
    names: Vec<FxHashMap<Arc<[u8]>, usize>>,
    books: Vec<Book>,
    /// Where in `books` it is looked next for what can go.
    hand: usize,
    weight: usize,
    descriptors: usize,
    /// Seconds since 1970 when it was last tidied up.
    tidied: u64,
}

#[derive(Debug)]
struct Book {
    place: Place,
    name: Arc<[u8]>,
    entry: Arc<Entry>,
    weight: usize,
    descriptors: usize,
}

impl Cache {
    /// A cache that uses `most` octets of memory; 0 keeps nothing, open files included.
    pub fn new(most: u64) -> Self {
        Cache { most: usize::try_from(most).unwrap_or(usize::MAX), ..Cache::default() }
    }

    /// Bytes of memory that may be used.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    pub(crate) fn listings(&self) -> MutexGuard<'_, Listings> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new place for the files of a site.
    pub(crate) fn place(&self) -> Place {
        let mut shelf = self.shelf();
        shelf.names.push(FxHashMap::default());
        Place(shelf.names.len() - 1)
    }

    /// The length up to which a file is read: no single one takes more than an eighth of the whole.
    pub(crate) fn small(&self) -> u64 {
        if self.most == 0 { SMALL } else { SMALL.min(self.most as u64 / 8) }
    }

    /// The entry with a name, and it is made into something else while nothing is cloned: this is asked for in every request.
    #[inline]
    pub(crate) fn with<T>(&self, place: Place, name: &[u8], make: impl FnOnce(&Arc<Entry>) -> T) -> Option<T> {
        let shelf = self.shelf();
        let &at = shelf.names.get(place.0)?.get(name)?;
        let book = shelf.books.get(at)?;
        book.entry.set_used();
        Some(make(&book.entry))
    }

    /// Keeps an entry, if there is room for it.
    pub(crate) fn keep(&self, place: Place, name: &[u8], entry: &Arc<Entry>) {
        let weight = entry.weight() + 2 * name.len() + OVERHEAD;
        let descriptors = entry.descriptors();
        let mut shelf = self.shelf();
        let mut gone = vec![shelf.remove(place, name)];
        if weight > self.most / 2 || descriptors > MOST_DESCRIPTORS {
            return;
        }
        while shelf.weight + weight > self.most || shelf.descriptors + descriptors > MOST_DESCRIPTORS {
            match shelf.evict() {
                None => break,
                book => gone.push(book),
            }
        }
        let name: Arc<[u8]> = Arc::from(name);
        let at = shelf.books.len();
        if let Some(names) = shelf.names.get_mut(place.0) {
            names.insert(Arc::clone(&name), at);
            shelf.weight += weight;
            shelf.descriptors += descriptors;
            shelf.books.push(Book { place, name, entry: Arc::clone(entry), weight, descriptors });
        }
        // Files are closed and memory is freed when nobody waits for it any more.
        drop(shelf);
        drop(gone);
    }

    /// Closes files that nobody has asked for in the last seconds, and drops listings; often enough is once in a second. Sites
    /// that are asked do it themselves. `true`: some files are still open.
    pub fn tidy(&self, now: u64) -> bool {
        let outdated = self.listings().outdated(now);
        drop(outdated);
        let mut gone = Vec::new();
        let mut shelf = self.shelf();
        if shelf.tidied.abs_diff(now) < LONGEST_OPEN {
            return shelf.descriptors > 0;
        }
        shelf.tidied = now;
        let mut at = 0;
        while let Some(book) = shelf.books.get(at) {
            if book.descriptors == 0 || book.entry.take_used() {
                at += 1;
                continue;
            }
            gone.push(shelf.take(at));
        }
        let left = shelf.descriptors > 0;
        drop(shelf);
        drop(gone);
        left
    }

    /// Drops an entry that is no longer true.
    pub(crate) fn forget(&self, place: Place, name: &[u8]) {
        let gone = self.shelf().remove(place, name);
        drop(gone);
    }
}

impl Shelf {
    fn remove(&mut self, place: Place, name: &[u8]) -> Option<Book> {
        let &at = self.names.get(place.0)?.get(name)?;
        Some(self.take(at))
    }

    /// Takes one away that nobody has asked for since the hand last came by. Ends when it has come by twice at the latest;
    /// there is at least one.
    fn evict(&mut self) -> Option<Book> {
        loop {
            let book = self.books.get(self.hand)?;
            if book.entry.take_used() {
                self.hand = (self.hand + 1) % self.books.len();
                continue;
            }
            return Some(self.take(self.hand));
        }
    }

    /// Takes one off the shelf. The last one takes its place.
    fn take(&mut self, at: usize) -> Book {
        let book = self.books.swap_remove(at);
        self.weight -= book.weight;
        self.descriptors -= book.descriptors;
        if let Some(names) = self.names.get_mut(book.place.0) {
            names.remove(&book.name);
        }
        if let Some(moved) = self.books.get(at) {
            let names = self.names.get_mut(moved.place.0);
            if let Some(number) = names.and_then(|names| names.get_mut(&moved.name)) {
                *number = at;
            }
        }
        if self.hand >= self.books.len() {
            self.hand = 0;
        }
        book
    }
}
