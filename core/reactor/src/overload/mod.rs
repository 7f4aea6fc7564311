//! Overload: how long requests have waited, when they are refused, which worker accepts, how many threads run.
//!
//! ```text
//! queue_time.rs      for how long requests have waited
//! queue_timeout.rs   decides which requests have waited too long
//! accept_balance.rs  connections of each worker, so that workers accept evenly
//! concurrency.rs     how many threads run applications in an overload
//! thread_count/      how many threads there are, with `threads = auto`
//! streaming.rs       which responses have streamed so long that their threads leave the count of `threads`
//! ```

pub(crate) mod accept_balance;
pub(crate) mod concurrency;
pub(crate) mod queue_time;
pub(crate) mod queue_timeout;
pub(crate) mod streaming;
pub(crate) mod thread_count;
