//! The error log: messages for the person who runs the server.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::log::json::Object;
use crate::log::request_id::RequestName;
use crate::log::sink::Sink;
use crate::sys::{Errno, clock};

/// Milliseconds between two messages that a [`RateLimit`] lets through.
const INTERVAL: u64 = 60_000;

/// Limits a message that every new connection or response would repeat.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    /// When the next message may be written, in milliseconds of [`clock::now`].
    next: AtomicU64,
}

impl RateLimit {
    pub(crate) fn is_due(&self) -> bool {
        let (now, next) = (clock::now(), self.next.load(Ordering::Relaxed));
        now >= next && self.next.compare_exchange(next, now + INTERVAL, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// The level of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For debugging.
    Debug,
    /// Events of ordinary operation.
    #[default]
    Info,
    /// A problem that was handled.
    Warning,
    /// A problem that a person must solve.
    Error,
}

impl Level {
    const ALL: [Level; 4] = [Level::Debug, Level::Info, Level::Warning, Level::Error];

    /// The level of this name, as in the option `log_level`.
    pub fn named(name: &str) -> Option<Self> {
        Level::ALL.into_iter().find(|level| level.name() == name)
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

/// The lowest level of every [`ErrorLog`] of all processes that share it: its number from 1; 0: each has its own.
static SHARED_LEVEL: OnceLock<&'static AtomicU8> = OnceLock::new();

/// Keeps the level of [`set_level`] in `shared`, which processes that are forked later share. Only the first call counts.
pub fn share_level(shared: &'static AtomicU8) {
    let _ = SHARED_LEVEL.set(shared);
}

/// Sets the lowest level of all processes after [`share_level`]; `None`: each log has its own.
pub fn set_level(level: Option<Level>) {
    if let Some(shared) = SHARED_LEVEL.get() {
        shared.store(level.map_or(0, |level| level as u8 + 1), Ordering::Relaxed);
    }
}

/// A message for the error log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Message<'a> {
    /// Its level.
    pub level: Level,
    /// One line or several. If it is about a request, it begins with the name of that.
    pub text: &'a str,
    /// The request that it is about, or during which it was written.
    pub request: Option<&'a RequestName>,
    /// The traceback of an exception, which follows the text.
    pub traceback: Option<&'a str>,
    /// The application has written it, to `wsgi.errors`.
    pub from_application: bool,
}

impl<'a> Message<'a> {
    /// Its text and traceback, escaped.
    pub(crate) fn visible(&self) -> String {
        let text = visible(self.text.trim_end());
        match self.traceback {
            Some(traceback) => text + "\n" + &visible(traceback.trim_end()),
            None => text,
        }
    }

    /// A line with a JSON object. `process`: its name.
    fn json(&self, process: &str) -> Vec<u8> {
        let mut line = Vec::with_capacity(256 + self.text.len() + self.traceback.map_or(0, str::len));
        let mut object = Object::begin(&mut line);
        object.plain("time", clock::push_iso_ms);
        object.text("level", Some(self.level.name()));
        object.number("pid", Some(std::process::id().into()));
        object.text("worker", Some(process).filter(|process| !process.is_empty()));
        object.text("logger", Some(if self.from_application { "wsgi.errors" } else { "poorhttp.error" }));
        object.text("message", Some(self.text.trim_end()));
        object.number("request", self.request.map(|request| request.number));
        object.text("request_id", self.request.map(|request| &*request.id).filter(|id| !id.is_empty()));
        let trace = self.request.and_then(|request| request.trace.as_ref());
        object.text("trace_id", trace.map(|trace| trace.trace_id()));
        object.text("span_id", trace.map(|trace| trace.span_id()));
        object.text("exception", self.traceback.map(str::trim_end));
        object.end();
        line
    }

    /// Its lines in a file, a pipe or a terminal: with the time, and all but the first one indented.
    pub(crate) fn lines(&self, process: &str) -> Vec<u8> {
        let (process_id, level) = (std::process::id(), self.level.name());
        let space = if process.is_empty() { "" } else { " " };
        // The text of an exception must not look like a line of ours.
        let text = self.visible().replace('\n', "\n    ");
        clock::with_time_of_day(|time| {
            format!("{} [{process_id}{space}{process}] {level}: {text}\n", time.iso).into_bytes()
        })
    }

    /// The same for systemd's journal, which adds the time: each line begins with its priority (sd-daemon(3)).
    pub(crate) fn marked_lines(&self, process: &str) -> Vec<u8> {
        let (process_id, level) = (std::process::id(), self.level.name());
        let space = if process.is_empty() { "" } else { " " };
        let mark = format!("<{}>", self.level.severity());
        let text = self.visible().replace('\n', &format!("\n{mark}    "));
        format!("{mark}[{process_id}{space}{process}] {level}: {text}\n").into_bytes()
    }

    /// The line in the format `json`.
    pub(crate) fn json_line(&self, process: &str, marked: bool) -> Vec<u8> {
        let mut line = if marked { format!("<{}>", self.level.severity()).into_bytes() } else { Vec::new() };
        line.extend(self.json(process));
        line.push(b'\n');
        line
    }

    /// The same message with the beginning of its texts only, for a daemon that takes no longer one.
    pub(crate) fn shortened(&self) -> Self {
        // Each byte may take six in JSON, and 32 KiB fit into a datagram anywhere.
        let cut = |text: &'a str| {
            let end = (0..=text.len().min(2_500)).rev().find(|&end| text.is_char_boundary(end)).unwrap_or_default();
            &text[..end]
        };
        Message { text: cut(self.text), traceback: self.traceback.map(cut), ..*self }
    }

    /// What a daemon gets, which adds process and time.
    pub(crate) fn daemon_text(&self, process: &str, json: bool) -> String {
        if json {
            return String::from_utf8(self.json(process)).unwrap_or_default();
        }
        let label = if process.is_empty() { String::new() } else { format!("[{process}] ") };
        format!("{label}{}: {}", self.level.name(), self.visible())
    }

    /// For the relay to Python's `logging`: the parts of a record, separated by a character that is escaped in each of them.
    /// The last ones may be cut off.
    pub(crate) fn record(&self) -> String {
        const SEPARATOR: &str = "\x1e";
        let name = self.request;
        let trace = name.and_then(|name| name.trace.as_ref());
        [
            if self.from_application { "wsgi.errors" } else { "" },
            &name.map_or_else(String::new, |name| name.number.to_string()),
            name.map_or("", |name| &name.id),
            trace.map_or("", |trace| trace.trace_id()),
            trace.map_or("", |trace| trace.span_id()),
            &visible(self.text.trim_end()),
            &self.traceback.map_or_else(String::new, |traceback| visible(traceback.trim_end())),
        ]
        .join(SEPARATOR)
    }
}

/// The error log.
#[derive(Debug, Default)]
pub struct ErrorLog {
    level: Level,
    /// Messages are written as JSON objects, not as lines of text.
    json: bool,
    /// Writers take the read lock, so that a process forked meanwhile does not find it locked.
    target: RwLock<Target>,
    /// Messages that could not be written.
    lost: AtomicU64,
    /// The last message waited without success; the next ones do not wait.
    skip_wait: AtomicBool,
}

#[derive(Debug, Default)]
struct Target {
    sink: Option<Sink>,
    label: String,
    /// Messages that were ever lost, in memory that other processes may read.
    all_lost: Option<&'static AtomicU64>,
}

impl ErrorLog {
    /// Writes messages of at least `level` to `sink`; `json`: as objects, not as lines of text.
    pub fn new(sink: Sink, level: Level, json: bool) -> Self {
        let target = RwLock::new(Target { sink: Some(sink), ..Target::default() });
        ErrorLog { level, json, target, ..ErrorLog::default() }
    }

    /// Goes on in `sink`.
    pub fn reopen(&self, sink: Sink) {
        self.change(|target| target.sink = Some(sink));
        self.skip_wait.store(false, Ordering::Relaxed);
    }

    /// Sets the name of this process in every line from now on.
    pub fn set_label(&self, label: &str) {
        self.change(|target| target.label = visible(label));
    }

    /// Counts messages that are lost there, too.
    pub fn count_lost(&self, counter: &'static AtomicU64) {
        self.change(|target| target.all_lost = Some(counter));
    }

    /// The name of this process.
    pub fn label(&self) -> String {
        self.target.read().unwrap_or_else(PoisonError::into_inner).label.clone()
    }

    fn change(&self, change: impl FnOnce(&mut Target)) {
        change(&mut self.target.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes a line such as `2026-11-20T09:27:42Z [4711 worker 2] warning: …` in one piece. The lines of a longer
    /// message follow indented. Messages that cannot be written are counted, and the number is written as soon as
    /// possible.
    pub fn write(&self, level: Level, message: &str) {
        self.write_message(&Message { level, text: message, ..Message::default() });
    }

    /// Writes a message about a request, with the name of that before it.
    pub fn write_about(&self, level: Level, request: &RequestName, message: &str) {
        if level >= self.lowest() {
            let text = format!("{request}: {message}");
            self.write_message(&Message { level, text: &text, request: Some(request), ..Message::default() });
        }
    }

    /// Writes a message with all that belongs to it.
    pub fn write_message(&self, message: &Message<'_>) {
        if self.try_write(message).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
            if let Some(all_lost) = self.target.read().unwrap_or_else(PoisonError::into_inner).all_lost {
                all_lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The same, but a message that cannot be written is not counted as lost, since the caller tries again.
    pub(crate) fn try_write(&self, message: &Message<'_>) -> Result<(), Errno> {
        if message.level < self.lowest() {
            return Ok(());
        }
        let target = self.target.read().unwrap_or_else(PoisonError::into_inner);
        self.write_to(&target, message)?;
        self.write_lost(&target);
        Ok(())
    }

    /// The lowest level that is written.
    fn lowest(&self) -> Level {
        let shared = SHARED_LEVEL.get().map_or(0, |shared| shared.load(Ordering::Relaxed));
        Level::ALL.into_iter().find(|level| *level as u8 + 1 == shared).unwrap_or(self.level)
    }

    /// Writes the number of messages that could not be written, before the process ends.
    pub fn close(&self) {
        self.write_lost(&self.target.read().unwrap_or_else(PoisonError::into_inner));
    }

    fn write_lost(&self, target: &Target) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let text = format!("{lost} messages before this could not be written, and are lost");
        let message = Message { level: Level::Error, text: &text, ..Message::default() };
        if lost > 0 && self.write_to(target, &message).is_err() {
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
    }

    fn write_to(&self, target: &Target, message: &Message<'_>) -> Result<(), Errno> {
        let Some(sink) = &target.sink else { return Ok(()) };
        let wait = !self.skip_wait.load(Ordering::Relaxed);
        let done = sink.write_message(message, &target.label, self.json, wait);
        self.skip_wait.store(done == Err(Errno::AGAIN), Ordering::Relaxed);
        done
    }
}

/// Escapes characters that could move a terminal's cursor, reorder a line or pass for the end of one, except line feeds and tabs.
fn visible(text: &str) -> String {
    let is_plain = |char: char| matches!(char, '\n' | '\t') || !(char.is_control() || changes_lines(char));
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

/// Whether a reader may take a character for the end of a line, or it changes the order of others in their line: Unicode's property
/// `Bidi_Control` (UAX 9).
pub(super) const fn changes_lines(char: char) -> bool {
    matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_in_its_lines() {
        assert_eq!(visible("a\r\nb\tc\x1b[2J\u{9b}\u{2028}é"), "a\\x0d\nb\tc\\x1b[2J\\x9b\\u2028é");
    }

    #[test]
    fn nothing_reorders_a_line() {
        let escaped = "\\u061c\\u200e\\u200f\\u202a\\u202e\\u2066\\u2069";
        assert_eq!(visible("\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}"), escaped);
        assert_eq!(visible("\u{200b}\u{202f}\u{5d0}"), "\u{200b}\u{202f}\u{5d0}");
    }
}
