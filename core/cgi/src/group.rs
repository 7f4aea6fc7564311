//! Process group of a program: killed as a whole, its leader always reaped (pidfd_open(2)).

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};

use crate::stderr::StderrReader;
use crate::timespec;

/// Interval at which the leader is checked while its standard error is read.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How a process has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Status(ExitStatus),
    /// Other code in this process has reaped it.
    Unknown,
}

/// The leader of a process group of its own.
pub(crate) struct Group {
    child: Child,
    /// Standard error of the group.
    pub(crate) stderr: StderrReader,
    ending: Option<Ending>,
    /// Called once, when the leader has been reaped.
    done: Option<Box<dyn FnOnce() + Send>>,
}

impl Group {
    pub(crate) fn new(child: Child, stderr: StderrReader, done: Box<dyn FnOnce() + Send>) -> Self {
        Group { child, stderr, ending: None, done: Some(done) }
    }

    fn leader(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id().try_into().ok()?)
    }

    /// How its leader has ended, if it is known that it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Reaps the leader if it has ended.
    fn try_reap(&mut self) -> bool {
        if self.ending.is_none() {
            self.ending = match self.child.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(Ending::Status(status)),
                Err(_) => Some(Ending::Unknown),
            };
        }
        if self.ending.is_some() {
            self.call_done();
        }
        self.ending.is_some()
    }

    fn call_done(&mut self) {
        if let Some(done) = self.done.take() {
            done();
        }
    }

    /// Waits for the end of the leader, not longer than this, and reaps it. `false`: it is still alive.
    pub(crate) fn wait(&mut self, time: Duration) -> bool {
        if self.try_reap() {
            return true;
        }
        let until = Instant::now() + time;
        let Some(pidfd) = self.leader().and_then(|leader| pidfd_open(leader, PidfdFlags::empty()).ok()) else {
            // No descriptors left: poll instead.
            while !self.try_reap() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            return self.try_reap();
        };
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            let polled = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timespec(rest)));
            if self.try_reap() {
                return true;
            }
            if rest.is_zero() || polled.is_err_and(|error| error != Errno::INTR) {
                return false;
            }
        }
    }

    /// Kills the group. The leader must not have been reaped yet, or its number might belong to another group.
    pub(crate) fn kill(&self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.ending.is_none()
            && let Some(leader) = self.leader()
            && waitid(WaitId::Pid(leader), options).is_ok()
        {
            // All of them may have ended.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }

    /// Waits until `until` for the program to end, then kills the group. Runs in its own thread, as even a killed process may be
    /// blocked in disk I/O.
    pub(crate) fn reap_in_background(mut self, until: Instant) {
        while Instant::now() < until && !self.try_reap() {
            if self.stderr.stream().is_some() {
                self.stderr.wait_and_read(CHECK_INTERVAL);
            } else {
                self.wait(until.saturating_duration_since(Instant::now()));
            }
        }
        self.stderr.read_last();
        self.kill();
        while !self.wait(Duration::from_secs(3_600)) {}
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.call_done();
    }
}
