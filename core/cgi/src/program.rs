//! A running CGI program: reads its head and body, enforces time limits, ends it.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};

use crate::group::{Ending, Group};
use crate::head::Head;
use crate::input::Input;
use crate::stderr::{Report, StderrReader};
use crate::{is_drained, timespec};

/// Bytes read at once: as many as a pipe holds.
const AT_ONCE: usize = 64 << 10;
/// Bytes of the first read: most outputs are small, and freeing a larger buffer unmaps memory, which interrupts other threads.
const AT_FIRST: usize = 8 << 10;
/// Bytes of a body up to which it is collected before the head is returned.
const MOST_COLLECTED: usize = 256 << 10;
/// Time for which the body is collected: most programs end soon after their head, and their response can then be sent at once
/// and with a length.
const COLLECTING: Duration = Duration::from_millis(5);
/// A shorter read suggests a program that writes line by line, and reading is paused for [`READ_PAUSE`].
const SHORT_READ: usize = 4 << 10;
/// While reading is paused, only the end of the output wakes this thread: a wake-up for each line costs more than the line. A
/// program that fills the pipe meanwhile waits no longer than this.
const READ_PAUSE: Duration = Duration::from_millis(2);
/// How long to wait for the exit of a program that has closed its output.
const ENDING: Duration = Duration::from_millis(10);
/// How long to wait for a killed process, which may be blocked in disk I/O.
const KILLED: Duration = Duration::from_millis(200);

/// Why a response is missing or incomplete.
#[derive(Debug)]
pub enum Fault {
    /// The program has exceeded its total time.
    Late,
    /// It has written nothing for too long.
    Silent,
    /// Its output does not begin with a head.
    Malformed(String),
    /// It has ended before its head was complete.
    Headless(String),
    /// It was killed, so its output may be incomplete.
    Killed(String),
    /// Its output cannot be read.
    Unreadable(io::Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Late => formatter.write_str("it has run for too long"),
            Fault::Silent => formatter.write_str("it has written nothing for too long"),
            Fault::Malformed(error) => formatter.write_str(error),
            Fault::Headless(how) => write!(formatter, "it wrote no complete response head: {how}"),
            Fault::Killed(how) => write!(formatter, "{how} before its response was complete"),
            Fault::Unreadable(error) => write!(formatter, "its output cannot be read: {error}"),
        }
    }
}

/// Time limits of a program.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time without output on standard output or standard error.
    pub silence: Duration,
    /// Total time, if limited.
    pub total: Option<Duration>,
}

/// Result of reading the body.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// The next bytes.
    Content(Vec<u8>),
    /// Nothing was written yet.
    Nothing,
    /// The body is complete.
    End,
}

/// A running program. Dropping it kills its process group and reaps it.
pub struct Program {
    /// `None` only while it is dropped.
    group: Option<Group>,
    /// `None` after its end.
    output: Option<ChildStdout>,
    /// Output that was read and not yet returned.
    collected: Vec<u8>,
    /// A head that was read and not yet returned, and until when the body is collected.
    head: Option<(Head, Instant)>,
    /// When the first output was read. Reading is paused only during [`COLLECTING`] after that.
    begun: Option<Instant>,
    /// Until when reading is paused.
    paused: Option<Instant>,
    /// When it was started or its last output was read.
    last_output: Instant,
    silence: Duration,
    deadline: Option<Instant>,
}

impl Program {
    /// Starts the program `file`, an absolute path, in its folder, with this environment and its standard streams only.
    ///
    /// `report` is called with each line of standard error, `done` after reaping; both in a thread that waits for the program.
    pub fn start(
        file: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        input: Input<'_>,
        limits: Limits,
        report: Report,
        done: Box<dyn FnOnce() + Send>,
    ) -> io::Result<Program> {
        let mut command = Command::new(file);
        // With other settings the standard library would fork (library/std/src/sys/process/unix). Its posix_spawn unblocks
        // all signals and restores SIGPIPE, which Python ignores.
        command.env_clear().envs(environment).process_group(0).stdin(input.into_stdio()?);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = file.parent() {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        let now = Instant::now();
        let output = child.stdout.take();
        let stderr = StderrReader::new(child.stderr.take(), report, now);
        Ok(Program {
            group: Some(Group::new(child, stderr, done)),
            output,
            collected: Vec::new(),
            head: None,
            begun: None,
            paused: None,
            last_output: now,
            silence: limits.silence,
            deadline: limits.total.map(|total| later(now, total)),
        })
    }

    /// Waits up to `time` for the head. `None`: it is not complete yet.
    pub fn head(&mut self, time: Duration) -> Result<Option<Head>, Fault> {
        let until = Instant::now() + time;
        loop {
            if let Some((head, collected)) = self.head.take() {
                let now = Instant::now();
                if self.output.is_some() && self.collected.len() < MOST_COLLECTED && now < collected {
                    self.head = Some((head, collected));
                    self.wait_and_read(collected)?;
                    continue;
                }
                if self.output.is_none() {
                    self.check_ending()?;
                }
                return Ok(Some(head));
            }
            if let Some((head, length)) = Head::parse(&self.collected).map_err(Fault::Malformed)? {
                self.collected.drain(..length);
                self.head = Some((head, Instant::now() + COLLECTING));
            } else if self.output.is_none() {
                return Err(Fault::Headless(self.how_it_ended()));
            } else if Instant::now() >= until {
                return Ok(None);
            } else {
                self.wait_and_read(until)?;
            }
        }
    }

    /// The rest of the body, if the output has ended.
    pub fn whole(&mut self) -> Option<Vec<u8>> {
        self.output.is_none().then(|| std::mem::take(&mut self.collected))
    }

    /// Waits up to `time` for the next piece of the body.
    pub fn piece(&mut self, time: Duration) -> Result<Piece, Fault> {
        if self.collected.is_empty() && self.output.is_some() {
            self.wait_and_read(Instant::now() + time)?;
        }
        Ok(match (self.collected.is_empty(), &self.output) {
            (false, _) => Piece::Content(std::mem::take(&mut self.collected)),
            (true, Some(_)) => Piece::Nothing,
            (true, None) => {
                self.check_ending()?;
                Piece::End
            }
        })
    }

    /// Whether it was reaped, so that dropping it does not block.
    pub fn has_ended(&self) -> bool {
        self.group.as_ref().is_none_or(|group| group.ending().is_some())
    }

    /// Its exit status, if known.
    pub fn exit_code(&self) -> Option<i32> {
        match self.group.as_ref()?.ending()? {
            Ending::Status(status) => status.code(),
            Ending::Unknown => None,
        }
    }

    /// When the limit of silence is reached.
    fn silent_at(&self) -> Instant {
        later(self.last_output, self.silence)
    }

    /// Waits for output until `until` or a time limit, and reads it.
    fn wait_and_read(&mut self, until: Instant) -> Result<(), Fault> {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Fault::Late);
        }
        let paused = self.paused.filter(|paused| now < *paused);
        // poll(2) reports the end (HUP) even without requested events.
        let wanted = if paused.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let until = paused.unwrap_or_else(|| self.silent_at()).min(until);
        let rest = self.deadline.unwrap_or(until).min(until).saturating_duration_since(now);
        let errors = self.group.as_ref().and_then(|group| group.stderr.stream());
        let mut streams: Vec<PollFd<'_>> = Vec::with_capacity(2);
        streams.extend(self.output.as_ref().map(|output| PollFd::new(output, wanted)));
        streams.extend(errors.map(|errors| PollFd::new(errors, wanted)));
        match poll(&mut streams, Some(&timespec(rest))) {
            // Checked after the poll: output may have been waiting in the pipe.
            Ok(0) if paused.is_none() && Instant::now() >= self.silent_at() => return Err(Fault::Silent),
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(Fault::Unreadable(error.into())),
        }
        let mut seen = streams.iter().map(PollFd::revents);
        let of_output = self.output.as_ref().and_then(|_| seen.next()).unwrap_or(PollFlags::empty());
        let of_errors = seen.next().unwrap_or(PollFlags::empty());
        drop(streams);
        self.last_output = Instant::now();
        if !of_errors.is_empty()
            && let Some(group) = &mut self.group
        {
            group.stderr.take(wanted, of_errors);
        }
        if !of_output.is_empty() {
            self.read_output(wanted, of_output)?;
        }
        Ok(())
    }

    fn read_output(&mut self, wanted: PollFlags, seen: PollFlags) -> Result<(), Fault> {
        if is_drained(wanted, seen) {
            self.on_eof();
        }
        while let Some(output) = &self.output {
            let room = if self.begun.is_none() { AT_FIRST } else { AT_ONCE };
            if self.collected.capacity() - self.collected.len() < room / 2 {
                self.collected.reserve(room);
            }
            match read(output, spare_capacity(&mut self.collected)) {
                Ok(0) => self.on_eof(),
                // All writers have closed the pipe, so the next read does not block.
                Ok(_) if seen.contains(PollFlags::HUP) && self.collected.len() < MOST_COLLECTED => {}
                Ok(length) => {
                    self.pause_reading(length);
                    break;
                }
                Err(Errno::INTR) => break,
                Err(error) => return Err(Fault::Unreadable(error.into())),
            }
        }
        Ok(())
    }

    /// Pauses reading if the last read was short.
    fn pause_reading(&mut self, length: usize) {
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        self.paused = (length < SHORT_READ).then(|| (now + READ_PAUSE).min(begun + COLLECTING));
    }

    /// Handles the end of the output: most likely the program has ended.
    fn on_eof(&mut self) {
        self.output = None;
        if let Some(group) = &mut self.group
            && group.wait(ENDING)
        {
            group.stderr.read_last();
        }
    }

    fn check_ending(&self) -> Result<(), Fault> {
        match self.group.as_ref().and_then(Group::ending) {
            Some(Ending::Status(status)) if status.signal().is_some() => Err(Fault::Killed(self.how_it_ended())),
            _ => Ok(()),
        }
    }

    fn how_it_ended(&self) -> String {
        match self.group.as_ref().and_then(Group::ending) {
            Some(Ending::Status(status)) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("it ended with status {code}"),
                (None, Some(signal)) => format!("it was killed by signal {signal}"),
                (None, None) => "it ended".to_owned(),
            },
            Some(Ending::Unknown) => "it ended".to_owned(),
            None => "it closed its output".to_owned(),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let Some(mut group) = self.group.take() else { return };
        if group.ending().is_some() {
            return;
        }
        // A program that has closed its output may finish its work within its time limits.
        let limit = self.deadline.map_or(self.silent_at(), |deadline| deadline.min(self.silent_at()));
        let goes_on = self.output.take().is_none() && Instant::now() < limit;
        if !goes_on {
            group.kill();
            if group.wait(KILLED) {
                group.stderr.read_last();
                return;
            }
        }
        let until = if goes_on { limit } else { Instant::now() };
        // If no thread can be started, the program stays a zombie until this process ends.
        let _ =
            std::thread::Builder::new().name("poorhttp-cgi".to_owned()).spawn(move || group.reap_in_background(until));
    }
}

/// `start + time`, or a time far in the future if that overflows.
fn later(start: Instant, time: Duration) -> Instant {
    start.checked_add(time).unwrap_or(start + Duration::from_secs(1 << 30))
}
