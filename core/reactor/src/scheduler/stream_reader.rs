//! Reads connections with streams while all threads run requests.
//!
//! Otherwise a client would wait for the end of a request until its PING is answered, its windows are seen and the response that it
//! reads goes on; and a request would not learn that its client has left. A thread of its own, which begins with the first such
//! connection, sees the events of their sockets as the poller does. It leaves an event to the threads of the pool for a moment, and
//! takes the turn of the connection if none of them has: it receives and sends, and runs no requests.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use crate::connection::multiplexed::Multiplexed;
use crate::connection::stream_watch::Watched;
use crate::log::error::Level;
use crate::scheduler::state::State;
use crate::scheduler::streams;
use crate::sys::Errno;

/// How long an event is left to the threads of the pool, and so the shortest time between two looks at a busy connection.
const LEFT_TO_POOL: Duration = Duration::from_millis(20);

/// Watches a connection, which is read by the pool alone if that fails.
pub(crate) fn watch(state: &Arc<State>, streams: &Arc<Multiplexed>) {
    let watched = state.stream_watch.get_or_start(|watched| {
        let (weak, builder) = (Arc::downgrade(state), thread::Builder::new().name("poorhttp-reader".to_owned()));
        let spawned = builder.spawn(move || run(&watched, &weak));
        spawned.map(drop).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))
    });
    if let Err(error) = watched.and_then(|watched| watched.add(streams)) {
        state.log(Level::Error, &format!("a connection is not read while all threads run requests: {error}"));
    }
}

fn run(watched: &Watched, weak: &Weak<State>) {
    while let Some(due) = watched.wait() {
        let due: Vec<_> = due.into_iter().map(|streams| (streams.turns(), streams)).collect();
        // If the pool has left the last event of a connection to this thread, it most likely is still busy.
        if due.iter().all(|(turns, _)| turns.is_some()) {
            thread::sleep(LEFT_TO_POOL);
        }
        let Some(state) = weak.upgrade() else { return };
        for (_, streams) in due.into_iter().filter(|(turns, streams)| streams.turns() == *turns) {
            streams::advance_unattended(&state, &streams);
        }
    }
}
