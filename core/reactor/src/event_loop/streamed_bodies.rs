//! Requests whose body the application receives while it runs (`stream_request_body`).

use crate::connection::Connection;
use crate::connection::body::streamed::StreamedBody;
use crate::handlers::static_files::path_of;
use crate::scheduler::state::State;

/// Whether the application is to be called before the body has come, which is then prepared. A body that has come with its head
/// is handled as all others are.
#[cold]
pub(crate) fn begin(state: &State, connection: &mut Connection) -> bool {
    let request = &connection.request;
    let path = request.head().and_then(|(head, bytes)| path_of(head, bytes));
    let (Some(path), Some(routes)) = (path, &state.handling.streamed_bodies) else { return false };
    if routes.find(|| request.requested_authority(), &path).is_none() {
        return false;
    }
    let Some(buffers) = &mut connection.request.buffers else { return false };
    let received = &buffers.read_buffer;
    if connection.request.parser.has_whole_body(received, &state.receiving.limits) {
        return false;
    }
    let awaits_continue = received.head.expects_continue && received.is_drained();
    buffers.streamed = Some(Box::new(StreamedBody::new(awaits_continue)));
    if !buffers.out.is_empty() {
        // Answers to earlier requests must not wait for this one. A failure shows when it is answered.
        let _ = connection.transmit(&[]);
        state.log_sent(connection);
    }
    true
}
