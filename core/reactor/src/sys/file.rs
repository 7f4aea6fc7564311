//! Opens and reads files and pipes: those of the logs, and those that are sent.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::{Errno, Result, pread, retry_on_intr};
use zeroize::Zeroizing;

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

/// All of a file, wherever other processes have read to. Not more than `most` bytes.
pub(crate) fn read_all(fd: &OwnedFd, most: usize) -> Result<Zeroizing<Vec<u8>>> {
    let size = usize::try_from(fstat(fd)?.st_size).unwrap_or(usize::MAX).min(most);
    let mut bytes = Zeroizing::new(vec![0; size]);
    let mut filled = 0;
    while filled < bytes.len() {
        match retry_on_intr(|| pread(fd, &mut bytes[filled..], filled as u64))? {
            0 => return Err(Errno::IO),
            length => filled += length,
        }
    }
    Ok(bytes)
}

/// Writes as much as there is room for.
pub(crate) fn write(fd: &OwnedFd, bytes: &[u8]) -> Result<usize> {
    retry_on_intr(|| rustix::io::write(fd, bytes))
}

/// Reads at a position. 0: the file ends there.
pub(crate) fn read_at(file: impl AsFd, room: &mut [u8], at: u64) -> Result<usize> {
    retry_on_intr(|| rustix::io::pread(&file, &mut *room, at))
}

/// The path of an open file, if /proc is there.
pub(crate) fn path_of(fd: impl AsFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())).ok()
}

/// The error of reading a file at a position, if that made sendfile(2) fail with `error`. `None`: the socket did.
#[cold]
pub(crate) fn read_error(fd: impl AsFd, at: u64, error: Errno) -> Option<Errno> {
    match error {
        Errno::PIPE
        | Errno::CONNRESET
        | Errno::CONNABORTED
        | Errno::NOTCONN
        | Errno::SHUTDOWN
        | Errno::NETDOWN
        | Errno::NETRESET
        | Errno::NOBUFS
        | Errno::PROTO => None,
        // Both can fail so: a file of a network file system as well.
        Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::HOSTDOWN | Errno::NETUNREACH | Errno::NOMEM => {
            read_at(fd, &mut [0], at).err()
        }
        error => Some(error),
    }
}

/// Whether a pipe or a socket has room, now or within a part of a second; also if its reader has gone.
pub(crate) fn is_writable(fd: impl AsFd, timeout: Duration) -> bool {
    let timeout = Timespec { tv_sec: 0, tv_nsec: timeout.subsec_nanos().into() };
    poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}
