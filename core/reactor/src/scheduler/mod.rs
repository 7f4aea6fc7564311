//! Hands connections that have events to the threads of a worker, and takes them back; the state that threads share.
//!
//! ```text
//! state.rs              the options, and everything that threads share
//! connections.rs        the table of connections, the queue of those that are ready, spare buffers
//! timers.rs             deadlines in a heap
//! leader_followers.rs   which thread polls and which threads wait for work
//! evict.rs              idle-connection eviction when `max_connections` is reached
//! put_back.rs           puts connections back into the table and closes them
//! release.rs            the end of a response: the next request, a lingering close, or a close
//! accept.rs             accepts connections, refuses those beyond the limits, yields to workers with fewer
//! stop.rs               graceful and quick shutdown, commands of the main process, handoff of idle connections
//! streams.rs            turns of connections with many streams, new streams, threads that wait for a stream
//! stream_reader.rs      reads connections with streams while all threads run requests
//! streaming.rs          watches responses that stream, and has other threads serve in the place of theirs
//! threads.rs            what a thread does next: takes a connection, polls, or waits
//! thread_watch.rs       has threads made and ended, with `threads = auto`
//! notices.rs            calls the notices of streams that wait without a thread
//! poll.rs               asks the poller for events and acts on them, and on expired timers
//! ```

pub(crate) mod accept;
pub(crate) mod connections;
mod evict;
pub(crate) mod leader_followers;
pub(crate) mod notices;
pub(crate) mod poll;
pub(crate) mod put_back;
pub(crate) mod release;
pub(crate) mod state;
pub(crate) mod stop;
pub(crate) mod stream_reader;
pub(crate) mod streaming;
pub(crate) mod streams;
pub(crate) mod thread_watch;
pub(crate) mod threads;
pub(crate) mod timers;
