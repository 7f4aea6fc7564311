//! Sockets, poller, deadlines and buffers around the protocol of `poorhttp-http`. No Python here.
//!
//! A [`Reactor`] hands out one [`Exchange`] for each complete request. The exchange *owns* its connection until
//! it is answered, so nobody else can write to it, and what an application does with a request it has answered
//! already has nowhere to go.

#![forbid(unsafe_code)]

mod accepting;
mod access_log;
mod body;
mod channel;
mod clock;
mod connection;
mod crew;
mod crowd;
mod deadlines;
mod drive;
mod exchange;
mod journal;
mod listener;
mod log_format;
mod options;
mod outlet;
mod pace;
mod poller;
mod reactor;
mod shares;
mod sink;
mod slots;
mod slow;
mod stopping;
mod watch;

pub use access_log::AccessLog;
pub use body::Body;
pub use channel::Channel;
pub use exchange::{Exchange, Socket, Unsent};
pub use journal::{Journal, Level};
pub use log_format::UnknownFormat;
pub use options::{Options, Timeouts};
pub use reactor::{Next, Reactor, note_fork};
pub use shares::Shares;
pub use sink::{Facility, Sink};
pub use watch::{Alarm, InHand, Watched};
