//! The last requests that the server itself has refused, in memory that outlives the worker.

use std::sync::atomic::{AtomicU64, Ordering};

use super::seqlock;
use super::text::Text;

/// Entries.
const LAST: usize = 20;

/// A request that the server itself has refused. Texts are cut to fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The running number in its worker.
    pub number: u64,
    /// The worker's process.
    pub pid: u32,
    /// The status of the response.
    pub status: u16,
    /// When, in microseconds of the monotonic clock; 0: this is no refusal.
    pub when: u64,
    /// The reason, as in the error log.
    pub reason: Vec<u8>,
    /// Address and port of the client; empty: it has none.
    pub client: Vec<u8>,
    /// The request ID; empty: it has none.
    pub id: Vec<u8>,
    /// The request line as far as it has come, escaped.
    pub line: Vec<u8>,
}

/// [`Refusal`] in shared memory.
#[repr(C)]
#[derive(Debug, Default)]
struct SharedRefusal {
    number: AtomicU64,
    pid: AtomicU64,
    status: AtomicU64,
    when: AtomicU64,
    reason: Text<12>,
    client: Text<8>,
    id: Text<16>,
    line: Text<31>,
}

impl SharedRefusal {
    fn set(&self, refusal: &Refusal) {
        let Refusal { number, pid, status, when, reason, client, id, line } = refusal;
        self.number.store(*number, Ordering::Relaxed);
        self.pid.store((*pid).into(), Ordering::Relaxed);
        self.status.store((*status).into(), Ordering::Relaxed);
        self.when.store(*when, Ordering::Relaxed);
        self.reason.set(reason);
        self.client.set(client);
        self.id.set(id);
        self.line.set(line);
    }

    fn get(&self) -> Refusal {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Refusal {
            number: of(&self.number),
            pid: of(&self.pid) as u32,
            status: of(&self.status) as u16,
            when: of(&self.when),
            reason: self.reason.get(),
            client: self.client.get(),
            id: self.id.get(),
            line: self.line.get(),
        }
    }
}

/// All entries. The methods that write may be called by one thread at a time.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Refusals so far.
    written: AtomicU64,
    /// Of each entry; see [`seqlock`].
    sequences: [AtomicU64; LAST],
    entries: [SharedRefusal; LAST],
}

impl Refusals {
    /// Notes a refusal in the place of the oldest.
    #[cold]
    pub(super) fn add(&self, refusal: &Refusal) {
        let before = self.written.load(Ordering::Relaxed);
        self.write((before % LAST as u64) as usize, refusal);
        self.written.store(before.wrapping_add(1), Ordering::Relaxed);
    }

    fn write(&self, place: usize, refusal: &Refusal) {
        seqlock::write(&self.sequences[place], || self.entries[place].set(refusal));
    }

    /// All of them, the newest first.
    pub(super) fn all(&self) -> Vec<Refusal> {
        let entries = self.sequences.iter().zip(&self.entries);
        let mut found: Vec<_> = entries
            .filter_map(|(number, entry)| seqlock::read(number, || entry.get()))
            .filter(|refusal| refusal.when != 0)
            .collect();
        found.sort_by_key(|refusal| std::cmp::Reverse(refusal.when));
        found
    }

    /// Moves all of `other` here. No other process writes there any more.
    pub(super) fn take(&self, other: &Self) {
        let mut all = [self.all(), other.all()].concat();
        all.sort_by_key(|refusal| std::cmp::Reverse(refusal.when));
        all.truncate(LAST);
        self.clear();
        all.iter().rev().for_each(|refusal| self.add(refusal));
        other.clear();
    }

    /// Forgets all.
    pub(super) fn clear(&self) {
        self.written.store(0, Ordering::Relaxed);
        for place in (0..LAST).filter(|&place| seqlock::is_touched(&self.sequences[place])) {
            self.write(place, &Refusal::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(number: u64, when: u64) -> Refusal {
        let line = b"GET /\\x00".to_vec();
        Refusal { number, pid: 4_711, status: 400, when, reason: b"no".to_vec(), line, ..Refusal::default() }
    }

    fn numbers(refusals: &Refusals) -> Vec<u64> {
        refusals.all().iter().map(|refusal| refusal.number).collect()
    }

    #[test]
    fn the_last_are_kept() {
        let refusals = Refusals::default();
        for number in 1..=LAST as u64 + 5 {
            refusals.add(&refusal(number, number));
        }
        assert_eq!(numbers(&refusals), (6..=LAST as u64 + 5).rev().collect::<Vec<_>>());
        let long = Refusal { reason: vec![b'r'; 200], client: vec![b'c'; 99], ..refusal(99, 99) };
        refusals.add(&long);
        let found = &refusals.all()[0];
        assert_eq!((found.reason.len(), found.client.len(), &found.line), (96, 64, &long.line));
        refusals.clear();
        assert!(refusals.all().is_empty());
    }

    #[test]
    fn they_are_moved() {
        let (one, other) = (Refusals::default(), Refusals::default());
        for number in 1..=LAST as u64 {
            one.add(&refusal(number, 2 * number));
            other.add(&refusal(100 + number, 2 * number + 1));
        }
        one.take(&other);
        assert!(other.all().is_empty());
        assert_eq!((&numbers(&one)[..3], one.all().len()), (&[120, 20, 119][..], LAST));
        one.add(&refusal(7, 1_000));
        assert_eq!((numbers(&one)[0], one.all().len()), (7, LAST));
    }
}
