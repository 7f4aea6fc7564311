//! Sockets, poller, deadlines and buffers around the protocol of `poorhttp-http`. No Python here.
//!
//! A [`Reactor`] hands out one [`Exchange`] for each complete request. The exchange *owns* its connection until
//! it is answered, so nobody else can write to it, and what an application does with a request it has answered
//! already has nowhere to go.
//!
//! ```text
//! sys/          system calls, and nothing else
//! event_loop/   waits for events; which thread looks at which connection
//! connection/   one client connection, from accept to close
//! exchange/     one request and its response
//! handlers/     requests that are answered without the application
//! log/          access log, error log, slow log
//! control/      control channel to the main process, shutdown, counters
//! reactor.rs    what all connections and threads share
//! options.rs    options
//! limits.rs     sizes, counts and times that no option sets
//! ```

#![forbid(unsafe_code)]

mod connection;
mod control;
mod event_loop;
mod exchange;
mod handlers;
mod limits;
mod log;
mod options;
mod reactor;
mod sys;

pub use connection::accept_balance::Shares;
pub use connection::body::{Body, BodyFile};
pub use connection::listener::Listener;
pub use connection::temp_file::{Spool, TempDir};
pub use control::channel::Channel;
pub use control::counters::{Counts, Tally};
pub use event_loop::wait::Next;
pub use exchange::Exchange;
pub use exchange::backpressure::Socket;
pub use exchange::request_timeout::{Alarm, InHand, Watched};
pub use exchange::response::Unsent;
pub use handlers::routes::{Published, Routes};
pub use handlers::x_sendfile::Deliveries;
pub use log::access::AccessLog;
pub use log::error::{Journal, Level};
pub use log::format::UnknownFormat;
pub use log::sink::{Facility, Sink};
pub use options::{BodyMemory, Options, Timeouts};
pub use reactor::Reactor;
pub use sys::fd_handoff::Bequest;
pub use sys::process::{note_child, note_fork};
