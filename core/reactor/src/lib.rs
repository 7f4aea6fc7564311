//! Sockets, poller, deadlines and buffers around the protocol of `poorhttp-http`. No Python here.
//!
//! A [`Reactor`] hands out one [`Exchange`] for each complete request. The exchange *owns* its connection until
//! it is answered, so nothing else can write to it, and an application cannot write to a request that was answered.
//!
//! ```text
//! reactor.rs           every public method of a reactor: the top
//! event_loop/          the loop: takes ready connections, reads their requests, hands these out
//! handlers/            requests that are answered without the application
//! exchange/            one request and its response
//! scheduler/           state that all connections and threads share; accepting, polling, timers, the end of a response
//! options.rs           options, and the groups of them that rooms get
//! telemetry/           logs of requests, and their times
//! request_timeout.rs   the thread that ends requests after `request_timeout`
//! websocket/           another protocol on a connection, which the application gets
//! overload/            how long requests have waited, when they are refused, which worker accepts
//! connection/          one client connection: receiving, sending, its state
//! channel.rs           commands of the main process
//! shutdown.rs          stages of a shutdown
//! status/              counters, metrics and requests in flight, in memory that other processes read
//! log/                 access log, error log, slow log
//! limits.rs            sizes, counts and times that no option sets
//! sys/                 system calls, and nothing else
//! ```
//!
//! Each room knows those below it, and none above.

#![forbid(unsafe_code)]

mod channel;
mod connection;
mod event_loop;
mod exchange;
mod handlers;
mod limits;
mod log;
mod options;
mod overload;
mod reactor;
mod request_timeout;
mod scheduler;
mod shutdown;
mod status;
mod sys;
mod telemetry;
mod websocket;

pub use channel::Channel;
pub use connection::body::incoming::{Body, BodyBytes};
pub use connection::body::spool::BodyFile;
pub use connection::body::spool::BodyMemory;
pub use connection::body::temp_file::{Spool, TempDir};
pub use connection::listener::Listener;
pub use connection::notice::Interest;
pub use connection::request::Request;
pub use connection::stream_protocol::{
    MakeStreamProtocol, Multiplexing, Negotiation, StreamEvent, StreamProtocol, StreamRequest,
};
pub use event_loop::r#loop::Next;
pub use exchange::Exchange;
pub use exchange::backpressure::Waiter;
pub use exchange::body::{BodyError, BodyPart};
pub use exchange::send_error::SendError;
pub use exchange::upgrade::{NotHijacked, Offer};
pub use handlers::static_files::send_static;
pub use log::access::AccessLog;
pub use log::error::{ErrorLog, Level, Message, set_level, share_level};
pub use log::request_id::{RequestId, RequestIds, RequestName};
pub use log::selection::Selection;
pub use log::sink::{Facility, Sink};
pub use options::{AutoThreads, Notice, Options, Settings, Timeouts};
pub use overload::accept_balance::AcceptBalance;
pub use overload::concurrency::{Concurrency, STEP};
pub use overload::queue_timeout::QueueLimit;
pub use overload::streaming::{ThreadPool, has_left};
pub use poorhttp_files::{Routes, SendfileRoots, StaticRoute};
pub use reactor::Reactor;
pub use request_timeout::{InFlight, TimedRequest, TimeoutHandler};
pub use status::counters::{Counters, Counts};
pub use status::{
    BOUNDS, BUCKETS, Finished, Histogram, InFlightRequest, Kind, METRICS, Metric, Metrics, Reading, Refusal, SLOTS,
    Value, WorkerStatus,
};
pub use sys::fd_handoff::FdHandoff;
pub use sys::kernel_tls::KernelTls;
pub use sys::process::{forks, note_child, note_fork, thread_id};
pub use sys::server_fd::{forget_descriptor, note_descriptor, take_descriptors};
pub use websocket::upgraded::Upgraded;
