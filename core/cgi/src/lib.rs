//! CGI programs (RFC 3875) without sockets and without Python: [`find`] says which program a path means, [`Program`] is one
//! that runs, [`Head`] is what it says first.
//!
//! A program is started by `posix_spawn` and has a process group of its own. Whoever drops a [`Program`] ends it, with all
//! that it has started, and reaps it.

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
pub use head::{Head, Malformed};
pub use input::Input;
pub use program::{Fault, Limits, Piece, Program};

/// A time to wait as the kernel wants it.
fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}

/// Whether all was read of a pipe that was polled, and nobody can write any more. Its end comes alone also to who has not
/// asked for what is left to read.
fn is_drained(wanted: PollFlags, seen: PollFlags) -> bool {
    wanted.contains(PollFlags::IN) && seen == PollFlags::HUP
}
