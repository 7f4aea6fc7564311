//! The poller: epoll, its timer and its wake-up pipe. System calls only.
//!
//! Connections are registered once, edge-triggered, for input and output; there is no `epoll_ctl` after that.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, Result};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::sys::ServerFd;

/// The byte that [`Poller::nudge`] writes; no signal has this number.
const NUDGE: u8 = 0;
/// Events taken at once.
pub(crate) const BATCH: usize = 256;

/// The source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// [`Poller::wake`] or [`Poller::nudge`] was called.
    Wake,
    /// The timer has expired.
    Timer,
    /// A listening socket, by its number.
    Listener(u32),
    /// The control channel.
    Channel,
    /// A predecessor has passed a connection.
    Handoff,
    /// A connection, by the slot and the generation it was registered with.
    Connection { index: u32, generation: u32 },
}

impl Source {
    fn encode(self) -> u64 {
        match self {
            Source::Wake => 0,
            Source::Timer => 1 << 32,
            Source::Listener(number) => 2 << 32 | u64::from(number),
            Source::Channel => 3 << 32,
            Source::Handoff => 4 << 32,
            Source::Connection { index, generation } => {
                u64::from(generation % GENERATIONS + 5) << 32 | u64::from(index)
            }
        }
    }

    fn decode(data: u64) -> Self {
        let low = data as u32;
        match (data >> 32) as u32 {
            0 => Source::Wake,
            1 => Source::Timer,
            2 => Source::Listener(low),
            3 => Source::Channel,
            4 => Source::Handoff,
            generation => Source::Connection { index: low, generation: generation - 5 },
        }
    }
}

/// Generations are counted modulo this, so that they leave room for the other sources.
pub(crate) const GENERATIONS: u32 = 1 << 31;

/// An event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) source: Source,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer has closed its side, or the connection is broken.
    pub(crate) hangup: bool,
}

/// The poller.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: ServerFd,
    timer: ServerFd,
    wake: (ServerFd, ServerFd),
    /// A byte of [`Poller::nudge`] is in the pipe, or will be.
    is_nudged: AtomicBool,
}

impl Poller {
    pub(crate) fn new() -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // A pipe and not an eventfd: Python's `signal.set_wakeup_fd` writes single bytes.
        let wake = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        let (wake, is_nudged) = ((wake.0.into(), wake.1.into()), AtomicBool::new(false));
        let poller = Poller { epoll: epoll.into(), timer: timer.into(), wake, is_nudged };
        poller.add(poller.timer.as_fd(), Source::Timer)?;
        poller.add(poller.wake.0.as_fd(), Source::Wake)?;
        Ok(poller)
    }

    /// Readable when there is something to do.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Whether there is something to do, which this takes from no thread.
    pub(crate) fn has_events(&self) -> bool {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&AT_ONCE)).is_ok_and(|ready| ready > 0)
    }

    /// Any byte written here wakes the poller.
    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.1.as_fd()
    }

    pub(crate) fn wake(&self) {
        // A full pipe wakes as well.
        let _ = rustix::io::write(&self.wake.1, b"!");
    }

    /// Makes [`Poller::wait`] return, because a connection has been made ready under the lock under which [`Poller::clear_wake`] is
    /// called.
    pub(crate) fn nudge(&self) {
        if !self.is_nudged.swap(true, Ordering::AcqRel) {
            let _ = rustix::io::write(&self.wake.1, &[NUDGE]);
        }
    }

    /// Empties the pipe. `false`: it held only bytes of [`Poller::nudge`].
    pub(crate) fn clear_wake(&self) -> bool {
        let was_woken = self.empty_pipe();
        // Behind the last read: a byte that comes before is taken with the others, and would be the last one ever. Whoever writes
        // none until here has made its connection ready before the lock was taken.
        self.is_nudged.store(false, Ordering::Release);
        was_woken
    }

    /// `false`: it held only bytes of [`Poller::nudge`].
    fn empty_pipe(&self) -> bool {
        let (mut rest, mut only_nudged) = ([0; 64], false);
        while let Ok(length @ 1..) = rustix::io::read(&self.wake.0, &mut rest) {
            if rest[..length].iter().any(|byte| *byte != NUDGE) {
                // Only this process writes to it, so this ends.
                while matches!(rustix::io::read(&self.wake.0, &mut rest), Ok(length) if length == rest.len()) {}
                return true;
            }
            only_nudged = true;
            if length < rest.len() {
                break;
            }
        }
        !only_nudged
    }

    /// Registers a descriptor. A thread that gets an edge-triggered event (`ET`) must take everything that has arrived;
    /// the others are reported to all threads and workers until nothing is left.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, source: Source) -> Result<()> {
        let flags = match source {
            Source::Wake | Source::Timer => EventFlags::IN | EventFlags::ET,
            Source::Listener(_) | Source::Handoff => EventFlags::IN,
            Source::Channel => EventFlags::IN | EventFlags::RDHUP | EventFlags::ET,
            Source::Connection { .. } => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
        };
        epoll::add(&self.epoll, fd, EventData::new_u64(source.encode()), flags)
    }

    /// Registers a listening socket. `in_turn` (EPOLLEXCLUSIVE): a new connection wakes only the first waiting poller of those
    /// that have registered the socket in turn.
    pub(crate) fn add_listener(&self, fd: BorrowedFd<'_>, number: u32, in_turn: bool) -> Result<()> {
        let source = Source::Listener(number);
        if !in_turn {
            return self.add(fd, source);
        }
        epoll::add(&self.epoll, fd, EventData::new_u64(source.encode()), EventFlags::IN | EventFlags::EXCLUSIVE)
    }

    pub(crate) fn remove(&self, socket: BorrowedFd<'_>) -> Result<()> {
        epoll::delete(&self.epoll, socket)
    }

    /// Makes [`Source::Timer`] happen in so many milliseconds.
    pub(crate) fn set_timer(&self, milliseconds: u64) {
        let value = Timespec {
            tv_sec: (milliseconds / 1_000) as i64,
            // Zero would disarm the timer.
            tv_nsec: (milliseconds % 1_000 * 1_000_000).max(1) as _,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }

    /// Waits for events, or only looks, and passes each to `note`. Says how many there were.
    pub(crate) fn wait(&self, block: bool, mut note: impl FnMut(Event)) -> std::result::Result<usize, Errno> {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut room = [const { MaybeUninit::uninit() }; BATCH];
        let (events, _) = epoll::wait(&self.epoll, &mut room, if block { None } else { Some(&AT_ONCE) })?;
        let count = events.len();
        for event in events {
            let flags = event.flags;
            note(Event {
                source: Source::decode(event.data.u64()),
                readable: flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR),
                writable: flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR),
                hangup: flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
            });
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_survive_encoding() {
        let connection = Source::Connection { index: 7, generation: GENERATIONS - 1 };
        for source in [Source::Wake, Source::Timer, Source::Listener(3), Source::Channel, Source::Handoff, connection] {
            assert_eq!(Source::decode(source.encode()), source);
        }
    }

    #[test]
    fn one_byte_is_written_until_the_pipe_is_emptied() {
        let poller = Poller::new().unwrap();
        let mut bytes = [0; 4];
        poller.nudge();
        poller.nudge();
        assert_eq!(rustix::io::read(&poller.wake.0, &mut bytes), Ok(1));
        poller.nudge();
        assert_eq!(rustix::io::read(&poller.wake.0, &mut bytes), Err(Errno::AGAIN));
        poller.clear_wake();
        poller.nudge();
        assert!(poller.has_events() && !poller.clear_wake());
    }
}
