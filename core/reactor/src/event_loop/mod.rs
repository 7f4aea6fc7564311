//! What all connections and threads of a process share, and what happens to connections in it.
//!
//! ```text
//! reactor.rs            the shared state
//! poll.rs               asks the poller for events and notes them
//! accept.rs             accepts connections and refuses those beyond the limits
//! accept_state.rs       whether listeners are set aside, and whether another worker is to accept first
//! evict.rs              idle-connection eviction when `max_connections` is reached
//! slots.rs              the table of connections, by index and generation
//! ready_queue.rs        takes connections out of their slots, puts them back, closes them
//! leader_followers.rs   which thread polls and which threads wait for work
//! finish.rs             the end of a response: the next request, a lingering close, or a close
//! logging.rs            access log and slow log, once the last byte of a response is sent
//! timers.rs             one deadline for each connection, in a heap
//! expire.rs             runs expired timers and sets the poller's timer to the next one
//! arrival.rs            since when a request is there, for the slow log
//! queue_time.rs         for how long requests have waited for others
//! handoff.rs            idle connections to and from other workers
//! shutdown.rs           graceful and quick shutdown, drain
//! ```

pub(crate) mod accept;
pub(crate) mod accept_state;
pub(crate) mod arrival;
pub(crate) mod evict;
pub(crate) mod expire;
pub(crate) mod finish;
pub(crate) mod handoff;
pub(crate) mod leader_followers;
pub(crate) mod logging;
pub(crate) mod poll;
pub(crate) mod queue_time;
pub(crate) mod reactor;
pub(crate) mod ready_queue;
pub(crate) mod shutdown;
pub(crate) mod slots;
pub(crate) mod timers;
