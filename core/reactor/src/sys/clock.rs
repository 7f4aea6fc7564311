//! Monotonic time and time of day, from coarse clocks.

use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// The time of an event that is not scheduled.
pub(crate) const NEVER: u64 = u64::MAX;

/// Milliseconds of a clock that never jumps; fine enough for deadlines, and a few nanoseconds to read.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    time.tv_sec as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000
}

/// Microseconds of the same clock at full resolution, to measure with.
pub(crate) fn precise_us() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// Microseconds of processor time that this process has used.
pub(crate) fn processor_time_us() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// Seconds since 1970.
pub(crate) fn unix_time() -> u64 {
    clock_gettime(ClockId::RealtimeCoarse).tv_sec.max(0) as u64
}

/// Milliseconds since 1970.
pub(crate) fn unix_time_ms() -> u64 {
    let time = clock_gettime(ClockId::RealtimeCoarse);
    time.tv_sec.max(0) as u64 * 1_000 + time.tv_nsec as u64 / 1_000_000
}

/// The time of day, written in the ways that answers and logs need, made once a second.
pub(crate) struct TimeOfDay {
    second: i64,
    /// `Date: Fri, 20 Nov 2026 09:27:42 GMT` and CRLF (RFC 9110 section 5.6.7).
    pub(crate) date_line: Vec<u8>,
    /// `20/Nov/2026:09:27:42 +0000`, as Apache logs it; always UTC.
    pub(crate) common: String,
    /// `2026-11-20T09:27:42Z` (RFC 3339).
    pub(crate) iso: String,
}

impl TimeOfDay {
    const fn unknown() -> Self {
        TimeOfDay { second: i64::MIN, date_line: Vec::new(), common: String::new(), iso: String::new() }
    }

    fn set(&mut self, second: i64) {
        let time = UNIX_EPOCH + Duration::from_secs(second.max(0) as u64);
        // IMF-fixdate has fixed positions: "Fri, 20 Nov 2026 09:27:42 GMT".
        let fixdate = httpdate::fmt_http_date(time);
        let part = |range: std::ops::Range<usize>| fixdate.get(range).unwrap_or_default();
        let (day, month, year, clock) = (part(5..7), part(8..11), part(12..16), part(17..25));
        const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let number = MONTHS.find(month).map_or(0, |at| at / 3 + 1);
        self.second = second;
        self.common = format!("{day}/{month}/{year}:{clock} +0000");
        self.iso = format!("{year}-{number:02}-{day}T{clock}Z");
        self.date_line.clear();
        self.date_line.extend_from_slice(format!("Date: {fixdate}\r\n").as_bytes());
    }

    /// `Nov 20 09:27:42`, as syslog has it: the day without a leading zero (RFC 3164 section 4.1.2).
    pub(crate) fn bsd(&self) -> String {
        let part = |range: std::ops::Range<usize>| self.common.get(range).unwrap_or_default();
        let day = part(0..2).trim_start_matches('0');
        format!("{} {day:>2} {}", part(3..6), part(12..20))
    }
}

thread_local! {
    static TIME_OF_DAY: RefCell<TimeOfDay> = const { RefCell::new(TimeOfDay::unknown()) };
}

/// Calls `use_it` with the current time of day.
#[inline]
pub(crate) fn with_time_of_day<T>(use_it: impl FnOnce(&TimeOfDay) -> T) -> T {
    with_moment(|time, _| use_it(time))
}

/// The same with the milliseconds since the begin of the second.
#[inline]
pub(crate) fn with_moment<T>(use_it: impl FnOnce(&TimeOfDay, u32) -> T) -> T {
    TIME_OF_DAY.with_borrow_mut(|cache| {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        if now.tv_sec != cache.second {
            cache.set(now.tv_sec);
        }
        use_it(cache, now.tv_nsec as u32 / 1_000_000)
    })
}

/// Appends the time as `2026-11-20T09:27:42.123Z` (RFC 3339).
pub(crate) fn push_iso_ms(out: &mut Vec<u8>) {
    with_moment(|time, milliseconds| {
        out.extend_from_slice(time.iso.trim_end_matches('Z').as_bytes());
        out.extend_from_slice(&[b'.', digit(milliseconds / 100), digit(milliseconds / 10), digit(milliseconds), b'Z']);
    });
}

/// The last digit of a number.
fn digit(number: u32) -> u8 {
    b'0' + (number % 10) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_second_in_four_notations() {
        let mut time = TimeOfDay::unknown();
        time.set(1_795_166_862);
        assert_eq!(time.date_line, b"Date: Fri, 20 Nov 2026 09:27:42 GMT\r\n");
        assert_eq!(time.common, "20/Nov/2026:09:27:42 +0000");
        assert_eq!(time.iso, "2026-11-20T09:27:42Z");
        assert_eq!(time.bsd(), "Nov 20 09:27:42");
        let mut now = Vec::new();
        push_iso_ms(&mut now);
        assert!(now.len() == 24 && now[19] == b'.' && now[23] == b'Z', "{now:?}");
        time.set(1_793_574_000);
        assert_eq!(time.bsd(), "Nov  1 23:00:00");
    }
}
