//! System calls: the only package of the crate that uses the operating system's interface.
//!
//! ```text
//! poller.rs       epoll, its timer and its wake-up pipe
//! socket_watch.rs notices events of sockets that the poller reports too
//! socket.rs       the interface through which a connection reads and writes, and the plain socket
//! kernel_tls.rs   TLS of the kernel
//! net.rs          listening sockets, control channel, sockets of log daemons
//! file.rs         files and pipes of logs
//! clock.rs        monotonic milliseconds, the time of day
//! memory.rs       whether the cgroup or the machine has memory left
//! process.rs      forks of this process, its limit of descriptors
//! runnable.rs    threads of this process that run or wait for a processor
//! fd_handoff.rs   open connections passed to another process
//! wakeup.rs       wakes a thread that waits for a socket
//! server_fd.rs    descriptors that a process forked by the application does not keep
//! ```

pub(crate) mod clock;
pub(crate) mod fd_handoff;
pub(crate) mod file;
pub(crate) mod kernel_tls;
pub(crate) mod memory;
pub(crate) mod net;
pub(crate) mod poller;
pub(crate) mod process;
pub(crate) mod runnable;
pub(crate) mod server_fd;
pub(crate) mod socket;
pub(crate) mod socket_watch;
pub(crate) mod wakeup;

pub(crate) use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub(crate) use server_fd::ServerFd;

pub(crate) use rustix::io::Errno;
