//! A program that runs: its output, its head first, and its end.

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
use crate::head::{Head, Malformed};
use crate::input::Input;
use crate::stderr::{Report, StderrReader};
use crate::{is_drained, timespec};

/// What is read at once: as much as a pipe holds.
const AT_ONCE: usize = 64 << 10;
/// What is read at first: most programs say little, and room that nobody needs is given back to the system, which has other
/// threads of this process stop for it.
const AT_FIRST: usize = 8 << 10;
/// Octets of a body that are waited for ...
const GATHERED: usize = 256 << 10;
/// ... and how long: most programs end a moment after their head, and then their answer leaves in one piece, with its
/// length.
const GATHERING: Duration = Duration::from_millis(5);
/// Who writes less than this at once, as a shell does, line by line, most likely writes on ...
const LITTLE: usize = 4 << 10;
/// ... and for so long only its end wakes us, not its next line: a switch to us and back costs more than the line. Who
/// fills the pipe meanwhile does not wait for longer than that.
const HUSH: Duration = Duration::from_millis(2);
/// A program that has closed its output ends at once, or goes on with something that nobody waits for.
const ENDING: Duration = Duration::from_millis(10);
/// A process that was killed is gone at once, but for one that waits for a disk.
const KILLED: Duration = Duration::from_millis(200);

/// Why a program has no answer, or no more of it.
#[derive(Debug)]
pub enum Fault {
    /// It has run for longer than its limit in all.
    Late,
    /// It has written nothing for too long.
    Silent,
    /// Its output does not begin with a head.
    Malformed(Malformed),
    /// It has ended without a complete head.
    Headless(String),
    /// It was killed, so nobody knows whether its output is complete.
    Killed(String),
    /// Its output cannot be read.
    Unreadable(io::Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Late => formatter.write_str("it has run for too long"),
            Fault::Silent => formatter.write_str("it has written nothing for too long"),
            Fault::Malformed(malformed) => malformed.fmt(formatter),
            Fault::Headless(how) => write!(formatter, "no head of an answer, and then {how}"),
            Fault::Killed(how) => write!(formatter, "{how} before its answer was complete"),
            Fault::Unreadable(error) => write!(formatter, "its output cannot be read: {error}"),
        }
    }
}

/// How long a program may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Without a byte on standard output or standard error.
    pub silence: Duration,
    /// In all, if there is a limit.
    pub total: Option<Duration>,
}

/// The next of what a program says behind its head.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Some of its body.
    Content(Vec<u8>),
    /// It says nothing for now.
    Nothing,
    /// Its body is complete.
    End,
}

/// A program that runs. Dropped, it is ended with all that it has started, and reaped.
#[derive(Debug)]
pub struct Program {
    /// Until it is dropped.
    group: Option<Group>,
    /// Until its end.
    output: Option<ChildStdout>,
    /// What was read of the output, and not taken.
    gathered: Vec<u8>,
    /// Its head was read, and is not yet taken: the body is gathered until then.
    head: Option<(Head, Instant)>,
    /// When its first words were read: behind that only `GATHERING` is there to hush.
    begun: Option<Instant>,
    /// Until then only its end is waited for.
    hushed: Option<Instant>,
    /// When its last output was read, or when it was started.
    heard: Instant,
    silence: Duration,
    /// When it has to have ended.
    deadline: Option<Instant>,
}

impl Program {
    /// Starts the program `file`, an absolute path, in its folder, with nothing but this environment and its standard
    /// streams.
    ///
    /// `report` is called with each line of its standard error, `done` when it has been reaped; both by whoever waits for
    /// the program.
    pub fn start(
        file: &Path,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        input: Input<'_>,
        limits: Limits,
        report: Report,
        done: Box<dyn FnOnce() + Send>,
    ) -> io::Result<Program> {
        let mut command = Command::new(file);
        // Nothing else is set, or the standard library would have to fork (library/std/src/sys/process/unix). What it
        // starts by posix_spawn has no signal blocked, and SIGPIPE is not ignored as in Python.
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
            gathered: Vec::new(),
            head: None,
            begun: None,
            hushed: None,
            heard: now,
            silence: limits.silence,
            deadline: limits.total.map(|total| later(now, total)),
        })
    }

    /// Waits for the head, not longer than this. `None`: it has not come yet.
    pub fn head(&mut self, time: Duration) -> Result<Option<Head>, Fault> {
        let until = Instant::now() + time;
        loop {
            if let Some((head, gathered)) = self.head.take() {
                let now = Instant::now();
                if self.output.is_some() && self.gathered.len() < GATHERED && now < gathered {
                    self.head = Some((head, gathered));
                    self.look(gathered)?;
                    continue;
                }
                if self.output.is_none() {
                    self.check_ending()?;
                }
                return Ok(Some(head));
            }
            if let Some((head, length)) = Head::parse(&self.gathered).map_err(Fault::Malformed)? {
                self.gathered.drain(..length);
                self.head = Some((head, Instant::now() + GATHERING));
            } else if self.output.is_none() {
                return Err(Fault::Headless(self.how_it_ended()));
            } else if Instant::now() >= until {
                return Ok(None);
            } else {
                self.look(until)?;
            }
        }
    }

    /// The body, if all of it has come with the head.
    pub fn whole(&mut self) -> Option<Vec<u8>> {
        self.output.is_none().then(|| std::mem::take(&mut self.gathered))
    }

    /// Waits for the next piece of the body, not longer than this.
    pub fn piece(&mut self, time: Duration) -> Result<Piece, Fault> {
        if self.gathered.is_empty() && self.output.is_some() {
            self.look(Instant::now() + time)?;
        }
        Ok(match (self.gathered.is_empty(), &self.output) {
            (false, _) => Piece::Content(std::mem::take(&mut self.gathered)),
            (true, Some(_)) => Piece::Nothing,
            (true, None) => {
                self.check_ending()?;
                Piece::End
            }
        })
    }

    /// Whether it has ended and was reaped: to drop it takes no time.
    pub fn has_ended(&self) -> bool {
        self.group.as_ref().is_none_or(|group| group.ending().is_some())
    }

    /// The status with which it has ended, if that is known.
    pub fn exit_code(&self) -> Option<i32> {
        match self.group.as_ref()?.ending()? {
            Ending::Status(status) => status.code(),
            Ending::Unknown => None,
        }
    }

    /// When it has been silent for too long, if it writes nothing until then.
    fn silent_at(&self) -> Instant {
        later(self.heard, self.silence)
    }

    /// Waits for something to happen, not longer than until then or until one of its limits, and reads what there is.
    fn look(&mut self, until: Instant) -> Result<(), Fault> {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Fault::Late);
        }
        let hushed = self.hushed.filter(|hushed| now < *hushed);
        // The end is told even to who asks for nothing.
        let wanted = if hushed.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let until = hushed.unwrap_or_else(|| self.silent_at()).min(until);
        let rest = self.deadline.unwrap_or(until).min(until).saturating_duration_since(now);
        let errors = self.group.as_ref().and_then(|group| group.stderr.stream());
        let mut streams: Vec<PollFd<'_>> = Vec::with_capacity(2);
        streams.extend(self.output.as_ref().map(|output| PollFd::new(output, wanted)));
        streams.extend(errors.map(|errors| PollFd::new(errors, wanted)));
        match poll(&mut streams, Some(&timespec(rest))) {
            // Looked at here and not before: what it wrote while nobody read is no silence.
            Ok(0) if hushed.is_none() && Instant::now() >= self.silent_at() => return Err(Fault::Silent),
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(Fault::Unreadable(error.into())),
        }
        let mut seen = streams.iter().map(PollFd::revents);
        let of_output = self.output.as_ref().and_then(|_| seen.next()).unwrap_or(PollFlags::empty());
        let of_errors = seen.next().unwrap_or(PollFlags::empty());
        drop(streams);
        self.heard = Instant::now();
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
            self.see_end();
        }
        while let Some(output) = &self.output {
            let room = if self.begun.is_none() { AT_FIRST } else { AT_ONCE };
            if self.gathered.capacity() - self.gathered.len() < room / 2 {
                self.gathered.reserve(room);
            }
            match read(output, spare_capacity(&mut self.gathered)) {
                Ok(0) => self.see_end(),
                // Nobody else can write, so there is no waiting for the end.
                Ok(_) if seen.contains(PollFlags::HUP) && self.gathered.len() < GATHERED => {}
                Ok(length) => {
                    self.hush(length);
                    break;
                }
                Err(Errno::INTR) => break,
                Err(error) => return Err(Fault::Unreadable(error.into())),
            }
        }
        Ok(())
    }

    /// So much was read just now: decides whether the next line is to wake us.
    fn hush(&mut self, length: usize) {
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        self.hushed = (length < LITTLE).then(|| (now + HUSH).min(begun + GATHERING));
    }

    /// Its output has ended: most likely the program has.
    fn see_end(&mut self) {
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
        // One that has closed its output has done its duty, and may go on as long as a silent one.
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
        // Without a thread nobody waits, and it is a zombie until this process ends.
        let _ =
            std::thread::Builder::new().name("poorhttp-cgi".to_owned()).spawn(move || group.reap_in_background(until));
    }
}

/// A point in time; one that cannot be told is as good as never.
fn later(start: Instant, time: Duration) -> Instant {
    start.checked_add(time).unwrap_or(start + Duration::from_secs(1 << 30))
}
