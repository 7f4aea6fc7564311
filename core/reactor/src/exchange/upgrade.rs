//! Protocol upgrade: the application gets the client's socket, and its WSGI response is discarded.
//!
//! A request that may change the protocol ([`poorhttp_http::Head::may_upgrade`]) is offered to the application with a
//! reservation. If it takes the socket, the exchange keeps the connection until the application has finished; if it does
//! not, the request is answered as always.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{mem, thread};

use crate::connection::relay::RelayEnd;
use crate::control::shutdown::Stage;
use crate::control::upgrades::{GOING_AWAY, Upgraded};
use crate::event_loop::reactor::Reactor;
use crate::event_loop::{ready_queue, shutdown};
use crate::exchange::reply::text_reply;
use crate::exchange::stream::Stream;
use crate::exchange::taken::{First, Meeting, Taken, Upgrade};
use crate::exchange::{Exchange, UNCOUNTED};
use crate::log::entry::{Answer, Unsent};
use crate::log::error::Level;
use crate::sys::{Errno, OwnedFd, net};
use poorhttp_http::Reject;

/// Outcome of [`Exchange::offer_upgrade`].
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
pub enum NotTaken {
    /// The request has been answered, or its response has begun.
    Answered,
    /// Another part of the application has got it.
    Taken,
    /// Earlier responses must be sent before: the application should wait for [`Exchange::socket`].
    Full,
    /// The client is gone, or the time of the request is over.
    Disconnected,
    /// A system call has failed.
    Failed(Errno),
}

const TOO_MANY: Reject = Reject { status: 503, reason: "too many upgraded connections" };

impl Exchange {
    /// Whether the client proposes another protocol; then the application should get an offer.
    #[inline]
    pub fn asks_upgrade(&self) -> bool {
        self.head().is_some_and(|(head, _)| head.asks_upgrade)
    }

    /// Reserves an upgrade, if this request may have one.
    #[cold]
    pub fn offer_upgrade(&mut self) -> Offer {
        if self.reactor.upgrades.is_off() || !self.head().is_some_and(|(head, bytes)| head.may_upgrade(bytes)) {
            return Offer::None;
        }
        let Some(reserved) = self.reactor.upgrades.reserve() else {
            self.log_message(Level::Info, &format!("refused with 503 ({})", TOO_MANY.reason));
            self.count_refusal(TOO_MANY);
            self.response.close();
            let _ = self.reply(text_reply("503 Service Unavailable", "503 Service Unavailable", "Retry-After: 5\r\n"));
            return Offer::Refused;
        };
        self.upgrade = Some(Box::new(Upgrade::new(reserved)));
        Offer::Made
    }

    /// Gives the reservation back: the response is complete.
    #[cold]
    pub(crate) fn forgo_upgrade(&mut self) {
        self.upgrade = None;
    }

    /// Whether the application has got the connection.
    #[inline]
    pub fn is_upgraded(&self) -> bool {
        self.upgrade.as_ref().is_some_and(|upgrade| upgrade.taken.is_some())
    }

    /// Gives the connection to the application: a blocking duplicate of its socket. The response is discarded from now on,
    /// the request timeout ends, and [`Exchange::end_upgraded`] is to be called.
    pub fn take_over(&mut self) -> Result<(OwnedFd, Arc<Upgraded>), NotTaken> {
        if self.is_upgraded() {
            return Err(NotTaken::Taken);
        }
        if self.is_foreign() || self.upgrade.is_none() || self.response.is_committed() {
            return Err(NotTaken::Answered);
        }
        self.restart();
        let Some(stream) = &mut self.stream else { return Err(NotTaken::Answered) };
        // Responses to earlier requests.
        if stream.send(&[]).is_err() {
            self.lost = true;
        } else if stream.is_behind() {
            return Err(NotTaken::Full);
        }
        if self.check_lost().is_err() {
            return Err(NotTaken::Disconnected);
        }
        let Some(stream) = &mut self.stream else { return Err(NotTaken::Answered) };
        let (socket, pair, meeting) = hand_over(&self.reactor, stream).map_err(NotTaken::Failed)?;
        self.end_timeout();
        if self.timeout_outcome.is_some() {
            return Err(NotTaken::Disconnected);
        }
        let Some(stream) = &mut self.stream else { return Err(NotTaken::Answered) };
        let (mut is_websocket, mut kept) = (false, None);
        if let Some((head, bytes)) = stream.request().head() {
            is_websocket = head.asks_websocket(bytes);
            kept = self.reactor.options.access_log.as_ref().map(|_| (head.clone(), bytes.to_vec()));
        }
        let upgraded = Arc::new(Upgraded::new(Arc::clone(stream.socket()), pair, is_websocket));
        stream.let_go(&self.reactor);
        self.answered_elsewhere = true;
        if let Some(upgrade) = &mut self.upgrade {
            upgrade.taken = Some(Taken { upgraded: Arc::clone(&upgraded), head: kept, meeting });
        }
        let reactor = &self.reactor;
        reactor.upgrades.add(self.number, Arc::clone(&upgraded));
        reactor.counters.add_upgraded();
        if reactor.is_stopping() {
            upgraded.ask_to_close(GOING_AWAY);
            shutdown::stop_upgraded(reactor, reactor.shutdown.stage() == Stage::Graceful);
        } else if reactor.options.has_one_thread {
            receive_meanwhile(reactor);
        }
        Ok((socket, upgraded))
    }

    /// The application has finished with the connection that it has got. A client that speaks WebSocket gets a Close frame,
    /// unless the application has sent one. If that has failed (not `complete`), any other client gets a reset.
    pub fn end_upgraded(&mut self, complete: bool) {
        let Some(Taken { upgraded, head, meeting }) = self.upgrade.as_mut().and_then(|upgrade| upgrade.taken.take())
        else {
            return;
        };
        let Some(mut stream) = self.stream.take() else { return };
        if self.is_foreign() {
            return mem::forget(stream);
        }
        self.reactor.upgrades.remove(self.number);
        self.reactor.counters.remove_upgraded();
        self.upgrade = None;
        // RFC 6455 section 7.4.1.
        let code = if complete { 1000 } else { 1011 };
        let is_orderly = upgraded.close_with(code) || complete;
        let (status, head_bytes, sent) = upgraded.sent();
        let status = status.unwrap_or(0);
        self.reactor.counters.answered(status);
        let collected = self.take_collected(&stream);
        if self.reactor.options.access_log.is_some() && self.number != UNCOUNTED {
            let answer = Answer {
                client: stream.request().client().map(|(address, _)| address),
                has_no_head: false,
                status,
                size: sent - head_bytes,
                start: self.start,
                body: self.start + head_bytes,
                end: self.start + sent,
                is_whole: complete,
                persists: false,
                started: self.started,
                number: self.number,
                kept: stream.request().served,
                received: head.as_ref().map_or(0, |(head, _)| head.length as u64),
                is_trusted: stream.request().is_from_trusted_proxy(),
                collected,
            };
            stream.log_sent_elsewhere(sent, Unsent { answer, head });
        }
        if !is_orderly && !upgraded.is_detached() {
            stream.socket().reset();
        }
        let Some(meeting) = meeting else {
            return match is_orderly {
                _ if upgraded.is_detached() => stream.leave(&self.reactor),
                true => stream.close_after_client(&self.reactor),
                false => stream.close(&self.reactor),
            };
        };
        let mut first = meeting.lock();
        match *first {
            First::Relay(end) => {
                drop(first);
                stream.end_relayed(&self.reactor, end);
            }
            _ => *first = First::Request(stream),
        }
        upgraded.end_relay(upgraded.is_detached());
    }
}

/// A socket for the application: a duplicate, or one end of a pair and a duplicate of that if the connection does not carry just
/// the bytes that the application must get.
#[cold]
fn hand_over(reactor: &Arc<Reactor>, stream: &mut Stream) -> Result<Handed, Errno> {
    let received = stream.request().unread();
    let socket = stream.socket();
    if received.is_empty() && socket.transport.tls().is_none() {
        return Ok((net::blocking_duplicate(&socket.transport)?, None, None));
    }
    let (received, socket) = (received.to_vec(), Arc::clone(socket));
    // The relay has a poller of its own.
    stream.unregister(reactor);
    let meeting = Arc::new(Meeting::default());
    let (weak, other) = (Arc::downgrade(reactor), Arc::clone(&meeting));
    let on_end = move |end| {
        let before = mem::replace(&mut *other.lock(), First::Relay(end));
        if let (First::Request(stream), Some(reactor)) = (before, weak.upgrade()) {
            stream.end_relayed(&reactor, end);
        }
    };
    let pair = reactor.relays.start(&socket, received, on_end)?;
    let duplicate = net::blocking_duplicate(&pair)?;
    Ok((duplicate, Some(pair), Some(meeting)))
}

/// The socket of the application, and for a relay a duplicate of it and the meeting.
type Handed = (OwnedFd, Option<OwnedFd>, Option<Arc<Meeting>>);

impl Stream {
    /// The application gets the socket.
    fn let_go(&mut self, reactor: &Reactor) {
        self.0.was_upgraded = true;
        ready_queue::let_go(reactor, &mut self.0);
    }

    /// Notes a log entry of so many bytes, which the application has sent itself.
    fn log_sent_elsewhere(&mut self, bytes: u64, unsent: Unsent) {
        self.0.add_taken(bytes);
        self.0.unsent.push(unsent);
    }

    /// Ends a connection whose relay has ended, too.
    fn end_relayed(self, reactor: &Reactor, end: RelayEnd) {
        match end {
            RelayEnd::ConnectionLost => self.close(reactor),
            RelayEnd::Application | RelayEnd::Both => self.close_after_client(reactor),
        }
    }

    fn unregister(&mut self, reactor: &Reactor) {
        self.0.unregister(&reactor.poller);
    }

    /// Leaves the socket to the application, which has a descriptor of its own.
    fn leave(mut self, reactor: &Reactor) {
        self.0.was_upgraded = false;
        ready_queue::close(reactor, self.0);
    }
}

/// Receives the commands of the main process while the only thread that runs requests may wait for a client.
#[cold]
fn receive_meanwhile(reactor: &Arc<Reactor>) {
    let Some(channel) = &reactor.options.channel else { return };
    if reactor.upgrades.has_receiver.swap(true, Ordering::AcqRel) {
        return;
    }
    const PAUSE: Duration = Duration::from_millis(500);
    let (weak, channel) = (Arc::downgrade(reactor), channel.clone());
    let receive = move || {
        while channel.wait() {
            let Some(reactor) = weak.upgrade() else { return };
            match channel.has_command() {
                true if reactor.is_stopping() => return,
                true => reactor.receive_commands(),
                // Only the thread that runs requests answers pings.
                false => thread::sleep(PAUSE),
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("poorhttp-stop".to_owned()).spawn(receive) {
        reactor.upgrades.has_receiver.store(false, Ordering::Release);
        reactor.log(Level::Error, &format!("an upgraded connection will not be told when this worker stops: {error}"));
    }
}
