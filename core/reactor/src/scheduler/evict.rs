//! Idle-connection eviction when `max_connections` is reached.

use std::collections::VecDeque;

use crate::connection::Connection;
use crate::connection::state::Phase;
use crate::options::Timeouts;
use crate::scheduler::connections::{Connections, Slot};
use crate::sys::socket::Transport;

/// Idle connections found by one search.
const FOUND_PER_SEARCH: usize = 256;
/// Connections searched in about ten microseconds. After a search in vain, the next one waits a millisecond for each so many,
/// so that searching takes at most a hundredth of the time.
const SEARCHED_PER_MS: usize = 1_000;

/// A connection that was idle at the last search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Idle {
    since: u64,
    index: u32,
    generation: u32,
}

/// The connections that have been idle longest. They are searched only when there is no room: a list kept up to date would
/// cost every request something.
#[derive(Debug, Default)]
pub(crate) struct IdleEviction {
    /// The oldest first.
    oldest: VecDeque<Idle>,
    /// When the next search may be made.
    search_again_at: u64,
}

impl IdleEviction {
    /// Takes out the connection that has been idle longest. `None`: all are busy.
    pub(crate) fn take_longest_idle(
        &mut self,
        connections: &mut Connections,
        timeouts: &Timeouts,
        now: u64,
    ) -> Option<Box<Connection>> {
        let found = self.next(connections, timeouts);
        if found.is_some() || now < self.search_again_at {
            return found;
        }
        self.search(connections, timeouts);
        let found = self.next(connections, timeouts);
        if found.is_none() {
            self.search_again_at = now + (connections.live() / SEARCHED_PER_MS) as u64;
        }
        found
    }

    /// The next of those found that is still idle.
    fn next(&mut self, connections: &mut Connections, timeouts: &Timeouts) -> Option<Box<Connection>> {
        while let Some(idle) = self.oldest.pop_front() {
            let Some(slot) = connections.get(idle.index, idle.generation) else { continue };
            // A client that has closed its connection has sent no bytes either.
            let has_input = || slot.socket.as_ref().is_some_and(|socket| socket.transport.has_input());
            if idle_since(slot, timeouts) == Some(idle.since) && !has_input() {
                return slot.connection.take();
            }
        }
        None
    }

    fn search(&mut self, connections: &mut Connections, timeouts: &Timeouts) {
        let mut idle: Vec<Idle> = connections
            .occupied()
            .filter_map(|(index, slot)| {
                idle_since(slot, timeouts).map(|since| Idle { since, index, generation: slot.generation })
            })
            .collect();
        if idle.len() > FOUND_PER_SEARCH {
            idle.select_nth_unstable(FOUND_PER_SEARCH);
            idle.truncate(FOUND_PER_SEARCH);
        }
        idle.sort_unstable();
        self.oldest = idle.into();
    }
}

/// Since when a connection waits for a request of which nothing has come; 0: its client has gone. `None`: it does not.
fn idle_since(slot: &Slot, timeouts: &Timeouts) -> Option<u64> {
    let connection = slot.connection.as_ref()?;
    if let Some(streams) = &connection.streams {
        return streams.idle_since();
    }
    let idle = matches!(connection.phase(), Phase::Serving | Phase::Handshake)
        && connection.request.buffers.is_none()
        && !connection.is_behind()
        && !connection.request.is_mid_message();
    // The deadline was set by adding one of these.
    let timeout = if connection.request.served == 0 { timeouts.header } else { timeouts.keepalive };
    idle.then(|| if slot.readiness.hangup { 0 } else { slot.deadline.at().saturating_sub(timeout) })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use super::*;
    use crate::connection::shared_socket::SharedSocket;
    use crate::scheduler::timers::Timers;

    fn arrive(connections: &mut Connections, since: u64) -> (u32, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let socket = Arc::new(SharedSocket::new(OwnedFd::from(ours), Arc::default()));
        let (index, generation) = connections.occupy(Arc::clone(&socket));
        let slot = connections.of(index);
        slot.connection = Some(Box::new(Connection::new(index, generation, socket, 0, None)));
        let at = since + Timeouts::default().header;
        Timers::default().set(&mut slot.deadline, at, index, generation);
        (index, theirs)
    }

    #[test]
    fn a_connection_that_its_client_has_closed_is_evicted_before_all_others() {
        let (mut connections, mut eviction, timeouts) =
            (Connections::default(), IdleEviction::default(), Timeouts::default());
        let clients = [5, 5, 5].map(|since| arrive(&mut connections, since));
        connections.of(clients[1].0).readiness.hangup = true;
        let evicted = eviction.take_longest_idle(&mut connections, &timeouts, 100).unwrap();
        assert_eq!(evicted.slot().0, clients[1].0);
    }

    #[test]
    fn the_longest_idle_is_evicted_first_and_no_busy_one() {
        let (mut connections, mut eviction, timeouts) =
            (Connections::default(), IdleEviction::default(), Timeouts::default());
        let clients = [40, 20, 1, 2, 10].map(|since| arrive(&mut connections, since));
        let [young, old, busy, _, oldest] = clients.each_ref().map(|(index, _)| *index);
        connections.of(busy).connection.as_mut().unwrap().request.buffers();
        // A client that has begun to send is not idle any more.
        (&clients[3].1).write_all(b"G").unwrap();
        let mut next = |connections: &mut Connections| {
            eviction.take_longest_idle(connections, &timeouts, 100).map(|connection| {
                let (index, _) = connection.slot();
                connections.vacate(index);
                index
            })
        };
        assert_eq!(next(&mut connections), Some(oldest));
        // It is busy now, although it was idle at the search.
        connections.of(old).connection.as_mut().unwrap().request.buffers();
        assert_eq!(next(&mut connections), Some(young));
        assert_eq!(next(&mut connections), None);
        connections.of(old).connection.as_mut().unwrap().request.buffers = None;
        assert_eq!(next(&mut connections), Some(old));
        assert_eq!(connections.live(), 2);
    }
}
