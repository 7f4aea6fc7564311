//! Control channel to the main process, request timeout, shutdown and counters.
//!
//! ```text
//! channel.rs           one-byte messages between worker and main process
//! request_timeout.rs   thread that enforces `request_timeout`
//! shutdown.rs          stages of a shutdown: the requested one and the one in effect
//! counters.rs          counters in memory that the main process can read
//! ```

pub(crate) mod channel;
pub(crate) mod counters;
pub(crate) mod request_timeout;
pub(crate) mod shutdown;
