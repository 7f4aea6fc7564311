//! Standard error of a program, reported line by line at a bounded rate.

use std::process::ChildStderr;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};

use crate::{is_drained, timespec};

/// Called with each line.
pub(crate) type Report = Box<dyn FnMut(&str) + Send>;

/// Bytes of a line; the rest is dropped.
const LONGEST: usize = 1_000;
/// Lines that a program may write at once.
const BURST: u32 = 100;
/// Time in which the allowance grows by one line.
const EACH: Duration = Duration::from_millis(100);
/// Bytes read at once: as many as a pipe holds.
const AT_ONCE: usize = 64 << 10;

/// Reads the standard error of a program.
pub(crate) struct StderrReader {
    /// `None` after its end.
    stream: Option<ChildStderr>,
    report: Report,
    /// The line that is not complete.
    line: Vec<u8>,
    /// Lines that may be reported.
    allowance: u32,
    /// When the allowance was counted.
    counted: Instant,
    /// Lines that were not reported.
    dropped: u64,
}

impl StderrReader {
    pub(crate) fn new(stream: Option<ChildStderr>, report: Report, now: Instant) -> Self {
        StderrReader { stream, report, line: Vec::new(), allowance: BURST, counted: now, dropped: 0 }
    }

    /// The stream, to be polled.
    pub(crate) fn stream(&self) -> Option<&ChildStderr> {
        self.stream.as_ref()
    }

    /// Reads the available bytes, after the stream was polled.
    pub(crate) fn take(&mut self, wanted: PollFlags, seen: PollFlags) {
        if is_drained(wanted, seen) {
            return self.close();
        }
        let Some(stream) = &self.stream else { return };
        let mut bytes = Vec::with_capacity(AT_ONCE);
        match read(stream, spare_capacity(&mut bytes)) {
            Err(Errno::INTR) => {}
            Ok(0) | Err(_) => self.close(),
            Ok(_) => self.add(&bytes, Instant::now()),
        }
    }

    /// Waits for something to read, not longer than this, and reads it. `false`: there was nothing.
    pub(crate) fn wait_and_read(&mut self, time: Duration) -> bool {
        let Some(stream) = &self.stream else { return false };
        let mut streams = [PollFd::new(stream, PollFlags::IN)];
        let ready = matches!(poll(&mut streams, Some(&timespec(time))), Ok(1..));
        let seen = streams[0].revents();
        if ready {
            self.take(PollFlags::IN, seen);
        }
        ready
    }

    /// Reads all that was written so far, without waiting for other processes that have the stream open.
    pub(crate) fn read_last(&mut self) {
        // More than a pipe holds comes from a process that goes on writing.
        let mut left = 16;
        while left > 0 && self.wait_and_read(Duration::ZERO) {
            left -= 1;
        }
        self.close();
    }

    /// Nothing more is read.
    fn close(&mut self) {
        self.stream = None;
        self.end(Instant::now());
    }

    fn add(&mut self, mut bytes: &[u8], now: Instant) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.extend(&bytes[..end]);
            self.complete(now);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    fn end(&mut self, now: Instant) {
        self.complete(now);
        self.report_dropped();
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = LONGEST.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn complete(&mut self, now: Instant) {
        let line = std::mem::take(&mut self.line);
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return;
        }
        let earned = now.saturating_duration_since(self.counted).as_millis() / EACH.as_millis();
        if earned > 0 {
            self.allowance = self.allowance.saturating_add(earned.try_into().unwrap_or(BURST)).min(BURST);
            self.counted = now;
        }
        if self.allowance == 0 {
            self.dropped += 1;
            return;
        }
        self.allowance -= 1;
        self.report_dropped();
        (self.report)(&String::from_utf8_lossy(line));
    }

    fn report_dropped(&mut self) {
        if self.dropped > 0 {
            (self.report)(&format!("{} more lines on standard error, which are left out", self.dropped));
            self.dropped = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn stderr(now: Instant) -> (StderrReader, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        (StderrReader::new(None, Box::new(move |line| seen.lock().unwrap().push(line.to_owned())), now), lines)
    }

    #[test]
    fn lines_in_pieces() {
        let now = Instant::now();
        let (mut stderr, lines) = stderr(now);
        stderr.add(b"one\r\n\ntw", now);
        stderr.add(b"o\nthree \xff", now);
        assert_eq!(*lines.lock().unwrap(), ["one", "two"]);
        stderr.end(now);
        assert_eq!(lines.lock().unwrap().last().unwrap(), "three \u{fffd}");
        stderr.add(&[b'x'; 5_000], now);
        stderr.end(now);
        assert_eq!(lines.lock().unwrap().last().unwrap().len(), LONGEST);
    }

    #[test]
    fn a_flood_is_counted() {
        let now = Instant::now();
        let (mut stderr, lines) = stderr(now);
        stderr.add(&b"again\n".repeat(1_000), now);
        assert_eq!(lines.lock().unwrap().len(), BURST as usize);
        stderr.add(b"later\n", now + EACH);
        let told = lines.lock().unwrap().split_off(BURST as usize);
        assert_eq!(told, ["900 more lines on standard error, which are left out", "later"]);
        stderr.add(&b"again\n".repeat(1_000), now + EACH * 1_000);
        stderr.end(now);
        assert_eq!(lines.lock().unwrap().len(), 2 * BURST as usize + 1);
    }
}
