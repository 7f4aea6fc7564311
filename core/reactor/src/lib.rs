//! Sockets, poller, deadlines and buffers around the protocol of `poorhttp-http`. No Python here.
//!
//! A [`Reactor`] hands out one [`Exchange`] for each complete request. The exchange *owns* its connection until
//! it is answered, so nothing else can write to it, and an application cannot write to a request that was answered.
//!
//! ```text
//! serve/        from connections that are ready to requests: the top
//! handlers/     requests that are answered without the application
//! exchange/     one request and its response
//! event_loop/   state that all connections and threads share; accepting, polling, timers, the end of a response
//! options.rs    options
//! control/      control channel to the main process, request timeout, counters
//! connection/   one client connection: receiving, sending, its state
//! limits.rs     sizes, counts and times that no option sets
//! log/          access log, error log, slow log
//! sys/          system calls, and nothing else
//! ```
//!
//! Each room knows those below it, and none above.

#![forbid(unsafe_code)]

mod connection;
mod control;
mod event_loop;
mod exchange;
mod handlers;
mod limits;
mod log;
mod options;
mod serve;
mod sys;

pub use connection::body::incoming::{Body, BodyBytes};
pub use connection::body::spool::BodyFile;
pub use connection::body::spool::BodyMemory;
pub use connection::body::temp_file::{Spool, TempDir};
pub use connection::listener::Listener;
pub use connection::request::Request;
pub use control::accept_balance::AcceptBalance;
pub use control::channel::Channel;
pub use control::concurrency::{Concurrency, STEP};
pub use control::counters::{Counters, Counts};
pub use control::queue_timeout::QueueLimit;
pub use control::request_timeout::{InFlight, TimedRequest, TimeoutHandler};
pub use control::status::{
    BOUNDS, BUCKETS, Figures, Finished, Histogram, InFlightRequest, REFUSED, Refusal, SLOTS, WorkerStatus,
};
pub use control::upgrades::Upgraded;
pub use event_loop::reactor::Reactor;
pub use exchange::backpressure::Socket;
pub use exchange::body::{BodyError, BodyPart};
pub use exchange::upgrade::{NotTaken, Offer};
pub use exchange::{Exchange, SendError};
pub use handlers::static_files::send_static;
pub use log::access::AccessLog;
pub use log::error::{ErrorLog, Level, Message, set_level, share_level};
pub use log::request_id::{RequestId, RequestIds, RequestName};
pub use log::selection::Selection;
pub use log::sink::{Facility, Sink};
pub use options::{Notice, Options, Timeouts};
pub use poorhttp_files::{Routes, SendfileRoots, StaticRoute};
pub use serve::next::Next;
pub use sys::fd_handoff::FdHandoff;
pub use sys::kernel_tls::KernelTls;
pub use sys::process::{forks, note_child, note_fork, thread_id};
pub use sys::server_fd::{forget_descriptor, note_descriptor, take_descriptors};
