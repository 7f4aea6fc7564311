//! Options of a reactor: `Settings`, the same fields as in `poorhttp/worker/options.py`, and `Options`, all it is made with.

use std::path::PathBuf;
use std::sync::Arc;

use poorhttp_compress::Compression;
use poorhttp_files::{Cache, Routes, SendfileRoots};
use poorhttp_http::{Limits, TrustedProxies};

use crate::channel::Channel;
use crate::connection::body::spool::BodyMemory;
use crate::connection::body::temp_file::{Spool, TempDir};
use crate::connection::body::throughput::MinimumRate;
use crate::connection::stream_protocol::Multiplexing;
use crate::log::access::AccessLog;
use crate::log::error::ErrorLog;
use crate::log::request_id::RequestIds;
use crate::overload::accept_balance::AcceptBalance;
use crate::overload::queue_timeout::QueueLimit;
use crate::overload::streaming::ThreadPool;
use crate::request_timeout::TimeoutHandler;
use crate::status::WorkerStatus;
use crate::status::counters::Counters;
use crate::sys::BorrowedFd;
use crate::sys::fd_handoff::FdHandoff;

/// Gives the macro `$then` each option of the configuration that the reactor reads, with its type. Names and units are those of
/// `docs/reference/options.md`; the class `WorkerOptions` of Python (`poorhttp/worker/options.py`) has the same fields.
#[macro_export]
macro_rules! with_settings {
    ($then:ident) => {
        $then! {
            /// Not to run a request whose client has left while it waited.
            abort_on_close: bool,
            /// Beginnings of paths that the access log leaves out.
            access_log_exclude: Vec<String>,
            /// The share of requests in the access log.
            access_log_sample: f64,
            /// Bytes of one body in memory.
            body_buffer_size: usize,
            /// Bytes of all bodies in memory.
            body_memory: usize,
            /// Seconds between two pieces of a body.
            body_timeout: f64,
            /// Seconds for which idle connections are read after the request to stop.
            drain_timeout: f64,
            /// Whether applications may send responses 103.
            early_hints: bool,
            /// Fields in which trusted proxies name the client.
            forwarded_headers: Vec<String>,
            /// Seconds from the request to stop to the end of the last connection.
            graceful_timeout: f64,
            /// Seconds for a head.
            header_timeout: f64,
            /// Path below which health checks are answered.
            health: Option<String>,
            /// Seconds between two requests.
            keepalive_timeout: f64,
            /// Bytes of a body.
            max_body: u64,
            /// Connections at the same time; 0: as many as descriptors allow.
            max_connections: usize,
            /// Bytes of a header field.
            max_header_size: usize,
            /// Header fields.
            max_headers: usize,
            /// Bytes of all header fields.
            max_request_header_size: usize,
            /// Bytes of the request line.
            max_request_line: usize,
            /// Bytes a second of a client.
            min_rate: u64,
            /// Seconds that a request may wait for a thread; none: as long as is usual; 0: for any time.
            queue_timeout: Option<f64>,
            /// Whether requests have ids.
            request_id: bool,
            /// Seconds that the application may work on a request; 0: without limit.
            request_timeout: f64,
            /// The field `Server`; empty: none.
            server_header: String,
            /// Seconds from which on a request is logged as slow; 0: none is.
            slow_request: f64,
            /// Bytes of one body or response in a temporary file.
            spool_limit: u64,
            /// Bytes in all temporary files.
            spool_total: u64,
            /// Bytes of files that are kept in memory.
            static_cache: u64,
            /// Networks of proxies that may name the client.
            trusted_proxies: Vec<String>,
            /// Threads of responses that stream, beside the pool.
            streaming_threads: usize,
            /// Threads of applications that have got a connection.
            upgraded_threads: usize,
            /// Seconds between two pieces of a response that the client takes.
            write_timeout: f64,
            /// Places of `X-Accel-Redirect`, and their folders.
            x_accel_redirect: Vec<(String, std::path::PathBuf)>,
            /// Folders from which `X-Sendfile` sends.
            x_sendfile: Vec<std::path::PathBuf>,
        }
    };
}

macro_rules! declare_settings {
    ($($(#[$text:meta])* $name:ident: $type:ty,)*) => {
        /// The options of the configuration that the reactor reads.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[$text])* pub $name: $type,)*
        }
    };
}

with_settings!(declare_settings);

impl Settings {
    /// Options with what these settings say by themselves, and defaults of all others.
    pub fn options(&self) -> Options {
        Options {
            limits: Limits {
                request_line: self.max_request_line,
                fields: self.max_headers,
                field_line: self.max_header_size,
                head: self.max_request_header_size,
                body: self.max_body,
                ..Limits::default()
            },
            timeouts: Timeouts {
                header: milliseconds(self.header_timeout),
                body: milliseconds(self.body_timeout),
                write: milliseconds(self.write_timeout),
                keepalive: milliseconds(self.keepalive_timeout),
                graceful: milliseconds(self.graceful_timeout),
                drain: milliseconds(self.drain_timeout),
                request: milliseconds(self.request_timeout),
                min_rate: self.min_rate,
            },
            body_memory: BodyMemory { one: self.body_buffer_size, all: self.body_memory },
            max_connections: self.max_connections,
            server_line: match self.server_header.as_str() {
                "" => Vec::new(),
                server => format!("Server: {server}\r\n").into_bytes(),
            },
            health: self.health.clone(),
            early_hints: self.early_hints,
            abort_on_close: self.abort_on_close,
            queue_limit: match self.queue_timeout {
                None => QueueLimit::Adaptive,
                Some(seconds) if seconds > 0.0 => QueueLimit::Fixed(milliseconds(seconds)),
                Some(_) => QueueLimit::None,
            },
            max_streaming: self.streaming_threads,
            slow_request: (self.slow_request.max(0.0) * 1_000_000.0).ceil() as u64,
            request_ids: self.request_id.then(RequestIds::default),
            ..Options::default()
        }
    }
}

/// Whole milliseconds, rounded up: 0 has another meaning than a short time.
fn milliseconds(seconds: f64) -> u64 {
    // A product such as 70.00000000000001 is no part of a millisecond more.
    let milliseconds = (seconds.max(0.0) * 1_000.0 - 1e-6).ceil() as u64;
    milliseconds.max(u64::from(seconds > 0.0))
}

/// How long a client may take, in milliseconds; `docs/reference/options.md` has the reasons.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// From the first byte of a head to its last.
    pub header: u64,
    /// Between two pieces of a body, and over which its rate is measured.
    pub body: u64,
    /// Between two pieces of an answer that the client takes, and over which its rate is measured.
    pub write: u64,
    /// Between two requests.
    pub keepalive: u64,
    /// From the request to stop to the end of the last connection.
    pub graceful: u64,
    /// For which idle connections are still read after the request to stop.
    pub drain: u64,
    /// That the application may work on a request; 0: without limit.
    pub request: u64,
    /// Bytes a second: a client that sends its body or takes its answer more slowly is given up.
    pub min_rate: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            header: 10_000,
            body: 30_000,
            write: 60_000,
            keepalive: 75_000,
            graceful: 30_000,
            drain: 1_000,
            request: 0,
            min_rate: 500,
        }
    }
}

impl Timeouts {
    /// The minimum rate of a client that sends a body.
    pub(crate) fn body_rate(&self) -> MinimumRate {
        MinimumRate { window: self.body, rate: self.min_rate }
    }

    /// The minimum rate of a client that receives a response.
    pub(crate) fn response_rate(&self) -> MinimumRate {
        MinimumRate { window: self.write, rate: self.min_rate }
    }
}

/// A function that the reactor calls, from any thread.
pub struct Notice(Box<dyn Fn() + Send + Sync>);

impl Notice {
    /// Takes the function. It is called without any lock of the reactor.
    pub fn new(function: impl Fn() + Send + Sync + 'static) -> Self {
        Notice(Box::new(function))
    }

    pub(crate) fn call(&self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Notice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Notice")
    }
}

/// What reading requests depends on.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) limits: Limits,
    pub(crate) trust: Option<TrustedProxies>,
    pub(crate) raw_tcp: bool,
    pub(crate) multiplexing: Option<Multiplexing>,
}

/// What responses depend on.
#[derive(Debug)]
pub(crate) struct Responding {
    pub(crate) server_line: Vec<u8>,
    pub(crate) hsts: String,
    pub(crate) compression: Option<Arc<Compression>>,
    pub(crate) sendfile_roots: SendfileRoots,
    pub(crate) early_hints: bool,
}

/// What is answered, or given up, without the application.
#[derive(Debug)]
pub(crate) struct Handling {
    pub(crate) health: Option<String>,
    pub(crate) https_redirect: Option<u16>,
    pub(crate) routes: Option<Routes>,
    pub(crate) streamed_bodies: Option<Routes<()>>,
    pub(crate) abort_on_close: bool,
    pub(crate) since_input: SinceInput,
}

/// What the threads, other processes and the disk have to do with the reactor.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) external_loop: bool,
    pub(crate) has_one_thread: bool,
    pub(crate) accept_balance: Option<AcceptBalance>,
    pub(crate) fd_handoff: Option<FdHandoff>,
    pub(crate) channel: Option<Channel>,
    pub(crate) recycle_after: u64,
    pub(crate) reopen_logs: Option<Notice>,
    pub(crate) note_stop: Option<Notice>,
    pub(crate) on_main_process_end: Option<fn()>,
    pub(crate) temp_dir: TempDir,
    pub(crate) spool: Arc<Spool>,
    pub(crate) files: Arc<Cache>,
}

/// Milliseconds since the last bytes have come on a socket; `None`: that cannot be had.
pub(crate) type SinceInput = Option<fn(BorrowedFd<'_>) -> Option<u64>>;

/// How many threads there may be, if their number follows the load.
#[derive(Clone, Debug)]
pub struct AutoThreads {
    /// The fewest.
    pub least: usize,
    /// The most.
    pub most: usize,
    /// How many can run at the same time: the processors that a worker has for itself.
    pub processors: usize,
    /// The folders of the cgroups that limit the memory of this process, each with its bytes.
    pub memory: Vec<(PathBuf, u64)>,
}

/// All options of a reactor, which it gives to its rooms in groups.
#[derive(Debug, Default)]
pub struct Options {
    /// Limits of the protocol.
    pub limits: Limits,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// Bytes of request bodies in memory.
    pub body_memory: BodyMemory,
    /// Connections at the same time; 0: as many as descriptors allow.
    pub max_connections: usize,
    /// `Server: …` with CRLF, or nothing.
    pub server_line: Vec<u8>,
    /// Other processes accept from the same listeners, and this is how many connections each has.
    pub accept_balance: Option<AcceptBalance>,
    /// The main process, if this is a worker.
    pub channel: Option<Channel>,
    /// Passes idle connections to a successor and from a predecessor, if the main process may ask for that.
    pub fd_handoff: Option<FdHandoff>,
    /// Number of the request at which the main process is asked to replace this worker; 0: none.
    pub recycle_after: u64,
    /// Counters in memory that other processes read, if they do.
    pub counters: Option<&'static Counters>,
    /// Where times are kept, slow requests and errors. None: no times are taken, but for the slow log.
    pub records: Option<&'static WorkerStatus>,
    /// Path below which health checks are answered, if they are.
    pub health: Option<String>,
    /// Port of `https` to which requests without TLS are redirected, if they are.
    pub https_redirect: Option<u16>,
    /// Value of Strict-Transport-Security in responses over TLS; empty: it is not added.
    pub hsts: String,
    /// Where temporary files are created.
    pub temp_dir: TempDir,
    /// The temporary files of answers.
    pub spool: Arc<Spool>,
    /// Requests that are answered with static files, if any are.
    pub routes: Option<Routes>,
    /// Requests whose body the application receives while it runs, if there are any.
    pub streamed_bodies: Option<Routes<()>>,
    /// Applications may send responses 103.
    pub early_hints: bool,
    /// Cache of these files.
    pub files: Arc<Cache>,
    /// From where an application may have files sent by naming them.
    pub sendfile_roots: SendfileRoots,
    /// Compression of responses, if they are compressed.
    pub compression: Option<Arc<Compression>>,
    /// Trusted proxies, if there are any.
    pub trust: Option<TrustedProxies>,
    /// The protocol of connections with many streams, if there are any ([`crate::Listener::streams`]).
    pub multiplexing: Option<Multiplexing>,
    /// A request is not run if its client closes its sending half while the request waits for others.
    pub abort_on_close: bool,
    /// How long a request may wait for a thread.
    pub queue_limit: QueueLimit,
    /// Milliseconds since the last bytes have come on a socket, if they can be had: without it no request is refused.
    pub since_input: Option<fn(BorrowedFd<'_>) -> Option<u64>>,
    /// Bytes sent on a socket that its peer has not acknowledged, if that can be had.
    pub unacknowledged: Option<fn(BorrowedFd<'_>) -> Option<u64>>,
    /// Connections that applications may have got at the same time; 0: they get none.
    pub max_upgraded: usize,
    /// Threads of responses that stream which may leave the pool.
    pub max_streaming: usize,
    /// Starts threads, also in the place of those; none: there is no pool of threads.
    pub thread_pool: Option<Arc<dyn ThreadPool>>,
    /// How many threads there may be, if their number follows the load.
    pub auto_threads: Option<AutoThreads>,
    /// One thread runs requests and receives the commands of the main process.
    pub has_one_thread: bool,
    /// Connections are not read, but handed out as they are.
    pub raw_tcp: bool,
    /// The event loop of another library watches [`crate::Reactor::fd`], and no thread waits inside the reactor.
    pub external_loop: bool,
    /// Opens the files of the logs again, on a command of the main process.
    pub reopen_logs: Option<Notice>,
    /// Called when the main process has commanded a stop.
    pub note_stop: Option<Notice>,
    /// Called when the main process has ended, before the reactor stops.
    pub on_main_process_end: Option<fn()>,
    /// Interrupts an application that has exceeded [`Timeouts::request`].
    pub timeout_handler: Option<Arc<dyn TimeoutHandler>>,
    /// Microseconds from which on a request is logged as slow; 0: none is.
    pub slow_request: u64,
    /// Makes ids of requests, with which they are logged and answered, if they have ids.
    pub request_ids: Option<RequestIds>,
    /// The access log.
    pub access_log: Option<Arc<AccessLog>>,
    /// The error log.
    pub error_log: Arc<ErrorLog>,
}
