//! Opens and reads files and pipes: those of the logs.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::{Result, retry_on_intr};

/// The type of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    RegularFile,
    Pipe,
    Socket,
    /// A terminal, say.
    Other,
}

pub(crate) fn kind(fd: &OwnedFd) -> Kind {
    match fstat(fd).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::RegularFile) => Kind::RegularFile,
        Ok(FileType::Fifo) => Kind::Pipe,
        Ok(FileType::Socket) => Kind::Socket,
        _ => Kind::Other,
    }
}

/// Opens a pipe once more for writing, non-blocking without an effect on other processes.
pub(crate) fn reopen_nonblocking(pipe: &OwnedFd) -> Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

/// Writes as much as there is room for.
pub(crate) fn write(fd: &OwnedFd, bytes: &[u8]) -> Result<usize> {
    retry_on_intr(|| rustix::io::write(fd, bytes))
}

/// Whether a pipe or a socket has room, now or within a part of a second; also if its reader has gone.
pub(crate) fn is_writable(fd: impl AsFd, timeout: Duration) -> bool {
    let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.subsec_nanos().into() };
    poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}
