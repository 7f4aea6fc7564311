//! Sockets, poller, deadlines and buffers around the protocol of `poorhttp-http`. No Python here.
//!
//! A [`Reactor`] hands out one [`Exchange`] for each complete request. The exchange *owns* its connection until
//! it is answered, so nobody else can write to it, and what an application does with a request it has answered
//! already has nowhere to go.

#![forbid(unsafe_code)]

mod accepting;
mod access_log;
mod alarm;
mod answer;
mod bequest;
mod body;
mod body_spool;
mod channel;
mod client;
mod client_abort;
mod clock;
mod connection;
mod crew;
mod crowd;
mod deadlines;
mod delivery;
mod drive;
mod exchange;
mod handover;
mod health;
mod inotify;
mod journal;
mod link;
mod listener;
mod log_entry;
mod log_format;
mod log_writer;
mod options;
mod outlet;
mod pace;
mod parking;
mod plain;
mod poller;
mod publishing;
mod reactor;
mod remembering;
mod routes;
mod sending;
mod shares;
mod sink;
mod slots;
mod slow;
mod spool;
mod stopping;
mod tally;
mod trusting;
mod waiting;
mod watch;

pub use access_log::AccessLog;
pub use answer::Unsent;
pub use bequest::Bequest;
pub use body::{Body, BodyFile};
pub use channel::Channel;
pub use client::Socket;
pub use delivery::Deliveries;
pub use exchange::Exchange;
pub use inotify::{Happening, Happenings, Inotify};
pub use journal::{Journal, Level};
pub use listener::Listener;
pub use log_format::UnknownFormat;
pub use options::{BodyMemory, Options, Timeouts};
pub use reactor::{Reactor, note_child, note_fork};
pub use routes::{Published, Routes};
pub use shares::Shares;
pub use sink::{Facility, Sink};
pub use spool::{Spool, TempDir};
pub use tally::{Counts, Tally};
pub use waiting::Next;
pub use watch::{Alarm, InHand, Watched};
