//! Waits for events and decides which thread looks at which connection.
//!
//! ```text
//! wait.rs               polls, notes events, and returns the next request
//! leader_followers.rs   which thread polls and which threads wait for work
//! slots.rs              the table of connections, by index and generation
//! ready_queue.rs        takes connections out of their slots and puts them back
//! timers.rs             one deadline for each connection, in a heap
//! expire.rs             runs expired timers and sets the poller's timer to the next one
//! ```

pub(crate) mod expire;
pub(crate) mod leader_followers;
pub(crate) mod ready_queue;
pub(crate) mod slots;
pub(crate) mod timers;
pub(crate) mod wait;
