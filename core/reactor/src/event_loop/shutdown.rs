//! Graceful and quick shutdown, drain, and the handoff of idle connections to a successor.
//!
//! Where the next request must be answered by a new version of the application, and none may be lost, idle connections are
//! not closed, because their clients may be sending at this very moment. The socket itself goes to the successor, with
//! everything unread that has arrived on it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::connection::state::Phase;
use crate::control::channel::Command;
use crate::control::shutdown::Stage;
use crate::control::upgrades::{GOING_AWAY, Upgraded};
use crate::event_loop::reactor::{Reactor, Shared};
use crate::event_loop::{accept, finish, ready_queue};
use crate::log::error::Level;
use crate::options::Timeouts;
use crate::sys::clock;
use crate::sys::fd_handoff::{FdHandoff, PassedConnection};
use crate::sys::socket::Transport;
use crate::sys::{AsFd, net};

impl Reactor {
    /// Stops accepting, and ends when every request in flight is answered. If `graceful`, requests of which a part has arrived
    /// are received and answered, too, and idle clients may send another one for the time of [`Timeouts::drain`].
    ///
    /// `last`: no other process listens on the same sockets, so all connections in their backlogs are accepted.
    pub fn stop(self: &Arc<Self>, graceful: bool, last: bool) {
        if self.is_foreign() {
            return;
        }
        if last {
            self.drain();
        }
        let before = self.shutdown.request(if graceful { Stage::Graceful } else { Stage::Quick });
        if before == Stage::Running
            && let Some(accept_balance) = &self.options.accept_balance
        {
            // Under the lock under which others publish if they do not see that we stop; only now, since another worker may
            // have our place later.
            let _shared = self.lock();
            accept_balance.withdraw();
        }
        // At once, not at the next poll: all threads may be busy, and no client shall connect to a server that does not
        // answer any more.
        accept::stop_accepting(self, last);
        if self.options.raw_tcp && (before == Stage::Running || !graceful) {
            stop_raw_tcp(self, graceful);
        }
        if before == Stage::Running || !graceful {
            stop_upgraded(self, graceful);
        }
        self.wake();
    }

    /// Cuts all connections of a reactor that was stopped, and ends although requests are in flight: the next call of each of
    /// their applications fails.
    #[cold]
    pub fn give_up(&self) {
        if self.is_foreign() {
            return;
        }
        let mut shared = self.lock();
        shared.stopping.give_up();
        let open: Vec<_> = shared.connections.occupied().filter_map(|(_, slot)| slot.socket.clone()).collect();
        drop(shared);
        // Without the lock, as a thread that sends may hold a socket and wait for the lock.
        open.iter().for_each(|socket| socket.cut_off());
        self.waiters.wake_all();
        self.wake();
    }

    /// Stops, and passes idle connections to the successor, which listens on the same sockets.
    #[cold]
    fn detach(self: &Arc<Self>) {
        self.shutdown.request_handoff(self.options.fd_handoff.is_some());
        self.stop(true, false);
    }

    /// Receives and executes the commands of the main process.
    #[cold]
    pub fn receive_commands(self: &Arc<Self>) {
        let Some(received) = self.options.channel.as_ref().map(|channel| channel.receive()) else { return };
        if received.end_long_polls {
            self.end_long_polls();
        }
        if let Some(fd) = received.certificates
            && let Err(error) = self.listeners.replace_certificates(&fd)
        {
            self.log(Level::Error, &format!("new certificates are not used; the old ones stay: {error}"));
        }
        if let Some(drain) = received.drain {
            self.shutdown.set_ready(!drain);
        }
        match received.command {
            Command::None => {}
            Command::Retire => self.stop(true, false),
            Command::Promote => {
                self.shutdown.promote();
                self.stop(true, false);
            }
            Command::Detach => self.detach(),
            Command::End => {
                if let Some(on_end) = self.options.on_main_process_end
                    && !self.is_foreign()
                {
                    on_end();
                }
                self.stop(true, true);
            }
        }
        if received.reopen_logs
            && let Some(reopen_logs) = &self.options.reopen_logs
        {
            reopen_logs.call();
        }
        if let Some(graceful) = received.stop {
            if let Some(note_stop) = &self.options.note_stop {
                note_stop.call();
            }
            self.stop(graceful, true);
        }
    }

    /// Reports the server as not ready from now on, while it still accepts and serves: it will stop soon.
    pub fn drain(&self) {
        if !self.is_foreign() {
            self.shutdown.set_ready(false);
        }
    }

    /// Completes all long polls.
    pub fn end_long_polls(&self) {
        if !self.is_foreign() {
            self.long_polls.end(clock::precise_us());
            self.continue_long_polls();
        }
    }

    /// Sends a chunk to all long polls that are not behind; the others get the last one as soon as they can. Returns how
    /// many connections may be long polls.
    pub fn push_to_long_polls(&self, chunk: &[u8]) -> usize {
        if self.is_foreign() {
            return 0;
        }
        self.long_polls.push(chunk);
        self.continue_long_polls()
    }

    fn continue_long_polls(&self) -> usize {
        // A connection that a thread has may be about to become a long poll.
        let marked = self
            .lock()
            .connections
            .mark_all_readable(|connection| connection.is_none_or(|connection| connection.phase() == Phase::LongPoll));
        self.wake();
        marked
    }
}

impl Shared {
    /// Acts upon the stage that was requested.
    #[cold]
    pub(super) fn enter_stage(&mut self, stage: Stage, timeouts: &Timeouts) {
        let timeout = if stage == Stage::Graceful { timeouts.graceful } else { 0 };
        self.stopping.enter(stage, clock::now() + timeout);
        // Bytes that have arrived by now are still read.
        self.connections.mark_all_readable(|_| true);
    }
}

/// Shuts down the connections of handlers when the time to stop is over, as all threads may be waiting for clients.
fn stop_raw_tcp(reactor: &Arc<Reactor>, graceful: bool) {
    let timeout = if graceful { reactor.options.timeouts.graceful } else { 0 };
    if timeout == 0 {
        return cut_off(reactor);
    }
    let weak = Arc::downgrade(reactor);
    let cut_off_later = move || {
        thread::sleep(Duration::from_millis(timeout));
        if let Some(reactor) = Weak::upgrade(&weak) {
            cut_off(&reactor);
        }
    };
    if thread::Builder::new().name("poorhttp-stop".to_owned()).spawn(cut_off_later).is_err() {
        let message = "connections will not be shut down when graceful_timeout is over: no thread can be started";
        reactor.log(Level::Error, message);
    }
}

/// Shuts down every connection. What was sent on it is still delivered.
fn cut_off(reactor: &Reactor) {
    let mut shared = reactor.lock();
    let open = shared.connections.occupied().filter_map(|(_, slot)| slot.socket.as_ref());
    let shut = open.filter(|socket| socket.transport.shut_down()).count();
    drop(shared);
    log_cut_off(reactor, shut);
}

fn log_cut_off(reactor: &Reactor, shut: usize) {
    if shut > 0 {
        let plural = if shut == 1 { "connection was" } else { "connections were" };
        reactor.log(Level::Info, &format!("graceful_timeout is over; {shut} {plural} shut down"));
    }
}

/// Milliseconds that clients have to answer a Close frame; then the input of applications ends.
const CLOSE_TIMEOUT: u64 = 1_000;

/// Upgraded connections that are told at once, and the pause until the next: thousands of threads that end at the same time
/// hinder each other, and their clients connect again.
const TOLD_AT_ONCE: usize = 64;
const PAUSE: Duration = Duration::from_millis(40);

/// Tells applications that have got connections that the server stops, and ends what is left when the time for that is over.
pub(crate) fn stop_upgraded(reactor: &Arc<Reactor>, graceful: bool) {
    let upgrades = &reactor.upgrades;
    let open = upgrades.open();
    let timeout = if graceful { reactor.options.timeouts.graceful } else { 0 };
    if timeout == 0 {
        open.iter().for_each(|upgraded| upgraded.ask_to_close(GOING_AWAY));
        return log_cut_off(reactor, upgrades.shut_down());
    }
    let tell = move |open: &[Arc<Upgraded>]| open.iter().for_each(|upgraded| upgraded.ask_to_close(GOING_AWAY));
    // The first of them now.
    let (now, later) = open.split_at(open.len().min(TOLD_AT_ONCE));
    tell(now);
    if open.is_empty() || upgrades.has_ender.swap(true, Ordering::AcqRel) {
        return;
    }
    let later = later.to_vec();
    let until = Instant::now() + Duration::from_millis(timeout);
    let patience = Duration::from_millis(CLOSE_TIMEOUT.min(timeout / 2));
    let weak = Arc::downgrade(reactor);
    let end_later = move || {
        in_turns(&later, until, tell);
        drop(later);
        thread::sleep(patience);
        let left = Weak::upgrade(&weak).map(|reactor| reactor.upgrades.open());
        in_turns(&left.unwrap_or_default(), until, |open| open.iter().for_each(|upgraded| upgraded.end_input()));
        thread::sleep(until.saturating_duration_since(Instant::now()));
        if let Some(reactor) = Weak::upgrade(&weak) {
            log_cut_off(&reactor, reactor.upgrades.shut_down());
        }
    };
    if thread::Builder::new().name("poorhttp-stop".to_owned()).spawn(end_later).is_err() {
        open.iter().for_each(|upgraded| upgraded.end_input());
    }
}

/// Does something with all of them, some at a time, in half of the time that is left at most.
fn in_turns(all: &[Arc<Upgraded>], until: Instant, work: impl Fn(&[Arc<Upgraded>])) {
    let turns = all.len().div_ceil(TOLD_AT_ONCE).max(1) as u32;
    let pause = PAUSE.min(until.saturating_duration_since(Instant::now()) / 2 / turns);
    for some in all.chunks(TOLD_AT_ONCE) {
        thread::sleep(pause);
        work(some);
    }
}

/// Connections taken before others have their turn.
const TAKEN_AT_ONCE: usize = 64;

/// Passes a connection to the successor if nothing has been read of its next request. `None`: it was passed.
#[cold]
pub(crate) fn pass_on(
    reactor: &Reactor,
    mut connection: Box<Connection>,
    fd_handoff: &FdHandoff,
) -> Option<Box<Connection>> {
    if connection.socket.transport.tls().is_some() {
        return end_session(reactor, connection);
    }
    let socket = connection.socket.transport.as_fd();
    if !connection.is_untouched() || !fd_handoff.send(connection.request.listener(), connection.request.served, socket)
    {
        return Some(connection);
    }
    // The socket stays open elsewhere, so the poller would go on reporting it.
    connection.unregister(&reactor.poller);
    ready_queue::close(reactor, connection);
    None
}

/// Closes a connection whose TLS session cannot be passed on, if it waits for another request: its client connects again, and is
/// answered by the successor. `Some`: a request is under way.
fn end_session(reactor: &Reactor, connection: Box<Connection>) -> Option<Box<Connection>> {
    let request = &connection.request;
    let is_busy = connection.phase() != Phase::Serving
        || connection.is_behind()
        || request.served == 0
        || request.is_mid_message()
        || request.has_unread()
        || connection.socket.transport.has_input();
    if is_busy {
        return Some(connection);
    }
    finish::close_gracefully(reactor, connection);
    None
}

/// Adds the connections that a predecessor has passed.
#[cold]
pub(crate) fn receive_passed(reactor: &Arc<Reactor>, fd_handoff: &FdHandoff) {
    for _ in 0..TAKEN_AT_ONCE {
        if reactor.is_stopping() {
            // The connections are for the next successor.
            return;
        }
        let Some(PassedConnection { generation, listener: number, served, socket }) = fd_handoff.receive() else {
            return;
        };
        if generation >= fd_handoff.generation {
            // Another worker has learned before this one that there is a successor, which is to get the connection.
            let _ = fd_handoff.send(number, served, socket.as_fd());
            return reactor.detach();
        }
        let Some(listener) = reactor.listeners.get(number) else {
            // Another thread has just stopped listening.
            let _ = fd_handoff.send(number, served, socket.as_fd());
            return;
        };
        let peer = net::peer(&socket);
        accept::add_connection(reactor, number, &listener, socket, peer, served);
    }
}

impl Connection {
    /// Whether it waits for a request of which nothing has been read. A connection of which a proxy has reported anything
    /// does not count, as the report cannot be passed on.
    fn is_untouched(&self) -> bool {
        self.phase() == Phase::Serving && !self.is_behind() && self.request.is_untouched()
    }
}
