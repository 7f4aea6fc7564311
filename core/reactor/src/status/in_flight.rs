//! Requests in flight, in memory that outlives the worker.
//!
//! The number of the request in a slot is written last and cleared first: a slot with a number is complete whenever the worker
//! dies. A reader that finds the same number before and after it has read the rest has not seen parts of two requests,
//! because a number is never used again.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::text::Text;

/// Requests that can be noted at the same time.
pub const SLOTS: usize = u64::BITS as usize;

/// In [`Slot::thread`]: the application has the connection of the request…
const UPGRADED: u64 = 1 << 32;
/// …and the request is not in flight any more.
const LEFT: u64 = 1 << 33;
/// Its response streams, and another thread serves in the place of its own.
const STREAMING: u64 = 1 << 34;

/// What is noted of a request besides its number.
#[repr(C)]
#[derive(Debug, Default)]
struct Slot {
    /// When the application got it, in microseconds of [`crate::sys::clock::precise_us`]; 0: not yet, or no times are taken.
    begun: AtomicU64,
    /// The native ID of its thread, 0 if it is not known, [`UPGRADED`], [`LEFT`] and [`STREAMING`].
    thread: AtomicU64,
    /// The request ID.
    id: Text<16>,
    /// Method and target as received.
    line: Text<31>,
}

/// A request in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlightRequest {
    /// Its running number in the reactor.
    pub number: u64,
    /// Method and target as received, cut to fit.
    pub line: Vec<u8>,
    /// When the application got it, in microseconds of the monotonic clock; 0: that is not known.
    pub begun: u64,
    /// The native ID of its thread; 0: that is not known.
    pub thread: u32,
    /// The request ID; empty: it has none.
    pub id: Vec<u8>,
    /// The application has its connection, to speak another protocol.
    pub is_upgraded: bool,
    /// For that reason it is not in flight any more.
    pub has_left: bool,
    /// Its response streams, and its thread does not count among those of the pool.
    pub is_streaming: bool,
}

/// All slots, apart from the numbers of their requests.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Slots([Slot; SLOTS]);

impl Default for Slots {
    fn default() -> Self {
        Slots(std::array::from_fn(|_| Slot::default()))
    }
}

/// The number of the request in each slot; 0: it is free.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Numbers([AtomicU64; SLOTS]);

impl Default for Numbers {
    fn default() -> Self {
        Numbers(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Both of them.
#[derive(Clone, Copy)]
pub(super) struct InFlight<'a> {
    pub(super) numbers: &'a Numbers,
    pub(super) slots: &'a Slots,
}

impl<'a> InFlight<'a> {
    /// Notes a request in a slot, in which it replaces another one. `id`: empty if it has none.
    #[inline]
    pub(super) fn enter(self, slot: usize, number: u64, line: &[u8], id: &[u8]) {
        let (Some(known), Some(slot)) = (self.numbers.0.get(slot), self.slots.0.get(slot)) else { return };
        known.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        slot.begun.store(0, Ordering::Relaxed);
        slot.thread.store(0, Ordering::Relaxed);
        if id.is_empty() {
            slot.id.clear()
        } else {
            slot.id.set(id)
        }
        slot.line.set(line);
        known.store(number, Ordering::Release);
    }

    /// Notes when a request began, and its thread.
    #[inline]
    pub(super) fn begin(self, slot: usize, number: u64, begun: u64, thread: u32) {
        if let Some(slot) = self.slot_of(slot, number) {
            slot.thread.store(thread.into(), Ordering::Relaxed);
            slot.begun.store(begun, Ordering::Relaxed);
        }
    }

    /// Notes that the application has got the connection of a request; `has_left`: the request is not in flight any more.
    pub(super) fn set_upgraded(self, slot: usize, number: u64, has_left: bool) {
        if let Some(slot) = self.slot_of(slot, number) {
            slot.thread.fetch_or(if has_left { UPGRADED | LEFT } else { UPGRADED }, Ordering::Relaxed);
        }
    }

    /// Notes that another thread serves in the place of that of a request, whose response streams.
    pub(super) fn set_streaming(self, number: u64) {
        if let Some(slot) = (0..SLOTS).find_map(|slot| self.slot_of(slot, number)) {
            slot.thread.fetch_or(STREAMING, Ordering::Relaxed);
        }
    }

    /// Removes a request. `false`: another one has replaced it in its slot.
    #[inline]
    pub(super) fn remove(self, slot: usize, number: u64) -> bool {
        let known = self.numbers.0.get(slot);
        known.is_some_and(|known| known.compare_exchange(number, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok())
    }

    /// The slot, if it still has this request.
    #[inline]
    fn slot_of(self, slot: usize, number: u64) -> Option<&'a Slot> {
        (self.numbers.0.get(slot)?.load(Ordering::Relaxed) == number).then(|| self.slots.0.get(slot))?
    }

    /// All requests, the newest first.
    pub(super) fn all(self) -> Vec<InFlightRequest> {
        let mut found: Vec<_> = (0..SLOTS).filter_map(|slot| self.read(slot)).collect();
        found.sort_unstable_by_key(|request| std::cmp::Reverse(request.number));
        found
    }

    /// The request with the lowest number, upgraded connections apart.
    pub(super) fn oldest(self) -> Option<InFlightRequest> {
        let number = |slot: &usize| self.numbers.0[*slot].load(Ordering::Relaxed);
        let is_meant =
            |slot: &usize| number(slot) != 0 && self.slots.0[*slot].thread.load(Ordering::Relaxed) & UPGRADED == 0;
        self.read((0..SLOTS).filter(is_meant).min_by_key(number)?)
    }

    fn read(self, slot: usize) -> Option<InFlightRequest> {
        let known = &self.numbers.0[slot];
        let number = known.load(Ordering::Acquire);
        if number == 0 {
            return None;
        }
        let Slot { begun, thread, id, line } = &self.slots.0[slot];
        let thread = thread.load(Ordering::Relaxed);
        let request = InFlightRequest {
            number,
            line: line.get(),
            begun: begun.load(Ordering::Relaxed),
            thread: thread as u32,
            id: id.get(),
            is_upgraded: thread & UPGRADED != 0,
            has_left: thread & LEFT != 0,
            is_streaming: thread & STREAMING != 0,
        };
        fence(Ordering::Acquire);
        // Otherwise it has ended meanwhile.
        (known.load(Ordering::Relaxed) == number).then_some(request)
    }

    /// Forgets all of them.
    pub(super) fn clear(self) {
        self.numbers.0.iter().for_each(|number| number.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn requests_in_flight() {
        let (numbers, slots) = (Numbers::default(), Slots::default());
        let in_flight = InFlight { numbers: &numbers, slots: &slots };
        in_flight.enter(3, 7, b"GET /x", b"abc");
        in_flight.begin(3, 7, 1_000, 4_711);
        in_flight.enter(0, 8, &[b'y'; 300], b"");
        // Of a request that has ended.
        in_flight.begin(0, 6, 1, 1);
        let [newest, oldest] = &in_flight.all()[..] else { panic!("not two") };
        assert_eq!((newest.number, newest.line.len(), newest.begun, newest.thread), (8, 248, 0, 0));
        let expected = InFlightRequest {
            number: 7,
            line: b"GET /x".to_vec(),
            begun: 1_000,
            thread: 4_711,
            id: b"abc".to_vec(),
            is_upgraded: false,
            has_left: false,
            is_streaming: false,
        };
        assert_eq!((oldest, in_flight.oldest()), (&expected, Some(expected.clone())));
        in_flight.set_streaming(8);
        assert_eq!(in_flight.all().iter().map(|request| request.is_streaming).collect::<Vec<_>>(), [true, false]);
        in_flight.set_upgraded(3, 7, true);
        assert_eq!(in_flight.all()[1], InFlightRequest { is_upgraded: true, has_left: true, ..expected });
        assert_eq!(in_flight.oldest().map(|request| request.number), Some(8));
        in_flight.enter(3, 9, b"", b"");
        assert!(!in_flight.remove(3, 7) && in_flight.remove(3, 9) && in_flight.remove(0, 8));
        assert!(in_flight.all().is_empty());
        in_flight.enter(3, 10, b"GET /", b"");
        assert_eq!(in_flight.all()[0].id, b"", "the ID of the request before is forgotten");
        in_flight.clear();
        assert!(in_flight.all().is_empty());
    }

    /// A writer replaces a request all the time; the reader must never see parts of two.
    #[test]
    fn no_request_is_torn() {
        let (numbers, slots, stops) = (Numbers::default(), Slots::default(), AtomicBool::new(false));
        let in_flight = InFlight { numbers: &numbers, slots: &slots };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0_u64;
                while !stops.load(Ordering::Relaxed) {
                    number += 1;
                    let letter = b'a' + (number % 26) as u8;
                    in_flight.enter(0, number, &vec![letter; 8 + (number % 200) as usize], b"");
                    in_flight.begin(0, number, number, number as u32);
                    in_flight.remove(0, number);
                }
            });
            let mut seen = 0;
            while seen < 2_000 {
                for request in in_flight.all() {
                    seen += 1;
                    let letter = b'a' + (request.number % 26) as u8;
                    assert_eq!(request.line.len() as u64, 8 + request.number % 200);
                    assert!(request.line.iter().all(|&byte| byte == letter), "{request:?}");
                    assert!([0, request.number].contains(&request.begun), "{request:?}");
                }
            }
            stops.store(true, Ordering::Relaxed);
        });
    }
}
