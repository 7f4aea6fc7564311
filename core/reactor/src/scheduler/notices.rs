//! Functions that are called once: when a stream has data or room, or its client has left.

use crate::connection::Connection;
use crate::connection::notice::Interest;
use crate::connection::shared_socket::SharedSocket;
use crate::scheduler::put_back;
use crate::scheduler::state::State;

/// Has `function` called once, from any thread and without a lock, when what a stream waits for has come: at once if it is there.
#[cold]
pub(crate) fn set(
    state: &State,
    connection: &mut Connection,
    interest: Interest,
    function: impl FnOnce() + Send + 'static,
) {
    connection.note_awaited();
    connection.socket.notice.set(interest, Box::new(function));
    // The poller reports what is there already.
    let is_watched = connection.is_registered() || put_back::watch(state, connection);
    let (index, _) = connection.slot();
    // Events that came before the notice was set are noted here; later ones find it.
    let readiness = state.lock().connections.of(index).readiness;
    let has_room = connection.socket.has_room();
    connection.socket.notice.call_if(|interest| {
        !is_watched || (interest.data && (readiness.readable || readiness.hangup)) || (interest.room && has_room)
    });
}

/// The application is about to receive: events from now on are news.
#[cold]
pub(crate) fn take_events(state: &State, connection: &mut Connection) {
    let (index, _) = connection.slot();
    let mut shared = state.lock();
    let readiness = &mut shared.connections.of(index).readiness;
    let (readable, hangup) = (std::mem::take(&mut readiness.readable), std::mem::take(&mut readiness.hangup));
    drop(shared);
    connection.note(readable, hangup, false);
}

/// An event has come on the socket of a stream: `data` to be received, or the `end` of the client's side; perhaps there is room.
pub(crate) fn give(socket: &SharedSocket, data: bool, end: bool) {
    if socket.notice.is_set() {
        let has_room = socket.has_room();
        socket.notice.call_if(|interest| end || (interest.data && data) || (interest.room && has_room));
    }
}
