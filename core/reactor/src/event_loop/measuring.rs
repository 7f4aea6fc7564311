//! Updates the metrics of a worker: bytes, states of connections, and times of requests.

use std::mem;
use std::sync::atomic::Ordering;

use crate::connection::Connection;
use crate::connection::measures::Waiting;
use crate::connection::peer_trust::client_text;
use crate::connection::request::Request;
use crate::connection::state::Phase;
use crate::control::status::{DEPARTED, Finished, Refusal};
use crate::event_loop::reactor::{Reactor, Shared};
use crate::log::request_id::RequestName;
use crate::log::slow::Times;
use crate::sys::{clock, process};
use poorhttp_http::Reject;

/// When the last response of a connection was sent: now. One that was sent at once, behind the reading of the clock at its end, has
/// taken no time that matters, so the clock is not read again, unless the slow log is to have it all.
#[inline]
pub(crate) fn time_of_end(reactor: &Reactor, connection: &Connection) -> u64 {
    match &connection.measures {
        Some(measures) if measures.is_pending && !connection.is_behind() && reactor.options.slow_request == 0 => {
            measures.answered.ended
        }
        _ => clock::precise_us(),
    }
}

/// Whether the last response of a connection that is put back or closed (`is_closed`) was sent, or given up.
#[inline]
fn has_ended(connection: &Connection, is_closed: bool) -> bool {
    let is_pending = connection.measures.as_ref().is_some_and(|measures| measures.is_pending);
    is_pending && (is_closed || !connection.is_behind())
}

/// What is to be noted of the last response of a connection besides figures, if it has ended. Writes the slow log, so it is called
/// without the lock. `now`: in microseconds of [`clock::precise_us`].
#[inline]
pub(crate) fn finished(
    reactor: &Reactor,
    connection: &mut Connection,
    now: u64,
    is_closed: bool,
) -> Option<Box<Finished>> {
    let is_named = connection.measures.as_ref().is_some_and(|measures| measures.answered.name.is_some());
    if is_named && has_ended(connection, is_closed) { named_finished(reactor, connection, now) } else { None }
}

#[cold]
fn named_finished(reactor: &Reactor, connection: &mut Connection, now: u64) -> Option<Box<Finished>> {
    let all_sent = connection.bytes_sent();
    let measures = connection.measures.get_or_insert_default();
    let answered = &mut measures.answered;
    let times = answered.times(now);
    answered.report(&times, reactor.options.slow_request, &reactor.options.error_log);
    let name = answered.name.take().filter(|_| !answered.is_noted)?;
    Some(Box::new(Finished {
        number: answered.number,
        pid: process::id(),
        status: answered.status,
        ended: now,
        waited: times.waited,
        application: times.application.unwrap_or(0),
        sending: times.sending,
        sent: all_sent.saturating_sub(measures.begun),
        id: name.id.into_bytes(),
        line: name.line.into_bytes(),
    }))
}

/// Adds what there is of a connection to the figures: bytes, and the times of its last response if that has ended. The lock makes
/// sure that no other thread does at the same time.
#[inline]
pub(crate) fn count(
    reactor: &Reactor,
    shared: &mut Shared,
    connection: &mut Connection,
    now: u64,
    is_closed: bool,
    finished: Option<Box<Finished>>,
) {
    let figures = &reactor.counters.figures;
    let has_ended = has_ended(connection, is_closed);
    let all_sent = connection.bytes_sent();
    let measures = connection.measures.get_or_insert_default();
    figures.add_bytes(mem::take(&mut connection.received), all_sent.saturating_sub(measures.counted));
    measures.counted = all_sent;
    // The thread that has done this takes one of them.
    figures.set_ready(shared.connections.ready().saturating_sub(1));
    if has_ended {
        (measures.is_pending, measures.begun) = (false, all_sent);
        let Times { waited, application, sending } = measures.answered.times(now);
        figures.add_times(waited, application, sending);
    }
    if let (Some(finished), Some(recorder)) = (finished, &reactor.recorder) {
        recorder.note(&finished);
    }
}

/// Keeps the name of a request whose client takes the response slowly: it may become one of the slowest.
#[cold]
pub(crate) fn keep_name(reactor: &Reactor, connection: &mut Connection) {
    let Connection { request, measures: Some(measures), .. } = connection else { return };
    let answered = &mut measures.answered;
    if measures.is_pending && answered.name.is_none() {
        answered.name = Some(Box::new(request.name(reactor.options.request_ids, answered.number, request.line())));
    }
}

/// Counts a request that the server itself has refused, and notes it. `sent`: bytes of a response that is not counted elsewhere.
#[cold]
pub(crate) fn count_refusal(
    reactor: &Reactor,
    request: &Request,
    name: &RequestName,
    reject: Reject,
    sent: Option<u64>,
) {
    reactor.counters.figures.add_refused(reject.status);
    let Some(recorder) = &reactor.recorder else { return };
    let (when, line) = (clock::precise_us(), request.refused_line().into_bytes());
    let RequestName { number, id, .. } = name;
    let refusal = Refusal {
        number: *number,
        pid: process::id(),
        status: reject.status,
        when,
        reason: reactor.options.limits.explain(reject).into_owned().into_bytes(),
        client: client_text(request.client()).into_bytes(),
        id: id.clone().into_bytes(),
        line,
    };
    recorder.note_refusal(refusal, sent);
}

/// Counts and logs the last response of a connection with [`DEPARTED`] if its client has left before anything of it came there.
#[cold]
pub(crate) fn note_departure(reactor: &Reactor, connection: &mut Connection) {
    if connection.socket.is_disconnected() {
        // The server has ended it.
        return;
    }
    let begun = connection.measures.as_ref().filter(|measures| measures.is_pending).map(|measures| measures.begun);
    if let Some(begun) = begun
        && connection.measures.as_ref().is_some_and(|measures| ![0, DEPARTED].contains(&measures.answered.status))
        && connection.has_lost_all_since(begun, reactor.options.unacknowledged)
    {
        reactor.counters.figures.departed.fetch_add(1, Ordering::Relaxed);
    }
    let answer = connection.request.buffers.as_ref().and_then(|buffers| buffers.answer.as_ref());
    if let Some(start) = answer.filter(|answer| !answer.has_no_head).map(|answer| answer.start)
        && connection.has_lost_all_since(start, reactor.options.unacknowledged)
        && let Some(answer) = &mut connection.request.buffers().answer
    {
        answer.status = DEPARTED;
    }
}

/// Counts the bytes of a response that is still being made.
#[cold]
pub(crate) fn count_bytes(reactor: &Reactor, connection: &mut Connection) {
    let received = mem::take(&mut connection.received);
    let all_sent = connection.bytes_sent();
    let measures = connection.measures.get_or_insert_default();
    let sent = all_sent.saturating_sub(mem::replace(&mut measures.counted, all_sent));
    let _shared = reactor.lock();
    reactor.counters.figures.add_bytes(received, sent);
}

/// A connection waits for an event. `is_mid_message`: a part of a request has come.
#[cold]
pub(crate) fn note_wait(reactor: &Reactor, connection: &mut Connection, is_mid_message: bool) {
    let waiting = match connection.phase() {
        Phase::Refused(_) | Phase::Sending(_) => Some(Waiting::Sending),
        Phase::Handshake | Phase::WritingBody => Some(Waiting::Reading),
        Phase::Serving if is_mid_message => Some(Waiting::Reading),
        Phase::Serving | Phase::Lingering | Phase::LongPoll => None,
    };
    set_waiting(reactor, connection, waiting);
}

/// The request of a connection is being answered, or the connection is idle or closed.
#[inline]
pub(crate) fn end_wait(reactor: &Reactor, connection: &mut Connection) {
    if connection.measures.as_ref().is_some_and(|measures| measures.waiting.is_some()) {
        set_waiting(reactor, connection, None);
    }
}

#[cold]
fn set_waiting(reactor: &Reactor, connection: &mut Connection, waiting: Option<Waiting>) {
    let before = mem::replace(&mut connection.measures.get_or_insert_default().waiting, waiting);
    reactor.counters.figures.change(before, waiting);
}
