//! What is counted, where others can read it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one reactor. They may lie in memory that other processes share: whoever watches over many reads them there,
/// and nobody here has to be asked.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Tally {
    /// Requests that have begun; the running number of the last one.
    requests: AtomicU64,
    /// Requests that the application has.
    in_hand: AtomicU64,
    /// Connections that are open.
    connections: AtomicU64,
    /// Answers by the first digit of their status.
    answers: [AtomicU64; 5],
    /// Requests that the application can have at the same time; 0: it does not matter.
    slots: AtomicU64,
    /// 1 while somebody checks now and then whether all slots are taken.
    checked: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that have begun.
    pub requests: u64,
    /// Requests that the application has.
    pub in_hand: u64,
    /// Connections that are open.
    pub connections: u64,
    /// Answers: 1xx, 2xx, 3xx, 4xx, 5xx.
    pub answers: [u64; 5],
}

impl Tally {
    /// The number of a request that begins now.
    #[inline]
    pub(crate) fn begin(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The application gets a request.
    #[inline]
    pub fn enter(&self) {
        self.in_hand.fetch_add(1, Ordering::SeqCst);
    }

    /// The application is through with one.
    #[inline]
    pub fn strike(&self) {
        self.in_hand.fetch_sub(1, Ordering::Relaxed);
    }

    /// A request was answered.
    #[inline]
    pub(crate) fn answered(&self, status: u16) {
        if let Some(answers) = self.answers.get(usize::from(status / 100).wrapping_sub(1)) {
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Set how many requests the application can have at the same time.
    pub fn set_slots(&self, slots: u64) {
        self.slots.store(slots, Ordering::Relaxed);
    }

    /// Whether all slots are taken and nobody checks that. Whoever is told so notes that they do, by [`Tally::set_checked`].
    #[inline]
    pub fn is_full_unchecked(&self) -> bool {
        self.checked.load(Ordering::SeqCst) == 0
            && self.in_hand.load(Ordering::SeqCst) >= self.slots.load(Ordering::Relaxed)
    }

    /// Note whether somebody checks now and then whether all slots are taken. `true`: it was otherwise.
    pub fn set_checked(&self, checked: bool) -> bool {
        self.checked.swap(checked.into(), Ordering::SeqCst) != u64::from(checked)
    }

    /// Whether all slots are taken.
    pub fn is_full(&self) -> bool {
        let slots = self.slots.load(Ordering::Relaxed);
        slots != 0 && self.in_hand.load(Ordering::SeqCst) >= slots
    }

    pub(crate) fn set_connections(&self, connections: usize) {
        self.connections.store(connections as u64, Ordering::Relaxed);
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            requests: of(&self.requests),
            in_hand: of(&self.in_hand),
            connections: of(&self.connections),
            answers: self.answers.each_ref().map(of),
        }
    }

    /// Begins anew.
    pub fn clear(&self) {
        let counters = [&self.requests, &self.in_hand, &self.connections, &self.slots, &self.checked];
        counters.into_iter().chain(&self.answers).for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_told_and_forgotten() {
        let tally = Tally::default();
        assert_eq!((tally.begin(), tally.begin(), tally.begin()), (1, 2, 3));
        tally.enter();
        tally.enter();
        tally.strike();
        tally.set_connections(7);
        // 0 is no answer, and nobody has ever seen a 600.
        for status in [0, 99, 100, 200, 204, 304, 404, 599, 600, u16::MAX] {
            tally.answered(status);
        }
        assert_eq!(tally.counts(), Counts { requests: 3, in_hand: 1, connections: 7, answers: [1, 2, 1, 1, 1] });
        tally.clear();
        assert_eq!(tally.counts(), Counts::default());
    }

    #[test]
    fn who_takes_the_last_slot_is_told_so_once() {
        let tally = Tally::default();
        tally.set_slots(2);
        tally.enter();
        assert!(!tally.is_full_unchecked() && !tally.is_full());
        tally.enter();
        assert!(tally.is_full_unchecked() && tally.is_full());
        assert!(tally.set_checked(true) && !tally.set_checked(true));
        assert!(!tally.is_full_unchecked() && tally.is_full());
        assert!(tally.set_checked(false));
        tally.strike();
        assert!(!tally.is_full_unchecked());
        tally.clear();
        assert!(!tally.is_full(), "it does not matter how many there are");
    }
}
