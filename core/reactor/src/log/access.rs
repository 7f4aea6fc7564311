//! The access log: gives what is known of each answered request to its line, and writes the lines in batches.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::log::entry::Answer;
use crate::log::format::{Format, Wanted};
use crate::log::line::{Common, LoggedRequest, State};
use crate::log::request_id::RequestIds;
use crate::log::selection::Selection;
use crate::log::sink::{Sink, is_temporary};
use crate::log::writer;
use crate::log::writer::Writer;
use crate::sys::Errno;
use crate::sys::clock;
use poorhttp_http::Head;

/// Milliseconds that lines may wait to be written together.
pub(crate) const DELAY: u64 = 250;
/// Bytes of lines after which they are written without further delay.
const BATCH: usize = 32 << 10;
/// Bytes of lines that wait for a full pipe, or for a disk.
const MAX_WAITING: usize = 1 << 20;
/// How long the last lines wait for a disk.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// An access log.
#[derive(Debug)]
pub struct AccessLog {
    format: Format,
    common: Common,
    /// Leaves out requests.
    selection: Option<Selection>,
    /// Lines should not wait, as a person may be reading them: the sink is no file.
    watched: AtomicBool,
    /// Name and port of the server at each listener, as in the environ.
    servers: Vec<(String, String)>,
    /// The format asks how long requests took.
    times: bool,
    queue: Arc<Queue>,
}

/// The lines that the requests' threads add, and the writer thread takes.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// There is something to write, or it has been written.
    pub(crate) changed: Condvar,
}

/// Lines that wait to be written.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) sink: Arc<Sink>,
    pub(crate) lines: Vec<u8>,
    /// Sinks that have been replaced, each with its last lines: for the writer thread.
    pub(crate) replaced: Vec<(Arc<Sink>, Vec<u8>)>,
    pub(crate) writer: Writer,
    /// Why the last line was not written, if it was not.
    pub(crate) refused: Option<Errno>,
    /// Lines lost since there was room for the last time.
    lost: u64,
    /// To be reported in the error log.
    problems: Problems,
    /// Lines that were ever lost, in memory that other processes may read.
    all_lost: Option<&'static AtomicU64>,
}

/// Problems of the access log, to be reported in the error log.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    /// Why lines were not taken.
    cause: Option<String>,
    /// How many are lost.
    lost: u64,
}

impl Problems {
    /// A message, if there are any.
    fn text(&self) -> Option<String> {
        let lost = (self.lost > 0)
            .then(|| format!("{} lines of the access log could not be written, and are lost", self.lost));
        match (&self.cause, lost) {
            (Some(cause), Some(lost)) => Some(format!("{cause}; {lost}")),
            (cause, lost) => cause.clone().or(lost),
        }
    }

    /// Adds later problems.
    fn merge(&mut self, later: Problems) {
        self.cause = later.cause.or(self.cause.take());
        self.lost += later.lost;
    }
}

impl AccessLog {
    /// Logs to `sink` as `format` says: `common`, `combined`, `json` or a format string. `worker` is the name of this process;
    /// with `ids`, requests have ids.
    pub fn new(
        sink: Sink,
        format: &str,
        worker: String,
        ids: Option<RequestIds>,
        selection: Option<Selection>,
    ) -> Result<Self, String> {
        let format = Format::read(format)?;
        let times = format.times();
        let watched = AtomicBool::new(!sink.may_block());
        let waiting = Mutex::new(Waiting {
            sink: Arc::new(sink),
            lines: Vec::new(),
            replaced: Vec::new(),
            writer: Writer::None,
            refused: None,
            lost: 0,
            problems: Problems::default(),
            all_lost: None,
        });
        let common = Common { worker, ids };
        let queue = Arc::new(Queue { waiting, changed: Condvar::new() });
        Ok(AccessLog { format, common, selection, watched, servers: Vec::new(), times, queue })
    }

    /// Counts lines that are lost there, too.
    pub(crate) fn count_lost(&self, counter: &'static AtomicU64) {
        self.queue.lock().all_lost = Some(counter);
    }

    /// The time at which a request starts, if anybody wants to know; in microseconds.
    #[inline]
    pub(crate) fn start(&self) -> u64 {
        if self.times { clock::precise_us() } else { 0 }
    }

    /// Says whether a format can be understood.
    pub fn check(format: &str) -> Result<(), String> {
        Format::read(format).map(drop)
    }

    /// Whether lines should not wait, as a person may be reading them.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// What has to be collected while a request is answered; none if nothing is.
    #[inline]
    pub(crate) fn wanted(&self) -> Option<&Wanted> {
        self.format.wanted()
    }

    /// Sets name and port of the server at each listener.
    pub fn set_servers(&mut self, servers: Vec<(String, String)>) {
        self.servers = servers;
    }

    /// Name and port of the server at a listener.
    pub(crate) fn server(&self, listener: u32) -> (&str, &str) {
        self.servers.get(listener as usize).map_or(("", ""), |(name, port)| (name, port))
    }

    /// The keys of the environ that the format asks for.
    pub fn variables(&self) -> &[String] {
        self.wanted().map_or(&[], |wanted| &wanted.variables)
    }

    /// Adds a line, unless the request is left out. `true`: it is the first one that waits.
    pub(crate) fn add(&self, entry: &LoggedRequest<'_>) -> bool {
        if let Some(selection) = &self.selection
            && !entry.has_failed()
            && !selection.selects(entry.number, entry.head)
        {
            return false;
        }
        let mut waiting = self.queue.lock();
        let lines = &mut waiting.lines;
        let first = lines.is_empty();
        self.format.write(lines, entry, &self.common);
        if lines.len() >= BATCH {
            self.queue.write(&mut waiting, false);
        }
        first
    }

    /// Adds the line of an answer of which the kernel has taken the bytes before `bytes_sent`.
    /// `true`: it is the first one that waits.
    #[inline]
    pub(crate) fn add_answer(&self, answer: &Answer, head: Option<(&Head, &[u8])>, bytes_sent: u64) -> bool {
        let (size, sent) = answer.sent(bytes_sent);
        self.add(&LoggedRequest {
            client: answer.client,
            head: head.filter(|_| !answer.has_no_head),
            status: answer.status,
            size,
            sent,
            state: match answer.is_whole && answer.is_before(bytes_sent) {
                false => State::Incomplete,
                true if answer.persists => State::Persists,
                true => State::Closed,
            },
            microseconds: self.start().saturating_sub(answer.started),
            number: answer.number,
            kept: answer.kept,
            received: answer.received,
            is_trusted: answer.is_trusted,
            collected: answer.collected.as_deref(),
        })
    }

    /// Writes waiting lines, or wakes the writer thread. `true`: some of them still wait.
    pub(crate) fn flush(&self) -> bool {
        let mut waiting = self.queue.lock();
        self.queue.write(&mut waiting, false);
        !waiting.lines.is_empty() || waiting.writer.is_busy()
    }

    /// Continues in `sink`; waiting lines go to the old one.
    pub(crate) fn reopen(&self, sink: Sink) {
        let mut waiting = self.queue.lock();
        self.watched.store(!sink.may_block(), Ordering::Relaxed);
        if waiting.sink.may_block() {
            // To close a file may take as long as to write to it.
            let (before, lines) =
                (std::mem::replace(&mut waiting.sink, Arc::new(sink)), std::mem::take(&mut waiting.lines));
            waiting.replaced.push((before, lines));
            writer::wake_writer(&self.queue, &mut waiting);
        } else {
            waiting.write(true);
            waiting.sink = Arc::new(sink);
        }
    }

    /// Passes a message about lost lines to `report_problems`. `true`: the error log was full as well, and this is to be tried
    /// again.
    pub(crate) fn report_problems(&self, report_problems: impl FnOnce(&str) -> Result<(), Errno>) -> bool {
        let problems = std::mem::take(&mut self.queue.lock().problems);
        let Some(text) = problems.text() else { return false };
        let again = report_problems(&text).is_err_and(is_temporary);
        if again {
            let mut waiting = self.queue.lock();
            let later = std::mem::replace(&mut waiting.problems, problems);
            waiting.problems.merge(later);
        }
        again
    }

    /// Writes waiting lines for the last time, for [`CLOSE_TIMEOUT`] at most.
    pub(crate) fn close(&self) {
        let mut waiting = self.queue.lock();
        self.queue.write(&mut waiting, true);
        let (mut waiting, _) = self
            .queue
            .changed
            .wait_timeout_while(waiting, CLOSE_TIMEOUT, |waiting| waiting.writer.is_busy())
            .unwrap_or_else(PoisonError::into_inner);
        if let Writer::Busy { lines } = &mut waiting.writer {
            // They may still be written, but that cannot be reported any more.
            let lines = std::mem::take(lines);
            waiting.lose(lines);
            waiting.refused = Some(Errno::AGAIN);
        }
        waiting.give_up();
        waiting.recover();
    }
}

impl Queue {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes waiting lines, or wakes the writer thread if that may take time.
    fn write(self: &Arc<Self>, waiting: &mut Waiting, wait: bool) {
        if !waiting.sink.may_block() || (!waiting.lines.is_empty() && !writer::wake_writer(self, waiting)) {
            return waiting.write(wait);
        }
        if waiting.lines.len() > MAX_WAITING {
            waiting.refuse(Errno::TIMEDOUT);
        }
    }
}

impl Waiting {
    /// `wait`: as long as there is room for something again in a moment.
    fn write(&mut self, wait: bool) {
        let mut written = 0;
        while written < self.lines.len() {
            match self.sink.write_lines(&self.lines[written..], wait) {
                Ok(length) => {
                    written += length;
                    if self.refused.is_some() {
                        self.recover();
                    }
                }
                Err(error) => {
                    self.lines.drain(..written);
                    return self.refuse(error);
                }
            }
        }
        self.lines.clear();
    }

    /// A pipe that is full may have room later. A full disk or a closed pipe must not stop the server either.
    #[cold]
    pub(crate) fn refuse(&mut self, error: Errno) {
        let lasting = !is_temporary(error) || self.lines.len() > MAX_WAITING;
        if self.refused.is_none() && (lasting || error != Errno::AGAIN) {
            self.refused = Some(error);
            self.problems.cause = Some(match error {
                Errno::AGAIN => "the access log is not read: there is no room for more lines".into(),
                Errno::TIMEDOUT => "the access log's file takes no lines: its disk does not answer".into(),
                error => format!("the access log cannot be written: {}", std::io::Error::from(error)),
            });
        }
        if lasting {
            self.give_up();
        }
    }

    /// Drops the lines.
    fn give_up(&mut self) {
        if !self.lines.is_empty() {
            let lost = count(&self.lines);
            self.lose(lost);
            self.lines.clear();
            self.sink.mark_torn();
        }
    }

    /// Counts lines that are lost.
    pub(crate) fn lose(&mut self, lines: u64) {
        self.lost += lines;
        if let Some(all_lost) = self.all_lost {
            all_lost.fetch_add(lines, Ordering::Relaxed);
        }
    }

    /// There is room again.
    #[cold]
    pub(crate) fn recover(&mut self) {
        self.refused = None;
        self.problems.lost += std::mem::take(&mut self.lost);
    }
}

/// How many lines these are.
pub(crate) fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lose(log: &AccessLog, lines: usize) {
        let mut waiting = log.queue.lock();
        waiting.lines = b"line\n".repeat(lines);
        waiting.refuse(Errno::PIPE);
        waiting.recover();
    }

    #[test]
    fn a_disk_that_does_not_answer_blocks_no_request() {
        const LENGTH: usize = 30_000;
        let (reader, writer) = std::io::pipe().unwrap();
        let log = {
            let format = "x".repeat(LENGTH).replacen('x', "%%", 1);
            AccessLog::new(Sink::blocking(writer.into()), &format, String::new(), None, None).unwrap()
        };
        let state = crate::log::line::State::Closed;
        let entry = LoggedRequest {
            client: None,
            head: None,
            status: 200,
            size: 0,
            sent: 0,
            state,
            microseconds: 0,
            number: 1,
            kept: 0,
            received: 0,
            is_trusted: false,
            collected: None,
        };
        // More than a pipe holds, and less than may wait.
        for _ in 0..30 {
            log.add(&entry);
        }
        assert!(log.flush());
        let mut written = vec![0; 30 * (LENGTH + 1)];
        std::io::Read::read_exact(&mut { reader }, &mut written).unwrap();
        assert_eq!(count(&written), 30);
        log.close();
        assert!(!log.flush());
        assert!(!log.report_problems(|problems| panic!("nothing is lost, but {problems}")));
    }

    /// Before lost lines are reported, more may be lost; and the error log may be full, too.
    #[test]
    fn every_lost_line_is_reported() {
        let (reader, writer) = std::io::pipe().unwrap();
        let log = AccessLog::new(Sink::lines(writer.into(), false), "%r", String::new(), None, None).unwrap();
        lose(&log, 3);
        lose(&log, 2);
        assert!(log.report_problems(|_| {
            lose(&log, 4);
            Err(Errno::AGAIN)
        }));
        let mut reported = String::new();
        let mut report = |problems: &str| {
            reported.push_str(problems);
            Ok(())
        };
        assert!(!log.report_problems(&mut report) && !log.report_problems(&mut report));
        assert_eq!(
            reported,
            "the access log cannot be written: Broken pipe (os error 32); 9 lines of the access log could not be \
             written, and are lost"
        );
        // A report to a closed error log is not repeated.
        lose(&log, 1);
        assert!(!log.report_problems(|_| Err(Errno::PIPE)));
        drop(reader);
    }
}
