//! The error log: one message for each thing worth telling a person.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use rustix::io::Errno;

use crate::log::sink::Sink;

/// How much a line matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look for a fault.
    Debug,
    /// What happens in ordinary operation.
    #[default]
    Info,
    /// What should not happen, and was coped with.
    Warning,
    /// What somebody must mend.
    Error,
}

impl Level {
    /// The level of this name, as in the option `log_level`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "debug" => Level::Debug,
            "info" => Level::Info,
            "warning" => Level::Warning,
            "error" => Level::Error,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }

    /// Its number in syslog (RFC 3164 section 4.1.1).
    pub(crate) fn severity(self) -> u8 {
        match self {
            Level::Debug => 7,
            Level::Info => 6,
            Level::Warning => 4,
            Level::Error => 3,
        }
    }
}

/// Where the messages go.
#[derive(Debug, Default)]
pub struct Journal {
    level: Level,
    /// Read by all who write, so that a process forked meanwhile does not find it locked.
    place: RwLock<Place>,
    /// Messages that nobody took.
    lost: AtomicU64,
    /// The last one has waited in vain; the next ones do not wait.
    hopeless: AtomicBool,
}

#[derive(Debug, Default)]
struct Place {
    sink: Option<Sink>,
    label: String,
}

impl Journal {
    /// Writes messages of at least `level` to `sink`.
    pub fn new(sink: Sink, level: Level) -> Self {
        Journal { level, place: RwLock::new(Place { sink: Some(sink), label: String::new() }), ..Journal::default() }
    }

    /// Goes on in `sink`.
    pub fn reopen(&self, sink: Sink) {
        self.change(|place| place.sink = Some(sink));
        self.hopeless.store(false, Ordering::Relaxed);
    }

    /// Says who this process is, in every line from now on.
    pub fn set_label(&self, label: &str) {
        self.change(|place| place.label = visible(label));
    }

    /// Who this process is.
    pub fn label(&self) -> String {
        self.place.read().unwrap_or_else(PoisonError::into_inner).label.clone()
    }

    fn change(&self, change: impl FnOnce(&mut Place)) {
        change(&mut self.place.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes a line such as `2026-11-20T09:27:42Z [4711 worker 2] warning: …` in one piece. The lines of a longer message
    /// follow indented. What cannot be written is counted, and the number written as soon as something can.
    pub fn write(&self, level: Level, message: &str) {
        if self.offer(level, message).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The same; what cannot be written is not counted, since whoever has it comes again with it.
    pub(crate) fn offer(&self, level: Level, message: &str) -> Result<(), Errno> {
        if level < self.level {
            return Ok(());
        }
        let place = self.place.read().unwrap_or_else(PoisonError::into_inner);
        self.report(&place, level, &visible(message.trim_end()))?;
        self.tell_losses(&place);
        Ok(())
    }

    /// Says what could not be written so far, before the process ends.
    pub fn close(&self) {
        self.tell_losses(&self.place.read().unwrap_or_else(PoisonError::into_inner));
    }

    fn tell_losses(&self, place: &Place) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let message = format!("{lost} messages before this could not be written, and are lost");
        if lost > 0 && self.report(place, Level::Error, &message).is_err() {
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }

    fn report(&self, place: &Place, level: Level, text: &str) -> Result<(), Errno> {
        let Some(sink) = &place.sink else { return Ok(()) };
        let patient = !self.hopeless.load(Ordering::Relaxed);
        let done = sink.report(level, &place.label, text, patient);
        self.hopeless.store(done == Err(Errno::AGAIN), Ordering::Relaxed);
        done
    }
}

/// Escapes what could move a terminal's cursor or pass for the end of a line, except for the ends of lines that we know.
fn visible(text: &str) -> String {
    let is_plain =
        |char: char| matches!(char, '\n' | '\t') || !(char.is_control() || matches!(char, '\u{2028}' | '\u{2029}'));
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len() + 8), |mut visible, char| {
        match is_plain(char) {
            true => visible.push(char),
            false if u32::from(char) < 0x100 => {
                let _ = write!(visible, "\\x{:02x}", u32::from(char));
            }
            false => {
                let _ = write!(visible, "\\u{:04x}", u32::from(char));
            }
        }
        visible
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_in_its_lines() {
        assert_eq!(visible("a\r\nb\tc\x1b[2J\u{9b}\u{2028}é"), "a\\x0d\nb\tc\\x1b[2J\\x9b\\u2028é");
    }
}
