//! Wakes a thread that waits for a socket: an eventfd.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, Result, read, write};

use crate::sys::ServerFd;

/// An eventfd.
#[derive(Debug)]
pub(crate) struct Wakeup(ServerFd);

impl Wakeup {
    pub(crate) fn new() -> Result<Self> {
        Ok(Wakeup(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?.into()))
    }

    /// Ends the wait, or the next one.
    pub(crate) fn wake(&self) {
        let _ = write(&self.0, &1u64.to_ne_bytes());
    }

    /// Waits for a call of [`Wakeup::wake`], for input on `socket` if `reads`, and for room if `writes`; at most so many milliseconds. `true`: a
    /// signal has come.
    pub(crate) fn wait_with(&self, socket: BorrowedFd<'_>, reads: bool, writes: bool, milliseconds: u64) -> bool {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, reads);
        events.set(PollFlags::OUT, writes);
        let mut sockets =
            [PollFd::from_borrowed_fd(socket, events), PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)];
        let timeout =
            Timespec { tv_sec: (milliseconds / 1_000) as i64, tv_nsec: (milliseconds % 1_000 * 1_000_000) as _ };
        let waited = poll(&mut sockets, Some(&timeout));
        let _ = read(&self.0, &mut [0; 8]);
        waited == Err(Errno::INTR)
    }
}
