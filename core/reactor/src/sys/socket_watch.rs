//! Notices events of sockets that the poller reports too: an epoll of its own. System calls only.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Result;

use crate::sys::ServerFd;
use crate::sys::poller::BATCH;

/// An epoll. A socket that is closed leaves it.
#[derive(Debug)]
pub(crate) struct SocketWatch(ServerFd);

impl SocketWatch {
    pub(crate) fn new() -> Result<Self> {
        Ok(SocketWatch(epoll::create(CreateFlags::CLOEXEC)?.into()))
    }

    /// Watches a socket.
    pub(crate) fn add(&self, socket: BorrowedFd<'_>) -> Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.0, socket, EventData::new_u64(socket.as_raw_fd() as u64), flags)
    }

    /// The sockets with events since the last call.
    pub(crate) fn sockets(&self) -> Vec<RawFd> {
        const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut room = [const { MaybeUninit::uninit() }; BATCH];
        match epoll::wait(&self.0, &mut room, Some(&AT_ONCE)) {
            Ok((events, _)) => events.iter().map(|event| event.data.u64() as RawFd).collect(),
            Err(_) => Vec::new(),
        }
    }
}

impl AsFd for SocketWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
