//! Responses that the server completes itself: those of handlers here, and named files.

use poorhttp_files::{Content, Part, Reply};

use crate::exchange::compression;
use crate::exchange::send_error::SendError;
use crate::exchange::writer::ResponseWriter;

/// A line of text as a whole response, with more header fields.
pub(crate) fn text_reply(status: &'static str, line: &str, fields: &str) -> Reply {
    let text = format!("{line}\n").into_bytes();
    Reply {
        status: status.into(),
        fields: format!("Content-Type: text/plain; charset=utf-8\r\n{fields}").into_bytes().into(),
        length: text.len() as u64,
        content: Content::Memory(text.into()),
    }
}

/// Sends a whole response. The request is over.
pub(crate) fn send(writer: &mut ResponseWriter, reply: Reply) -> Result<(), SendError> {
    let (reply, length) = match &writer.state.responding.compression {
        Some(compression) => {
            let whole = reply.length;
            let (reply, length) = compression::reply(writer, compression, reply);
            if length.is_some_and(|length| length < whole) {
                writer.note_uncoded(whole);
            }
            (reply, length)
        }
        None => {
            let length = reply.length;
            (reply, Some(length))
        }
    };
    let stream = writer.stream.as_mut().ok_or(SendError::Over)?;
    writer.response.start_prepared(stream.output(), &reply.status, &reply.fields)?;
    if reply.length == 0 && !matches!(writer.response.status(), 204 | 304) {
        // For HEAD as well: the file is known to be empty.
        writer.response.field(stream.output(), "Content-Length", "0")?;
    }
    writer.commit(length)?;
    if reply.content.is_on_disk() {
        writer.state.tidy_soon();
    }
    match reply.content {
        Content::Nothing => {}
        Content::Memory(bytes) => writer.add(&bytes)?,
        Content::File { file, at } => {
            if let length @ 1.. = writer.admit(reply.length) {
                writer.transmit_parts([Part::File { file, at, length }])?;
            }
        }
        Content::Parts(parts) => {
            if writer.admit(reply.length) > 0 {
                writer.transmit_parts(parts)?;
            }
        }
    }
    writer.conclude()
}
