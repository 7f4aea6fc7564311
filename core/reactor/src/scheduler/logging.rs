//! Writes the access log once the kernel has taken the last byte of a response.

use poorhttp_http::Head;

use crate::connection::Connection;
use crate::log::entry::{Answer, Collected, Unsent};
use crate::log::request_id::RequestName;
use crate::scheduler::state::State;

/// Notes the log entry of a refusal with so many bytes of content, which begins at `start`. It is written when the
/// refusal was sent.
#[cold]
pub(crate) fn note_refusal(
    state: &State,
    connection: &mut Connection,
    status: u16,
    size: u64,
    start: u64,
    name: &RequestName,
) {
    let Some(log) = &state.options.access_log else { return };
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
/// overwritten.
#[inline]
pub(crate) fn log_sent(state: &State, connection: &mut Connection) {
    if state.options.access_log.is_none() {
        return;
    }
    if !connection.unsent.is_empty() {
        log_unsent(state, connection, false);
    }
    if connection.is_behind() {
        return log_later(connection);
    }
    let bytes_sent = connection.bytes_sent();
    let Some(buffers) = &mut connection.request.buffers else { return };
    if let Some(answer) = &buffers.answer {
        let buffer = &buffers.read_buffer;
        log_answer(state, answer, Some((&buffer.head, buffer.head_bytes())), bytes_sent);
        buffers.answer = None;
    }
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

/// Logs the answers that have been sent as a whole; or all, because nothing more will be sent.
#[cold]
pub(crate) fn log_unsent(state: &State, connection: &mut Connection, all: bool) {
    let bytes_sent = connection.bytes_sent();
    let sent = connection.unsent.iter().take_while(|unsent| all || unsent.answer.is_before(bytes_sent)).count();
    for unsent in connection.unsent.drain(..sent) {
        let head = unsent.head.as_ref().map(|(head, bytes)| (head, &bytes[..]));
        log_answer(state, &unsent.answer, head, bytes_sent);
    }
}

/// Logs the remaining responses, because the connection ends.
#[inline]
pub(crate) fn log_rest(state: &State, connection: &mut Connection) {
    if !connection.unsent.is_empty() {
        log_unsent(state, connection, true);
    }
    let bytes_sent = connection.bytes_sent();
    if let Some(buffers) = &mut connection.request.buffers
        && let Some(answer) = buffers.answer.take()
    {
        log_answer(state, &answer, Some((&buffers.read_buffer.head, buffers.read_buffer.head_bytes())), bytes_sent);
    }
}

#[inline]
fn log_answer(state: &State, answer: &Answer, head: Option<(&Head, &[u8])>, bytes_sent: u64) {
    if let Some(log) = &state.options.access_log
        && log.add_answer(answer, head, bytes_sent)
    {
        state.flush_log_soon();
    }
}
