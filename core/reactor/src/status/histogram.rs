//! Histogram of durations, in memory that other processes read.

use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds of the buckets in microseconds: five in each decade, which are round numbers also in seconds. A last bucket
/// has all that is above. The status document has the same (`poorhttp/plugins/monitor/admin/model.py`).
pub const BOUNDS: [u64; 33] = [
    50,
    75, //
    100,
    150,
    250,
    500,
    750, //
    1_000,
    1_500,
    2_500,
    5_000,
    7_500, //
    10_000,
    15_000,
    25_000,
    50_000,
    75_000, //
    100_000,
    150_000,
    250_000,
    500_000,
    750_000, //
    1_000_000,
    1_500_000,
    2_500_000,
    5_000_000,
    7_500_000, //
    10_000_000,
    15_000_000,
    25_000_000,
    50_000_000,
    75_000_000, //
    100_000_000,
];

/// Buckets of a histogram.
pub const BUCKETS: usize = BOUNDS.len() + 1;

/// Numbers of significant bits from which on a duration is above all bounds.
const MOST_BITS: usize = (u64::BITS - BOUNDS[BOUNDS.len() - 1].leading_zeros()) as usize;

/// For each number of significant bits, the bucket of the shortest duration that has so many.
const FIRST: [u8; MOST_BITS + 1] = {
    let mut first = [0; MOST_BITS + 1];
    let mut bits = 1;
    while bits <= MOST_BITS {
        let shortest = 1 << (bits - 1);
        while BOUNDS[first[bits] as usize] < shortest {
            first[bits] += 1;
        }
        bits += 1;
    }
    first
};

/// The bucket of a duration. The durations with as many significant bits are in few buckets, so few bounds are compared.
#[inline]
fn bucket(microseconds: u64) -> usize {
    let bits = (u64::BITS - microseconds.leading_zeros()) as usize;
    let Some(&first) = FIRST.get(bits) else { return BOUNDS.len() };
    let mut bucket = usize::from(first);
    while BOUNDS.get(bucket).is_some_and(|&bound| microseconds > bound) {
        bucket += 1;
    }
    bucket
}

/// Adds to a number to which no other thread adds at the same time: without the cost of an atomic addition.
#[inline]
pub(super) fn add_alone(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// How often durations were in each bucket, and their sum in microseconds.
#[repr(C)]
#[derive(Debug)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Adds a duration. No other thread may do so at the same time.
    #[inline]
    pub(super) fn add(&self, microseconds: u64) {
        add_alone(&self.counts[bucket(microseconds)], 1);
        add_alone(&self.sum, microseconds);
    }

    /// How often durations were in each bucket.
    pub fn counts(&self) -> [u64; BUCKETS] {
        self.counts.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// The sum of all durations in microseconds.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// All its numbers, in a fixed order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &AtomicU64> {
        self.counts.iter().chain([&self.sum])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let slowly = |duration| BOUNDS.iter().position(|&bound| duration <= bound).unwrap_or(BOUNDS.len());
        assert!(BOUNDS.is_sorted());
        let around = BOUNDS.iter().flat_map(|&bound| [bound - 1, bound, bound + 1]);
        let powers = (0..64).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits]);
        for duration in (0..2_000).chain(around).chain(powers).chain([u64::MAX]) {
            assert_eq!(bucket(duration), slowly(duration), "{duration}");
        }
    }

    #[test]
    fn few_bounds_are_compared() {
        for bits in 1..=MOST_BITS {
            let (shortest, longest) = (1_u64 << (bits - 1), (1_u64 << bits) - 1);
            assert!(bucket(longest) - bucket(shortest) <= 3, "{shortest} to {longest}");
        }
    }

    #[test]
    fn durations_are_counted_and_summed() {
        let histogram = Histogram::default();
        [0, 50, 51, 100, 100_000_001].into_iter().for_each(|duration| histogram.add(duration));
        let mut expected = [0; BUCKETS];
        (expected[0], expected[1], expected[2], expected[BUCKETS - 1]) = (2, 1, 1, 1);
        assert_eq!((histogram.counts(), histogram.sum()), (expected, 100_000_202));
    }
}
