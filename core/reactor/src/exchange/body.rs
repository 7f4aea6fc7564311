//! Hands parts of a request's body to the application that already runs (`stream_request_body`).

use crate::connection::NO_MEMORY;
use crate::connection::body::receive::Streamed;
use crate::exchange::send_error::SendError;
use crate::exchange::writer::ResponseWriter;
use crate::log::error::Level;
use crate::sys::clock;
use poorhttp_http::Reject;

const TOO_SLOW: Reject = Reject { status: 408, reason: "the body did not arrive in time" };

/// Outcome of [`crate::Exchange::receive_body`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyPart {
    /// So many bytes.
    Content(usize),
    /// The body is complete.
    End,
    /// Nothing has come. The application should wait ([`crate::Exchange::waiter`], or [`crate::Exchange::notify`]), at most so many
    /// milliseconds, and call again.
    NothingYet(u64),
}

/// Why nothing more of a body is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The client has left in the middle of it, or was answered by the request timeout.
    Disconnected,
    /// The request has been answered, or belongs to the process that forked this one.
    Over,
    /// It is too large or malformed, or comes too slowly: the answer that it gets if nothing was sent yet.
    Refused(Reject),
}

/// Receives a part of the body into `room`, which is not empty. Does not wait.
pub(crate) fn receive(writer: &mut ResponseWriter, room: &mut [u8]) -> Result<BodyPart, BodyError> {
    if writer.is_foreign() {
        return Err(BodyError::Over);
    }
    loop {
        writer.check_lost().map_err(|_| BodyError::Disconnected)?;
        let stream = writer.stream.as_mut().ok_or(BodyError::Over)?;
        if writer.response.is_committed() {
            stream.drop_continue();
        }
        match stream.receive_body(&writer.state, room) {
            Streamed::Content(bytes) => return Ok(BodyPart::Content(bytes)),
            Streamed::Complete => return Ok(BodyPart::End),
            Streamed::Interim(interim) => match writer.send_interim(&interim) {
                Err(SendError::Over) => return Err(BodyError::Over),
                Err(_) => return Err(BodyError::Disconnected),
                Ok(()) => {}
            },
            Streamed::NothingYet => {
                let Some(until) = stream.await_body(&writer.state) else {
                    return Err(refuse(writer, TOO_SLOW));
                };
                writer.expect_wait();
                return Ok(BodyPart::NothingYet(until.saturating_sub(clock::now()).max(1)));
            }
            Streamed::Refused(reject) => return Err(refuse(writer, reject)),
            Streamed::NoMemory => return Err(refuse(writer, NO_MEMORY)),
            Streamed::End => {
                writer.lost = true;
                return Err(BodyError::Disconnected);
            }
        }
    }
}

/// Refuses the rest of the body. That is logged once.
#[cold]
fn refuse(writer: &mut ResponseWriter, reject: Reject) -> BodyError {
    if writer.stream.as_mut().is_some_and(|stream| stream.refuse_body(reject)) {
        writer.count_refusal(reject);
        let reason = writer.state.receiving.limits.explain(reject);
        writer.log_message(Level::Info, &format!("its body is refused with {} ({reason})", reject.status));
    }
    BodyError::Refused(reject)
}
