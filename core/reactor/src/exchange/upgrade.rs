//! Protocol upgrade: the application gets the client's socket, and its WSGI response is discarded.
//!
//! A request that may change the protocol ([`poorhttp_http::Head::may_upgrade`]) is offered to the application with a
//! reservation. If it takes the socket, the exchange keeps the connection until the application has finished; if it does
//! not, the request is answered as always.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{mem, thread};

use crate::exchange::reply::{self, text_reply};
use crate::exchange::stream::Stream;
use crate::exchange::writer::{ResponseWriter, UNCOUNTED};
use crate::log::entry::{Answer, Unsent};
use crate::log::error::Level;
use crate::scheduler::state::State;
use crate::scheduler::stop;
use crate::shutdown::Stage;
use crate::sys::{Errno, OwnedFd};
use crate::websocket::hijack::{First, hand_over};
use crate::websocket::offered::{Hijacked, Offered};
use crate::websocket::upgraded::{GOING_AWAY, Upgraded};
use poorhttp_http::Reject;

/// Outcome of [`crate::Exchange::offer_upgrade`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The application may take the connection.
    Made,
    /// The request is an ordinary one.
    None,
    /// The request was answered with an error.
    Refused,
}

/// Why an application does not get the connection.
#[derive(Debug)]
pub enum NotHijacked {
    /// The request has been answered, or its response has begun.
    Answered,
    /// Another part of the application has got it.
    Hijacked,
    /// Earlier responses must be sent before: the application should wait for room.
    Full,
    /// The client is gone, or the time of the request is over.
    Disconnected,
    /// A system call has failed.
    Failed(Errno),
}

const TOO_MANY: Reject = Reject { status: 503, reason: "too many upgraded connections" };

/// Reserves an upgrade, if this request may have one.
pub(crate) fn offer(writer: &mut ResponseWriter, offered: &mut Option<Box<Offered>>) -> Offer {
    if writer.state.upgrades.is_off() || !writer.head().is_some_and(|(head, bytes)| head.may_upgrade(bytes)) {
        return Offer::None;
    }
    let Some(reserved) = writer.state.upgrades.reserve() else {
        writer.log_message(Level::Info, &format!("refused with 503 ({})", TOO_MANY.reason));
        writer.count_refusal(TOO_MANY);
        writer.response.close();
        let refusal = text_reply("503 Service Unavailable", "503 Service Unavailable", "Retry-After: 5\r\n");
        let _ = reply::send(writer, refusal);
        return Offer::Refused;
    };
    *offered = Some(Box::new(Offered::new(reserved)));
    Offer::Made
}

/// Gives the connection to the application. The response is discarded from now on, and the request timeout ends.
pub(crate) fn hijack(writer: &mut ResponseWriter) -> Result<(OwnedFd, Hijacked), NotHijacked> {
    writer.restart();
    let Some(stream) = &mut writer.stream else { return Err(NotHijacked::Answered) };
    // Responses to earlier requests.
    if stream.send(&[]).is_err() {
        writer.lost = true;
    } else if stream.is_behind() {
        return Err(NotHijacked::Full);
    }
    if writer.check_lost().is_err() {
        return Err(NotHijacked::Disconnected);
    }
    let Some(stream) = &mut writer.stream else { return Err(NotHijacked::Answered) };
    let weak = Arc::downgrade(&writer.state);
    let handed = hand_over(&writer.state.relays, &writer.state.poller, stream.connection(), move |connection, end| {
        if let Some(state) = weak.upgrade() {
            Stream::of(connection).end_relayed(&state, end);
        }
    });
    let (socket, pair, meeting) = handed.map_err(NotHijacked::Failed)?;
    writer.end_timeout();
    if writer.timeout.has_outcome() {
        return Err(NotHijacked::Disconnected);
    }
    let Some(stream) = &mut writer.stream else { return Err(NotHijacked::Answered) };
    let (mut is_websocket, mut kept) = (false, None);
    if let Some((head, bytes)) = stream.request().head() {
        is_websocket = head.asks_websocket(bytes);
        kept = writer.state.telemetry.access_log.as_ref().map(|_| (head.clone(), bytes.to_vec()));
    }
    let upgraded = Arc::new(Upgraded::new(Arc::clone(stream.socket()), pair, is_websocket));
    stream.let_go(&writer.state);
    writer.is_hijacked = true;
    Ok((socket, Hijacked { upgraded, head: kept, meeting }))
}

/// Counts a connection that the application has got, and has it told when the server stops.
pub(crate) fn announce(writer: &ResponseWriter, upgraded: &Arc<Upgraded>) {
    let state = &writer.state;
    state.upgrades.add(writer.number, Arc::clone(upgraded));
    state.counters.add_upgraded();
    if state.is_stopping() {
        upgraded.ask_to_close(GOING_AWAY);
        stop::stop_upgraded(state, state.shutdown.stage() == Stage::Graceful);
    } else if state.running.has_one_thread {
        receive_meanwhile(state);
    }
}

/// Ends a connection that the application has got, and gives its reservation back. `complete`: the application has not failed.
pub(crate) fn end(writer: &mut ResponseWriter, hijacked: Hijacked, offered: &mut Option<Box<Offered>>, complete: bool) {
    let Hijacked { upgraded, head, meeting } = hijacked;
    let Some(mut stream) = writer.stream.take() else { return };
    if writer.is_foreign() {
        return mem::forget(stream);
    }
    let state = &writer.state;
    state.upgrades.remove(writer.number);
    state.counters.remove_upgraded();
    *offered = None;
    // RFC 6455 section 7.4.1.
    let code = if complete { 1000 } else { 1011 };
    let is_orderly = upgraded.close_with(code) || complete;
    let (status, head_bytes, sent) = upgraded.sent();
    let status = status.unwrap_or(0);
    state.counters.answered(status);
    if let Some(log) = &state.telemetry.access_log
        && writer.number != UNCOUNTED
    {
        let start = writer.log_entry.start();
        let entry = writer.log_entry.end(log, &stream, writer.number, status);
        let received = head.as_ref().map_or(0, |(head, _)| head.length as u64);
        let (size, body, end) = (sent - head_bytes, start + head_bytes, start + sent);
        let answer = Answer { size, body, end, is_whole: complete, received, ..entry };
        stream.log_sent_elsewhere(sent, Unsent { answer, head });
    }
    if !is_orderly && !upgraded.is_detached() {
        stream.socket().reset();
    }
    let Some(meeting) = meeting else {
        return match is_orderly {
            _ if upgraded.is_detached() => stream.leave(state),
            true => stream.close_after_client(state),
            false => stream.close(state),
        };
    };
    let mut first = meeting.lock();
    match *first {
        First::Relay(end) => {
            drop(first);
            stream.end_relayed(state, end);
        }
        _ => *first = First::Request(stream.into_connection()),
    }
    upgraded.end_relay(upgraded.is_detached());
}

/// Receives the commands of the main process while the only thread that runs requests may wait for a client.
#[cold]
fn receive_meanwhile(state: &Arc<State>) {
    let Some(channel) = &state.running.channel else { return };
    if state.upgrades.has_receiver.swap(true, Ordering::AcqRel) {
        return;
    }
    const PAUSE: Duration = Duration::from_millis(500);
    let (weak, channel) = (Arc::downgrade(state), channel.clone());
    let receive = move || {
        while channel.wait() {
            let Some(state) = weak.upgrade() else { return };
            match channel.has_command() {
                true if state.is_stopping() => return,
                true => stop::receive_commands(&state),
                // Only the thread that runs requests answers pings.
                false => thread::sleep(PAUSE),
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("poorhttp-stop".to_owned()).spawn(receive) {
        state.upgrades.has_receiver.store(false, Ordering::Release);
        state.log(Level::Error, &format!("an upgraded connection will not be told when this worker stops: {error}"));
    }
}
