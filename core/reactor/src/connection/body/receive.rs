//! Receives a request body while the application runs (`stream_request_body`).
//!
//! Nothing is received before the application wants it, but for what has come with the head: until then it stays in the
//! kernel, whose buffers make the client wait.

use std::mem;

use crate::connection::body::incoming::DIRECT;
use crate::connection::body::streamed::StreamedBody;
use crate::connection::body::throughput::MinimumRate;
use crate::connection::transport::Socket;
use crate::connection::{Connection, Received};
use crate::sys::clock;
use poorhttp_http::{Event, Limits, Reject};

/// Bytes of a body that nobody reads that are received, so that the connection can be kept.
const DROPPED: usize = 64 << 10;

/// Outcome of [`receive_streamed`].
#[derive(Debug)]
pub(crate) enum Streamed {
    /// So many bytes of content.
    Content(usize),
    Complete,
    NothingYet,
    /// To be sent before more is received.
    Interim(Vec<u8>),
    Refused(Reject),
    /// There is no memory for a buffer.
    NoMemory,
    /// The client has left in the middle of it.
    End,
}

fn streamed(connection: &mut Connection) -> Option<&mut StreamedBody> {
    connection.request.buffers.as_mut()?.streamed.as_deref_mut()
}

/// Receives a part of the body into `room`, which is not empty: large ones without a copy. Does not wait.
pub(crate) fn receive_streamed(connection: &mut Connection, limits: &Limits, room: &mut [u8]) -> Streamed {
    loop {
        let Some(buffers) = &mut connection.request.buffers else { return Streamed::Complete };
        let Some(streamed) = &mut buffers.streamed else { return Streamed::Complete };
        if let Some(reject) = streamed.refused {
            return Streamed::Refused(reject);
        }
        match connection.request.parser.poll_up_to(&mut buffers.read_buffer, limits, room.len()) {
            Event::Content(content) => {
                room[..content.len()].copy_from_slice(content);
                streamed.received += content.len() as u64;
                streamed.idle_since = clock::now();
                return Streamed::Content(content.len());
            }
            Event::Complete | Event::Head => return Streamed::Complete,
            Event::Rejected(reject) => return Streamed::Refused(reject),
            Event::ManagementReply(answer) => return Streamed::Interim(answer),
            Event::NeedMore => {}
        }
        if mem::take(&mut streamed.awaits_continue) {
            return Streamed::Interim(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
        }
        let expected = match connection.is_stream() {
            // Its content has no framing.
            true => u64::MAX,
            false => connection.request.parser.expected(),
        };
        let most = room.len().min(usize::try_from(expected).unwrap_or(usize::MAX));
        // What a read buffer holds has been parsed.
        let is_direct = most >= DIRECT || connection.is_stream();
        let received =
            if is_direct { connection.receive_into(&mut room[..most]) } else { connection.receive(usize::MAX) };
        match received {
            Received::Something(bytes) if is_direct => {
                connection.request.parser.take_content(bytes as u64);
                if let Some(streamed) = self::streamed(connection) {
                    streamed.received += bytes as u64;
                    streamed.idle_since = clock::now();
                }
                return Streamed::Content(bytes);
            }
            Received::Something(_) => {}
            Received::NothingYet => {
                if let Socket::Stream(stream) = &connection.socket.transport {
                    stream.await_content();
                }
                return Streamed::NothingYet;
            }
            Received::NoMemory => return Streamed::NoMemory,
            Received::End => match connection.end_of_stream() {
                Some(Ok(())) => {}
                Some(Err(reject)) => return Streamed::Refused(reject),
                None => return Streamed::End,
            },
        }
    }
}

/// The application waits for the client from now on: until when it may; `None`: the client is too slow. The time in which
/// the application did not read does not count.
pub(crate) fn streamed_deadline(connection: &mut Connection, minimum: MinimumRate) -> Option<u64> {
    let now = clock::now();
    let streamed = streamed(connection)?;
    if streamed.idle_since != 0 {
        streamed.throughput.pause(now - mem::take(&mut streamed.idle_since));
    }
    streamed.throughput.note(streamed.received, now);
    let is_too_slow = streamed.throughput.is_too_slow(now, minimum);
    (!is_too_slow).then(|| streamed.throughput.deadline(minimum))
}

/// Whether the rest of a body has come. `is_over`: the application is through, so it is received and dropped, unless it is
/// much.
#[cold]
pub(crate) fn has_rest(connection: &mut Connection, limits: &Limits, is_over: bool) -> bool {
    if !is_over {
        // An application may have read all of it without having seen its end.
        let buffers = connection.request.buffers.as_ref();
        return buffers.is_some_and(|buffers| connection.request.parser.has_whole_body(&buffers.read_buffer, limits));
    }
    let mut dropped = [0; 4096];
    let mut total = 0;
    while total <= DROPPED {
        match receive_streamed(connection, limits, &mut dropped) {
            Streamed::Content(bytes) => total += bytes,
            Streamed::Complete => return true,
            // Whoever waits for `100 Continue` may send the body or not.
            _ => return false,
        }
    }
    false
}

/// Not any more: nothing of the body is received before the final response.
pub(crate) fn drop_continue(connection: &mut Connection) {
    if let Some(streamed) = streamed(connection) {
        streamed.awaits_continue = false;
    }
}
