//! The slowest requests of the last hour and the last errors, in memory that outlives the worker.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::seqlock;
use super::text::Text;

/// Entries of the slowest requests.
const SLOWEST: usize = 20;
/// Entries of the last errors.
const LAST: usize = 20;
/// All entries: the slowest requests, then the errors.
const ENTRIES: usize = SLOWEST + LAST;
/// Microseconds after which a slow request is forgotten.
const KEPT: u64 = 3_600_000_000;

/// A request that has ended. Times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// The running number in its worker.
    pub number: u64,
    /// The worker's process.
    pub pid: u32,
    /// The status of the response.
    pub status: u16,
    /// When the kernel had all of the response, or it was given up; of the monotonic clock.
    pub ended: u64,
    /// From the complete request to the call of the application.
    pub waited: u64,
    /// In the application.
    pub application: u64,
    /// From the complete response to `ended`.
    pub sending: u64,
    /// Bytes of the response that the kernel has taken.
    pub sent: u64,
    /// The request ID; empty: it has none.
    pub id: Vec<u8>,
    /// Method and target, escaped and cut to fit; empty: they are not known.
    pub line: Vec<u8>,
}

impl Finished {
    /// How long the request has taken.
    pub fn total(&self) -> u64 {
        // Any numbers may stand in shared memory.
        self.waited.saturating_add(self.application).saturating_add(self.sending)
    }
}

/// [`Finished`] in shared memory.
#[repr(C)]
#[derive(Debug, Default)]
struct SharedFinished {
    number: AtomicU64,
    pid: AtomicU64,
    status: AtomicU64,
    ended: AtomicU64,
    waited: AtomicU64,
    application: AtomicU64,
    sending: AtomicU64,
    sent: AtomicU64,
    id: Text<16>,
    line: Text<31>,
}

impl SharedFinished {
    fn set(&self, finished: &Finished) {
        let Finished { number, pid, status, ended, waited, application, sending, sent, id, line } = finished;
        self.number.store(*number, Ordering::Relaxed);
        self.pid.store((*pid).into(), Ordering::Relaxed);
        self.status.store((*status).into(), Ordering::Relaxed);
        self.ended.store(*ended, Ordering::Relaxed);
        self.waited.store(*waited, Ordering::Relaxed);
        self.application.store(*application, Ordering::Relaxed);
        self.sending.store(*sending, Ordering::Relaxed);
        self.sent.store(*sent, Ordering::Relaxed);
        self.id.set(id);
        self.line.set(line);
    }

    fn get(&self) -> Finished {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Finished {
            number: of(&self.number),
            pid: of(&self.pid) as u32,
            status: of(&self.status) as u16,
            ended: of(&self.ended),
            waited: of(&self.waited),
            application: of(&self.application),
            sending: of(&self.sending),
            sent: of(&self.sent),
            id: self.id.get(),
            line: self.line.get(),
        }
    }

    /// [`Finished::total`] and [`Finished::ended`].
    fn times(&self) -> (u64, u64) {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let total = of(&self.waited).saturating_add(of(&self.application)).saturating_add(of(&self.sending));
        (total, of(&self.ended))
    }
}

/// All entries.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Entries([SharedFinished; ENTRIES]);

impl Default for Entries {
    fn default() -> Self {
        Entries(std::array::from_fn(|_| SharedFinished::default()))
    }
}

/// What the writer looks at for each request; apart from the entries, whose pages few workers need.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Index {
    /// A request that has taken no longer than this is not among the slowest…
    floor: AtomicU64,
    /// …until then.
    until: AtomicU64,
    /// Errors so far.
    written: AtomicU64,
    /// Of each entry; see [`seqlock`].
    sequences: [AtomicU64; ENTRIES],
}

impl Default for Index {
    fn default() -> Self {
        let sequences = std::array::from_fn(|_| AtomicU64::new(0));
        Index { floor: AtomicU64::new(0), until: AtomicU64::new(0), written: Default::default(), sequences }
    }
}

/// Both of them. The methods that write may be called by one thread at a time.
#[derive(Clone, Copy)]
pub(super) struct Records<'a> {
    pub(super) index: &'a Index,
    pub(super) entries: &'a Entries,
}

impl Records<'_> {
    /// Whether a request that has taken so long, and ends now, is among the slowest.
    #[inline]
    pub(super) fn is_slow(self, total: u64, now: u64) -> bool {
        total > self.index.floor.load(Ordering::Relaxed) || now > self.index.until.load(Ordering::Relaxed)
    }

    /// Notes a request among the slowest, if it is one of them. It replaces one that is forgotten, or the fastest.
    #[cold]
    pub(super) fn add_slow(self, finished: &Finished) {
        let key = |place: usize| match self.has(place).then(|| self.entries.0[place].times()) {
            Some((total, ended)) if ended.saturating_add(KEPT) > finished.ended => (total.max(1), ended),
            _ => (0, 0),
        };
        let Some((fastest, place)) = (0..SLOWEST).map(|place| (key(place).0, place)).min() else { return };
        if fastest < finished.total() || fastest == 0 {
            self.write(place, finished);
        }
        let keys = || (0..SLOWEST).map(key);
        self.index.floor.store(keys().map(|(total, _)| total).min().unwrap_or(0), Ordering::Relaxed);
        let oldest = keys().map(|(_, ended)| ended).min().unwrap_or(0);
        self.index.until.store(oldest.saturating_add(KEPT), Ordering::Relaxed);
    }

    /// Notes a response with a status of 500 or above.
    #[cold]
    pub(super) fn add_error(self, finished: &Finished) {
        let before = self.index.written.load(Ordering::Relaxed);
        self.write(SLOWEST + (before % LAST as u64) as usize, finished);
        self.index.written.store(before.wrapping_add(1), Ordering::Relaxed);
    }

    fn write(self, place: usize, finished: &Finished) {
        seqlock::write(&self.index.sequences[place], || self.entries.0[place].set(finished));
    }

    /// Whether an entry is complete, and was not forgotten.
    fn has(self, place: usize) -> bool {
        seqlock::is_complete(&self.index.sequences[place]) && self.entries.0[place].ended.load(Ordering::Relaxed) != 0
    }

    fn read(self, place: usize) -> Option<Finished> {
        let finished = seqlock::read(&self.index.sequences[place], || self.entries.0[place].get())?;
        (finished.ended != 0).then_some(finished)
    }

    /// The slowest requests of the last hour, the slowest first. `now`: microseconds of the monotonic clock.
    pub(super) fn slowest(self, now: u64) -> Vec<Finished> {
        let mut found: Vec<_> = (0..SLOWEST)
            .filter_map(|place| self.read(place))
            .filter(|finished| finished.ended.saturating_add(KEPT) > now)
            .collect();
        found.sort_unstable_by_key(|finished| std::cmp::Reverse(finished.total()));
        found
    }

    /// The last responses with a status of 500 and above, the newest first.
    pub(super) fn errors(self) -> Vec<Finished> {
        let mut found: Vec<_> = (SLOWEST..ENTRIES).filter_map(|place| self.read(place)).collect();
        found.sort_by_key(|finished| std::cmp::Reverse(finished.ended));
        found
    }

    /// Moves all entries of `other` here. No other process writes there any more.
    pub(super) fn take(self, other: Self) {
        (0..SLOWEST).filter_map(|place| other.read(place)).for_each(|finished| self.add_slow(&finished));
        // Errors are kept in the order of their time.
        let mut errors = [self.errors(), other.errors()].concat();
        errors.sort_by_key(|finished| finished.ended);
        let newest = errors.len().saturating_sub(LAST);
        self.forget(SLOWEST..ENTRIES);
        errors[newest..].iter().for_each(|finished| self.add_error(finished));
        other.clear();
    }

    /// Forgets all entries.
    pub(super) fn clear(self) {
        let Index { floor, until, written, .. } = self.index;
        [floor, until, written].into_iter().for_each(|number| number.store(0, Ordering::Relaxed));
        self.forget(0..ENTRIES);
    }

    fn forget(self, places: Range<usize>) {
        for place in places {
            if seqlock::is_touched(&self.index.sequences[place]) {
                self.write(place, &Finished::default());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn finished(number: u64, ended: u64, application: u64) -> Finished {
        Finished { number, pid: 4_711, status: 200, ended, application, line: b"GET /".to_vec(), ..Finished::default() }
    }

    /// Memory of its own for each, for as long as the test runs.
    fn records() -> Records<'static> {
        Records { index: Box::leak(Box::default()), entries: Box::leak(Box::default()) }
    }

    fn numbers(found: &[Finished]) -> Vec<u64> {
        found.iter().map(|finished| finished.number).collect()
    }

    #[test]
    fn the_slowest_requests_are_kept_for_an_hour() {
        let records = records();
        assert!(records.slowest(1).is_empty());
        // From 1 to 40, not in order.
        for number in (1..=40).map(|number| number * 7 % 41) {
            let one = finished(number, 1_000 + number, number * 10);
            if records.is_slow(one.total(), one.ended) {
                records.add_slow(&one);
            }
        }
        assert_eq!(numbers(&records.slowest(2_000)), (21..=40).rev().collect::<Vec<_>>());
        assert_eq!(records.slowest(2_000)[0], finished(40, 1_040, 400));
        assert!(!records.is_slow(210, 2_000) && records.is_slow(211, 2_000));
        // An hour later: the oldest of them is number 21.
        assert!(!records.is_slow(1, 1_021 + KEPT) && records.is_slow(1, 1_022 + KEPT));
        assert_eq!(numbers(&records.slowest(1_021 + KEPT)), (22..=40).rev().collect::<Vec<_>>());
        records.add_slow(&finished(50, 1_022 + KEPT, 1));
        assert_eq!(numbers(&records.slowest(1_022 + KEPT)), [(23..=40).rev().collect(), vec![50]].concat());
        records.clear();
        assert!(records.slowest(0).is_empty() && records.is_slow(1, 1));
    }

    #[test]
    fn the_last_errors_are_kept() {
        let records = records();
        for number in 1..=LAST as u64 + 5 {
            records.add_error(&finished(number, number, 0));
        }
        assert_eq!(numbers(&records.errors()), (6..=LAST as u64 + 5).rev().collect::<Vec<_>>());
    }

    #[test]
    fn entries_are_moved() {
        let (one, other) = (records(), records());
        for number in 1..=LAST as u64 {
            one.add_error(&finished(number, 2 * number, 0));
            one.add_slow(&finished(number, number, number));
            other.add_error(&finished(100 + number, 2 * number + 1, 0));
            other.add_slow(&finished(100 + number, number, 10 + number));
        }
        // Fewer than there is room for are not kept twice.
        let few = records();
        few.add_error(&finished(7, 7, 0));
        few.take(records());
        assert_eq!(numbers(&few.errors()), [7]);
        one.take(other);
        assert!(other.errors().is_empty() && other.slowest(0).is_empty());
        assert_eq!(numbers(&one.errors())[..4], [120, 20, 119, 19]);
        assert_eq!(one.errors().len(), LAST);
        assert_eq!(numbers(&one.slowest(0))[..3], [120, 119, 118]);
        assert!(one.slowest(0).iter().all(|finished| finished.total() > 10));
    }

    #[test]
    fn an_entry_that_was_not_completed_is_lost() {
        let records = records();
        records.add_error(&finished(1, 1, 1));
        records.add_error(&finished(2, 2, 2));
        records.index.sequences[SLOWEST].fetch_add(1, Ordering::Relaxed);
        assert_eq!(numbers(&records.errors()), [2]);
        records.write(SLOWEST, &finished(3, 3, 3));
        assert_eq!(numbers(&records.errors()), [3, 2]);
    }

    #[test]
    fn no_entry_is_torn() {
        let (records, stops) = (records(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0;
                while !stops.load(Ordering::Relaxed) {
                    number += 1;
                    let line = vec![b'a' + (number % 26) as u8; 1 + (number % 240) as usize];
                    records.add_error(&Finished { sent: number, line, ..finished(number, number, number) });
                }
            });
            let mut seen = 0;
            while seen < 2_000 {
                for one in records.errors() {
                    seen += 1;
                    let line = vec![b'a' + (one.number % 26) as u8; 1 + (one.number % 240) as usize];
                    assert_eq!((one.sent, one.ended, &one.line), (one.number, one.number, &line));
                }
            }
            stops.store(true, Ordering::Relaxed);
        });
    }
}
