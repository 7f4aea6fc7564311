//! CGI programs (RFC 3875), without sockets and Python.
//!
//! [`find`] finds the program of a path, [`Program`] is a running one, [`Head`] its response header.
//!
//! A program is started by `posix_spawn` in its own process group. Dropping a [`Program`] kills the group and reaps it.

#![forbid(unsafe_code)]

mod find;
mod group;
mod head;
mod input;
mod program;
mod stderr;

use std::time::Duration;

use rustix::event::{PollFlags, Timespec};

pub use find::{Found, NotFound, find};
pub use head::Head;
pub use input::Input;
pub use program::{Fault, Limits, Piece, Program};

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}

/// Whether a polled pipe is empty and closed by all writers. A poll that did not ask for `IN` reports only `HUP` even if there is
/// data.
fn is_drained(wanted: PollFlags, seen: PollFlags) -> bool {
    wanted.contains(PollFlags::IN) && seen == PollFlags::HUP
}
