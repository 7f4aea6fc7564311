//! System calls, and nothing else: the one room that knows the operating system.
//!
//! ```text
//! poller.rs       epoll, its timer and its wake-up pipe
//! clock.rs        monotonic milliseconds, the time of day
//! socket.rs       the interface through which a connection reads and writes, and the plain socket
//! process.rs      forks of this process
//! fd_handoff.rs   open connections passed to another process
//! ```

pub(crate) mod clock;
pub(crate) mod fd_handoff;
pub(crate) mod poller;
pub(crate) mod process;
pub(crate) mod socket;
