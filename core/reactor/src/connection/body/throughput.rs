//! Longest pause without a byte and minimum rate of uploads and downloads (`body_timeout`, `write_timeout`, `min_rate`).

/// The minimum rate that is required of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinimumRate {
    /// Milliseconds without a byte that are too long, and over which the rate is measured.
    pub(crate) window: u64,
    /// Bytes per second, measured over a window.
    pub(crate) rate: u64,
}

impl MinimumRate {
    fn part(self) -> u64 {
        (self.window / PARTS as u64).max(1)
    }

    /// Bytes between two measurements at this rate.
    pub(crate) fn bytes_of_part(self) -> u64 {
        self.rate.saturating_mul(self.part()) / 1_000
    }
}

/// Parts of a window; the rate is checked at the end of each.
const PARTS: usize = 8;

/// How fast a body is received or a response is sent. The rate must be kept in every window, and bytes before a window do
/// not count for it: neither a byte now and then nor a fast beginning holds a connection for ever.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Throughput {
    /// Start of the present part of a window.
    since: u64,
    /// Parts that have ended.
    parts: usize,
    /// Bytes that had passed at the end of each of the last parts.
    marks: [u64; PARTS],
    /// Bytes that have passed.
    bytes: u64,
    /// When the last byte passed.
    progressed: u64,
    /// When [`Throughput::note`] was last called.
    noted: u64,
}

impl Throughput {
    pub(crate) fn begin(now: u64) -> Self {
        Throughput { since: now, progressed: now, noted: now, ..Self::default() }
    }

    /// Measures from `now` on.
    pub(crate) fn begin_again(&mut self, now: u64) {
        *self = Throughput { bytes: self.bytes, marks: [self.bytes; PARTS], ..Self::begin(now) };
    }

    /// Notes that so many bytes have passed since the beginning.
    pub(crate) fn note(&mut self, bytes: u64, now: u64) {
        self.noted = now;
        if bytes > self.bytes {
            self.bytes = bytes;
            self.progressed = now;
        }
    }

    /// Notes that nothing could pass for so many milliseconds, not because of the client.
    pub(crate) fn pause(&mut self, milliseconds: u64) {
        self.since += milliseconds;
        self.progressed += milliseconds;
    }

    /// Notes that nothing could pass since [`Throughput::note`], not because of the client.
    pub(crate) fn pause_until(&mut self, now: u64) {
        self.pause(now.saturating_sub(self.noted));
        self.noted = now;
    }

    /// Bytes that have passed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When to ask [`Throughput::is_too_slow`].
    pub(crate) fn deadline(&self, minimum: MinimumRate) -> u64 {
        let end_of_part = self.since.saturating_add(minimum.part());
        end_of_part.min(self.progressed.saturating_add(minimum.window))
    }

    /// Whether no byte passed for a window, or too few in the window that ends now.
    pub(crate) fn is_too_slow(&mut self, now: u64, minimum: MinimumRate) -> bool {
        if now >= self.progressed.saturating_add(minimum.window) {
            return true;
        }
        let end_of_part = self.since.saturating_add(minimum.part());
        if now < end_of_part {
            return false;
        }
        // If this was not called for longer than a part, the part was longer.
        self.since = if now < end_of_part.saturating_add(minimum.part()) { end_of_part } else { now };
        let before = std::mem::replace(&mut self.marks[self.parts % PARTS], self.bytes);
        self.parts += 1;
        let passed = self.bytes - before;
        self.parts >= PARTS && passed.saturating_mul(1_000) < minimum.rate.saturating_mul(minimum.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: MinimumRate = MinimumRate { window: 30_000, rate: 500 };

    /// The second in which a client that passes `bytes` every second is too slow, within an hour.
    fn given_up(bytes: impl Fn(u64) -> u64) -> Option<u64> {
        let (mut throughput, mut total) = (Throughput::begin(1), 0);
        (0..3_600).find(|&second| {
            total += bytes(second);
            throughput.note(total, second * 1_000 + 1);
            throughput.is_too_slow(second * 1_000 + 1, DEMAND)
        })
    }

    #[test]
    fn a_byte_a_second_is_too_slow_after_one_window() {
        assert_eq!(given_up(|_| 1), Some(30));
        assert_eq!(given_up(|_| 480), Some(30));
        assert_eq!(given_up(|_| 500), None);
    }

    #[test]
    fn bytes_before_a_window_do_not_count_for_it() {
        assert_eq!(given_up(|second| if second == 0 { 1 << 30 } else { 1 }), Some(34));
    }

    #[test]
    fn a_pause_is_measured_from_the_last_byte() {
        assert_eq!(given_up(|second| if second <= 5 { 1 << 20 } else { 0 }), Some(35));
        assert_eq!(given_up(|second| if second % 29 == 0 { 1 << 20 } else { 0 }), None);
    }

    #[test]
    fn a_pause_of_the_server_lasts_as_long_as_it_did() {
        let mut throughput = Throughput::begin(0);
        for now in (80..=400_000).step_by(80) {
            // The timer was late, as on a busy machine.
            throughput.pause_until(now);
            assert!(!throughput.is_too_slow(now, DEMAND), "{now}");
            throughput.note(0, now);
        }
        assert!(!throughput.is_too_slow(429_900, DEMAND) && throughput.is_too_slow(430_000, DEMAND));
    }

    #[test]
    fn without_a_rate_only_pauses_count() {
        let mut throughput = Throughput::begin(0);
        for second in 1..1_000 {
            throughput.note(second, second * 1_000);
            assert!(!throughput.is_too_slow(second * 1_000, MinimumRate { rate: 0, ..DEMAND }));
        }
    }
}
