//! What the main process and a worker tell each other; time limits of queued and running requests; shutdown.
//!
//! ```text
//! channel.rs           one-byte messages between worker and main process
//! accept_balance.rs    connections of each worker, so that workers accept evenly; pauses of accepting
//! queue_timeout.rs     which requests have waited too long for a thread
//! concurrency.rs       how many threads run applications in an overload
//! request_timeout.rs   thread that enforces `request_timeout`
//! shutdown.rs          stages of a shutdown: the requested one and the one in effect
//! counters.rs          counters in memory that the main process can read
//! long_polls.rs        when long polls were ended, and the last chunk for all of them
//! status/              memory of a worker that outlives it: counters, requests in flight, slow requests, errors
//! upgrades.rs          upgraded connections: limits their number, ends them at a stop
//! ```

pub(crate) mod accept_balance;
pub(crate) mod channel;
pub(crate) mod concurrency;
pub(crate) mod counters;
pub(crate) mod long_polls;
pub(crate) mod queue_timeout;
pub(crate) mod request_timeout;
pub(crate) mod shutdown;
pub(crate) mod status;
pub(crate) mod upgrades;
