//! Access log: notes what it says of refused requests, and writes each line once the kernel has the last byte of the response.

use poorhttp_http::Head;

use crate::connection::Connection;
use crate::log::entry::{Answer, Collected, Unsent};
use crate::log::request_id::RequestName;
use crate::telemetry::Telemetry;

/// Notes the log entry of a refusal with so many bytes of content, which begins at `start`. It is written when the
/// refusal was sent.
#[cold]
pub(crate) fn note_refusal(
    telemetry: &Telemetry,
    connection: &mut Connection,
    status: u16,
    size: u64,
    start: u64,
    name: &RequestName,
) {
    let Some(log) = &telemetry.access_log else { return };
    let end = connection.end_of_output();
    let request = &connection.request;
    let mut collected = Collected::default();
    if let Some(wanted) = log.wanted() {
        let out = request.buffers.as_ref().map_or(&[][..], |buffers| &buffers.out);
        let lines = &out[out.len().saturating_sub((end - start) as usize)..];
        collected.take_fields(&wanted.fields, lines.split_at(lines.len().saturating_sub(size as usize)).0);
        collected.server = request.server(log);
    }
    collected.name = (!name.id.is_empty()).then(|| name.clone());
    let answer = Answer::new(request.asked(name.number, log.start()), status);
    let (body, collected) = (end - size, Some(Box::new(collected)));
    let answer = Answer { has_no_head: true, size, start, body, end, is_whole: true, collected, ..answer };
    connection.request.buffers().answer = Some(answer);
}

/// Logs the responses that were sent, and copies the data for the others, as the head of the last request will be
/// overwritten. `true`: a line is the first that waits to be written.
#[inline]
#[must_use]
pub(crate) fn log_sent(telemetry: &Telemetry, connection: &mut Connection) -> bool {
    if telemetry.access_log.is_none() {
        return false;
    }
    let mut is_first = !connection.unsent.is_empty() && log_unsent(telemetry, connection, false);
    if connection.is_behind() {
        log_later(connection);
        return is_first;
    }
    let bytes_sent = connection.bytes_sent();
    let Some(buffers) = &mut connection.request.buffers else { return is_first };
    if let Some(answer) = &buffers.answer {
        let buffer = &buffers.read_buffer;
        is_first |= log_answer(telemetry, answer, Some((&buffer.head, buffer.head_bytes())), bytes_sent);
        buffers.answer = None;
    }
    is_first
}

/// Copies the data that is needed to log the response that waits in the buffer.
#[cold]
pub(crate) fn log_later(connection: &mut Connection) {
    let buffers = connection.request.buffers();
    if let Some(answer) = buffers.answer.take() {
        let buffer = &buffers.read_buffer;
        let head = (!answer.has_no_head).then(|| (buffer.head.clone(), buffer.head_bytes().to_vec()));
        connection.unsent.push(Unsent { answer, head });
    }
}

/// Logs the answers that have been sent as a whole; or all, because nothing more will be sent. `true`: as above.
#[cold]
#[must_use]
pub(crate) fn log_unsent(telemetry: &Telemetry, connection: &mut Connection, all: bool) -> bool {
    let bytes_sent = connection.bytes_sent();
    let sent = connection.unsent.iter().take_while(|unsent| all || unsent.answer.is_before(bytes_sent)).count();
    let mut is_first = false;
    for unsent in connection.unsent.drain(..sent) {
        let head = unsent.head.as_ref().map(|(head, bytes)| (head, &bytes[..]));
        is_first |= log_answer(telemetry, &unsent.answer, head, bytes_sent);
    }
    is_first
}

/// Logs the remaining responses, because the connection ends. `true`: as above.
#[inline]
#[must_use]
pub(crate) fn log_rest(telemetry: &Telemetry, connection: &mut Connection) -> bool {
    let mut is_first = !connection.unsent.is_empty() && log_unsent(telemetry, connection, true);
    let bytes_sent = connection.bytes_sent();
    if let Some(buffers) = &mut connection.request.buffers
        && let Some(answer) = buffers.answer.take()
    {
        let buffer = &buffers.read_buffer;
        is_first |= log_answer(telemetry, &answer, Some((&buffer.head, buffer.head_bytes())), bytes_sent);
    }
    is_first
}

#[inline]
fn log_answer(telemetry: &Telemetry, answer: &Answer, head: Option<(&Head, &[u8])>, bytes_sent: u64) -> bool {
    telemetry.access_log.as_ref().is_some_and(|log| log.add_answer(answer, head, bytes_sent))
}
