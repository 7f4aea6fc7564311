//! Counts bytes, states of connections and times of requests; other metrics are counted where they happen.

use std::mem;
use std::sync::atomic::Ordering;

use crate::connection::Connection;
use crate::connection::peer_trust::client_text;
use crate::connection::request::Request;
use crate::connection::state::Phase;
use crate::log::request_id::RequestName;
use crate::log::slow::Times;
use crate::status::{CLIENT_ABORT, Finished, Refusal, Waiting};
use crate::sys::{clock, process};
use crate::telemetry::Telemetry;
use poorhttp_http::Reject;

/// When the last response of a connection was sent: now. One that was sent at once, behind the reading of the clock at its end, has
/// taken no time that matters, so the clock is not read again, unless the slow log is to have it all.
#[inline]
pub(crate) fn time_of_end(telemetry: &Telemetry, connection: &Connection) -> u64 {
    match &connection.timing {
        Some(measured) if measured.is_pending && !connection.is_behind() && telemetry.slow_request == 0 => {
            measured.answered.ended
        }
        _ => clock::precise_us(),
    }
}

/// Whether the last response of a connection that is put back or closed (`is_closed`) was sent, or given up.
#[inline]
fn has_ended(connection: &Connection, is_closed: bool) -> bool {
    let is_pending = connection.timing.as_ref().is_some_and(|measured| measured.is_pending);
    is_pending && (is_closed || !connection.is_behind())
}

/// What is to be noted of the last response of a connection besides metrics, if it has ended. Writes the slow log, so it is called
/// without the lock. `now`: in microseconds of [`clock::precise_us`].
#[inline]
pub(crate) fn finished(
    telemetry: &Telemetry,
    connection: &mut Connection,
    now: u64,
    is_closed: bool,
) -> Option<Box<Finished>> {
    let is_named = connection.timing.as_ref().is_some_and(|measured| measured.answered.name.is_some());
    if is_named && has_ended(connection, is_closed) { named_finished(telemetry, connection, now) } else { None }
}

#[cold]
fn named_finished(telemetry: &Telemetry, connection: &mut Connection, now: u64) -> Option<Box<Finished>> {
    let all_sent = connection.bytes_sent();
    let measured = connection.timing.get_or_insert_default();
    let answered = &mut measured.answered;
    let times = answered.times(now);
    answered.report(&times, telemetry.slow_request, &telemetry.error_log);
    let name = answered.name.take().filter(|_| !answered.is_noted)?;
    Some(Box::new(Finished {
        number: answered.number,
        pid: process::id(),
        status: answered.status,
        ended: now,
        waited: times.waited,
        application: times.application.unwrap_or(0),
        sending: times.sending,
        sent: all_sent.saturating_sub(measured.begun),
        id: name.id.into_bytes(),
        line: name.line.into_bytes(),
    }))
}

/// Adds what there is of a connection to the metrics: bytes, and the times of its last response if that has ended. Called under the
/// lock of the table, of which `ready` connections are ready: no other thread does at the same time.
#[inline]
pub(crate) fn count(
    telemetry: &Telemetry,
    ready: usize,
    connection: &mut Connection,
    now: u64,
    is_closed: bool,
    finished: Option<Box<Finished>>,
) {
    let metrics = &telemetry.counters.metrics;
    let has_ended = has_ended(connection, is_closed);
    let all_sent = connection.bytes_sent();
    let measured = connection.timing.get_or_insert_default();
    metrics.add_bytes(mem::take(&mut connection.received), all_sent.saturating_sub(measured.counted));
    measured.counted = all_sent;
    // The thread that has done this takes one of them.
    metrics.set_ready(ready.saturating_sub(1));
    if has_ended {
        (measured.is_pending, measured.begun) = (false, all_sent);
        let Times { waited, application, sending } = measured.answered.times(now);
        metrics.add_times(waited, application, sending);
    }
    if let (Some(finished), Some(recorder)) = (finished, &telemetry.recorder) {
        recorder.note(&finished);
    }
}

/// Keeps the name of a request whose client takes the response slowly: it may become one of the slowest.
#[cold]
pub(crate) fn keep_name(telemetry: &Telemetry, connection: &mut Connection) {
    let Connection { request, timing: Some(measured), .. } = connection else { return };
    let answered = &mut measured.answered;
    if measured.is_pending && answered.name.is_none() {
        answered.name = Some(Box::new(request.name(telemetry.request_ids, answered.number, request.line())));
    }
}

/// Counts a request that the server itself has refused, and notes it. `sent`: bytes of a response that is not counted elsewhere.
#[cold]
pub(crate) fn count_refusal(
    telemetry: &Telemetry,
    request: &Request,
    name: &RequestName,
    reject: Reject,
    reason: &str,
    sent: Option<u64>,
) {
    telemetry.counters.metrics.add_refused(reject.status);
    let Some(recorder) = &telemetry.recorder else { return };
    let (when, line) = (clock::precise_us(), request.refused_line().into_bytes());
    let RequestName { number, id, .. } = name;
    let refusal = Refusal {
        number: *number,
        pid: process::id(),
        status: reject.status,
        when,
        reason: reason.to_owned().into_bytes(),
        client: client_text(request.client()).into_bytes(),
        id: id.clone().into_bytes(),
        line,
    };
    recorder.note_refusal(refusal, sent);
}

/// Counts and logs the last response of a connection with [`CLIENT_ABORT`] if its client has left before anything of it came there.
#[cold]
pub(crate) fn note_client_abort(telemetry: &Telemetry, connection: &mut Connection) {
    if connection.socket.is_disconnected() {
        // The server has ended it.
        return;
    }
    let begun = connection.timing.as_ref().filter(|measured| measured.is_pending).map(|measured| measured.begun);
    if let Some(begun) = begun
        && connection.timing.as_ref().is_some_and(|measured| ![0, CLIENT_ABORT].contains(&measured.answered.status))
        && connection.has_lost_all_since(begun, telemetry.unacknowledged)
    {
        telemetry.counters.metrics.client_aborts.fetch_add(1, Ordering::Relaxed);
    }
    let answer = connection.request.buffers.as_ref().and_then(|buffers| buffers.answer.as_ref());
    if let Some(start) = answer.filter(|answer| !answer.has_no_head).map(|answer| answer.start)
        && connection.has_lost_all_since(start, telemetry.unacknowledged)
        && let Some(answer) = &mut connection.request.buffers().answer
    {
        answer.status = CLIENT_ABORT;
    }
}

/// Counts the bytes of a response that is still being made, of which `all_sent` bytes have been sent. Called under the lock of
/// the table.
#[cold]
pub(crate) fn count_bytes(telemetry: &Telemetry, connection: &mut Connection, all_sent: u64) {
    let received = mem::take(&mut connection.received);
    let measured = connection.timing.get_or_insert_default();
    let sent = all_sent.saturating_sub(mem::replace(&mut measured.counted, all_sent));
    telemetry.counters.metrics.add_bytes(received, sent);
}

/// A connection waits for an event. `is_mid_message`: a part of a request has come.
#[cold]
pub(crate) fn note_wait(telemetry: &Telemetry, connection: &mut Connection, is_mid_message: bool) {
    let waiting = match connection.phase() {
        Phase::Refused(_) | Phase::Sending(_) => Some(Waiting::Sending),
        Phase::Handshake | Phase::WritingBody => Some(Waiting::Reading),
        Phase::Serving if is_mid_message => Some(Waiting::Reading),
        Phase::Serving | Phase::Lingering | Phase::LongPoll | Phase::Multiplexed => None,
    };
    set_waiting(telemetry, connection, waiting);
}

/// The request of a connection is being answered, or the connection is idle or closed.
#[inline]
pub(crate) fn end_wait(telemetry: &Telemetry, connection: &mut Connection) {
    if connection.timing.as_ref().is_some_and(|measured| measured.waiting.is_some()) {
        set_waiting(telemetry, connection, None);
    }
}

#[cold]
fn set_waiting(telemetry: &Telemetry, connection: &mut Connection, waiting: Option<Waiting>) {
    let before = mem::replace(&mut connection.timing.get_or_insert_default().waiting, waiting);
    telemetry.counters.metrics.change(before, waiting);
}
