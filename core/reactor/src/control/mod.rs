//! Control channel to the main process, shutdown and counters.
//!
//! ```text
//! channel.rs    one-byte messages between worker and main process
//! shutdown.rs   graceful and quick shutdown, drain
//! counters.rs   counters in memory that the main process can read
//! ```

pub(crate) mod channel;
pub(crate) mod counters;
pub(crate) mod shutdown;
