//! One request and its answer.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use poorhttp_http::{Ambient, Ending, Head, Invalid, Response};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::access_log::AccessLog;
use crate::body::Body;
use crate::clock;
use crate::connection::{After, Connection, Link, Lost};
use crate::journal::Level;
use crate::log_format::Entry;
use crate::options::COPIED;
use crate::reactor::Reactor;
use crate::slow::Answered;
use crate::watch::{InHand, Progress, Watched};

/// Why something was not sent.
#[derive(Debug)]
pub enum Unsent {
    /// The application asked for something impossible; nothing of it reached the wire.
    Invalid(Invalid),
    /// The client has gone, or takes nothing.
    Disconnected,
    /// The request has been answered.
    Over,
    /// So much waits for a slow client that the application should wait until [`Exchange::socket`] is writable, and
    /// then call [`Exchange::relieve`]. What was given is queued nonetheless.
    Full,
}

impl From<Invalid> for Unsent {
    fn from(invalid: Invalid) -> Self {
        Unsent::Invalid(invalid)
    }
}

/// A socket to wait for. It stays open as long as somebody does.
#[derive(Debug)]
pub struct Socket(Arc<Link>);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.socket.as_fd()
    }
}

/// A complete request that waits for its answer. It owns its connection until then; dropped without an answer, the
/// connection is closed.
#[derive(Debug)]
pub struct Exchange {
    reactor: Arc<Reactor>,
    /// Gone when the request is over.
    connection: Option<Box<Connection>>,
    response: Response,
    number: u64,
    /// Of [`AccessLog::start`].
    started: u64,
    lost: bool,
    /// Since when the client has been seen to send nothing more while the application had nothing for it, in
    /// milliseconds of [`clock::now`]. 0: it has not.
    alone: u64,
    /// This head has just been remembered, and waits for what is made of it.
    remembers: bool,
    /// Of the reactor's watch, since [`Exchange::hand_out`].
    watched: Option<Arc<Watched>>,
    /// How the watch has ended it, if it was faster than the application.
    forfeited: Option<Progress>,
    /// When the application got it, if anybody wants to know; of [`clock::precise_us`].
    handed_out: u64,
}

impl Exchange {
    #[inline]
    pub(crate) fn new(reactor: Arc<Reactor>, mut connection: Box<Connection>, number: u64, remembers: bool) -> Self {
        // Who answers in the application's place cannot know what was gathered.
        let lost = reactor.watch.is_some() && connection.transmit(&[]).is_err();
        let started = reactor.options.access_log.as_ref().map_or(0, AccessLog::start);
        let response = match &connection.work {
            Some(work) => Response::new(&work.intake.head, work.intake.head_bytes(), work.out.len()),
            None => Response::to_refused(false, 0),
        };
        Exchange {
            reactor,
            connection: Some(connection),
            response,
            number,
            started,
            lost,
            alone: 0,
            remembers,
            watched: None,
            forfeited: None,
            handed_out: 0,
        }
    }

    /// The application gets it now. It is watched until what is returned is dropped, if there is a watch.
    pub fn hand_out(&mut self) -> Option<InHand> {
        if self.reactor.is_timing() {
            self.handed_out = clock::precise_us();
        }
        let watch = self.reactor.watch.as_ref()?;
        let connection = self.connection.as_ref()?;
        let is_head = self.head().is_some_and(|(head, bytes)| head.method.of(bytes) == b"HEAD");
        let in_hand = watch.enter(self.number, self.request_line(), is_head, Arc::clone(&connection.link));
        self.watched = Some(Arc::clone(in_hand.watched()));
        Some(in_hand)
    }

    /// Whether it matters when [`Exchange::hand_out`] is called.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.reactor.watch.is_some() || self.reactor.is_timing()
    }

    /// Whether the application was too slow, and its client was seen to without it.
    pub fn is_forfeited(&self) -> bool {
        self.forfeited.is_some() || self.watched.as_ref().is_some_and(|watched| watched.is_forfeited())
    }

    /// From here on the connection is none of the watch's business.
    #[inline]
    fn leave_watch(&mut self) {
        if let Some(watched) = self.watched.take() {
            self.forfeited = watched.close();
            self.lost |= self.forfeited == Some(Progress::CutShort);
        }
    }

    /// The head of the request and the octets its positions refer to.
    #[inline]
    pub fn head(&self) -> Option<(&Head, &[u8])> {
        let intake = &self.connection.as_ref()?.work.as_ref()?.intake;
        Some((&intake.head, intake.head_bytes()))
    }

    /// Method and target for a log: nothing in it can forge a line or move a terminal's cursor. Empty when the request is
    /// over.
    pub fn request_line(&self) -> String {
        self.connection.as_ref().map_or_else(String::new, |connection| line_of(connection))
    }

    /// The client's address; unknown for a Unix socket.
    #[inline]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.connection.as_ref().and_then(|connection| connection.peer)
    }

    /// The number of the listener that accepted the connection.
    #[inline]
    pub fn listener(&self) -> u32 {
        self.connection.as_ref().map_or(0, |connection| connection.listener)
    }

    /// The running number of the request in this reactor.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What was made of this very head by [`Exchange::remember`], if it is remembered.
    #[inline]
    pub fn remembered<T: 'static>(&self) -> Option<&T> {
        let connection = self.connection.as_ref()?;
        if !connection.work.as_ref()?.intake.repeated {
            return None;
        }
        connection.memory.as_ref()?.made.as_ref()?.downcast_ref()
    }

    /// Keeps what is made of this head for its repetitions, if the head is remembered; it is dropped with the
    /// connection. What is made may depend on the head, the peer and the listener, and on nothing else.
    #[inline]
    pub fn remember<T: Send + Sync + 'static>(&mut self, make: impl FnOnce() -> Option<T>) {
        if self.remembers
            && let Some(memory) = self.connection.as_mut().and_then(|connection| connection.memory.as_mut())
        {
            memory.made = make().map(|made| Box::new(made) as _);
        }
    }

    /// Takes the body of the request.
    pub fn take_body(&mut self) -> io::Result<Body> {
        match &mut self.connection {
            Some(connection) => connection.work().body.take(),
            None => Ok(Body::Empty),
        }
    }

    /// The answer so far.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Whether the request has been answered or given up.
    pub fn is_over(&self) -> bool {
        self.connection.is_none()
    }

    /// Starts the answer: writes the status line, and calls `fields` to write the header fields by the function it is
    /// given. If anything is wrong, it is as if nothing had been said.
    pub fn start<E: From<Unsent>>(
        &mut self,
        status: &str,
        fields: impl FnOnce(&mut dyn FnMut(&str, &str) -> Result<(), Unsent>) -> Result<(), E>,
    ) -> Result<(), E> {
        let connection = self.connection.as_mut().ok_or(Unsent::Over)?;
        let (response, out) = (&mut self.response, &mut connection.work().out);
        response.start(out, status).map_err(Unsent::from)?;
        let result = fields(&mut |name, value| Ok(response.field(out, name, value)?));
        if result.is_err() {
            response.restart(out);
        }
        result
    }

    /// Whether this process is a fork of the one that serves: the answer is the parent's business.
    pub fn is_foreign(&self) -> bool {
        self.reactor.is_foreign()
    }

    /// Whether the client has gone before it was answered.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Takes back what [`Exchange::start`] said. `false`: it is on its way already.
    pub fn restart(&mut self) -> bool {
        if let Some(connection) = &mut self.connection {
            self.response.restart(&mut connection.work().out);
        }
        !self.response.is_committed() && !self.is_forfeited()
    }

    #[inline]
    fn commit(&mut self, body: Option<u64>) -> Result<(), Unsent> {
        if self.is_foreign() {
            return Err(Unsent::Over);
        }
        let connection = self.connection.as_mut().ok_or(Unsent::Over)?;
        if self.watched.as_ref().is_some_and(|watched| !watched.commit()) {
            self.lost = true;
            return Err(Unsent::Disconnected);
        }
        let reactor = &self.reactor;
        let closing = reactor.is_stopping() && reactor.is_last_of(connection);
        let (response, out) = (&mut self.response, &mut connection.work().out);
        clock::with_time_of_day(|time| {
            let ambient = Ambient { date: &time.date_line, server: &reactor.options.server_line, closing };
            response.commit(out, body, &ambient)
        })?;
        Ok(())
    }

    /// Answers with a whole body at once; head and body leave in one system call. The request is over.
    #[inline]
    pub fn finish(&mut self, parts: &[&[u8]]) -> Result<(), Unsent> {
        if !self.response.is_committed() {
            let total = parts.iter().map(|part| part.len() as u64).sum();
            self.commit(Some(total))?;
        }
        parts.iter().try_for_each(|part| self.put(part))?;
        self.end()
    }

    /// Sends a piece of the body now.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Unsent> {
        if piece.is_empty() {
            return self.look_for_client();
        }
        if !self.response.is_committed() {
            self.commit(None)?;
        }
        self.put(piece)?;
        let connection = self.connection.as_mut().ok_or(Unsent::Over)?;
        if let Err(lost) = connection.transmit(&[]) {
            return Err(self.lose(&lost));
        }
        if !self.response.wants_more() {
            // Nothing of it is sent, so nobody would notice either.
            return self.look_for_client();
        }
        self.alone = 0;
        self.see_to_outlet()
    }

    /// Adds a piece to what will be sent; sends it if it is large.
    #[inline]
    fn put(&mut self, piece: &[u8]) -> Result<(), Unsent> {
        if self.lost || self.is_forfeited() {
            self.lost = true;
            return Err(Unsent::Disconnected);
        }
        let connection = self.connection.as_mut().ok_or(Unsent::Over)?;
        if self.reactor.is_foreign() {
            return Err(Unsent::Over);
        }
        let admitted = self.response.admit(piece.len());
        if admitted == 0 {
            return Ok(());
        }
        let piece = &piece[..admitted];
        let out = &mut connection.work().out;
        self.response.open_chunk(out, admitted);
        if out.len() + admitted <= COPIED {
            out.extend_from_slice(piece);
        } else if let Err(lost) = connection.transmit(&[piece]) {
            return Err(self.lose(&lost));
        }
        self.response.close_chunk(&mut connection.work().out, admitted);
        Ok(())
    }

    /// The application has nothing to send for now: is there still somebody to send it to?
    #[cold]
    fn look_for_client(&mut self) -> Result<(), Unsent> {
        if self.is_foreign() {
            return Ok(());
        }
        if self.lost || self.is_forfeited() {
            self.lost = true;
            return Err(Unsent::Disconnected);
        }
        let connection = self.connection.as_mut().ok_or(Unsent::Over)?;
        if connection.has_outlet {
            connection.flush();
        }
        self.see_to_outlet()?;
        let connection = self.connection.as_ref().ok_or(Unsent::Over)?;
        let mut sockets = [PollFd::new(&connection.link.socket, PollFlags::RDHUP)];
        // At once; should it fail, it is tried again with the next piece.
        let _ = poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let seen = sockets[0].revents();
        // An end alone does not say much: a client may have finished sending and still wait for its answer, or it may
        // have gone. One that has gone is not answered for ever, one that waits is not cut off by the first pause.
        const HEARD_OUT: u64 = 1_000;
        let now = clock::now();
        if !seen.contains(PollFlags::RDHUP) {
            self.alone = 0;
        } else if self.alone == 0 {
            self.alone = now;
        }
        if seen.intersects(PollFlags::HUP | PollFlags::ERR) || (self.alone != 0 && now >= self.alone + HEARD_OUT) {
            self.lost = true;
            return Err(Unsent::Disconnected);
        }
        Ok(())
    }

    /// Sees to what the socket did not take, now that this has been tried; and to the deadline of that: as long as the
    /// application goes on, there may be no other thread to do so.
    #[inline]
    fn see_to_outlet(&mut self) -> Result<(), Unsent> {
        self.after_transmission()?;
        if self.connection.as_ref().is_some_and(|connection| connection.has_outlet) && self.patience() == 0 {
            self.cut();
            self.lost = true;
            return Err(Unsent::Disconnected);
        }
        Ok(())
    }

    /// Nothing more can be sent.
    #[cold]
    fn lose(&mut self, lost: &Lost) -> Unsent {
        self.lost = true;
        if let Lost::Failed(error) = lost {
            let message = format!("request {} {}: the answer is cut short: {error}", self.number, self.request_line());
            self.reactor.options.journal.write(Level::Error, &message);
        }
        Unsent::Disconnected
    }

    /// Milliseconds for which a client that takes little is still waited for; 0: no longer.
    pub fn patience(&self) -> u64 {
        let Some(connection) = &self.connection else { return 0 };
        let until = connection.link.patience(self.reactor.options.timeouts.of_answer());
        until.map_or(0, |until| until.saturating_sub(clock::now()).max(1))
    }

    /// Gives up a client that takes nothing.
    pub fn cut(&self) {
        if let Some(connection) = &self.connection {
            connection.link.cut();
        }
    }

    /// Sees to what the socket did not take.
    #[inline]
    fn after_transmission(&mut self) -> Result<(), Unsent> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if !connection.has_outlet {
            return Ok(());
        }
        let (full, broken, deadline) = match &*connection.link.outlet() {
            Some(outlet) => {
                (outlet.is_full(), outlet.is_broken(), outlet.deadline(self.reactor.options.timeouts.of_answer()))
            }
            None => return Ok(()),
        };
        self.reactor.watch_outlet(connection, deadline);
        match (broken, full) {
            (true, _) => {
                self.lost = true;
                Err(Unsent::Disconnected)
            }
            (false, true) => Err(Unsent::Full),
            (false, false) => Ok(()),
        }
    }

    /// After [`Unsent::Full`]: sends on what waits, and says whether there is room again.
    pub fn relieve(&mut self) -> Result<(), Unsent> {
        match &mut self.connection {
            Some(connection) => connection.flush(),
            None => return Err(Unsent::Over),
        };
        self.after_transmission()
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> Option<Socket> {
        self.connection.as_ref().map(|connection| Socket(Arc::clone(&connection.link)))
    }

    /// Answers with a part of a file; after [`Exchange::start`]. The request is over.
    pub fn send_file(&mut self, file: OwnedFd, at: u64, length: u64) -> Result<(), Unsent> {
        // What is sent of a file is one piece; chunks would only be in the way.
        let length = self.response.declared_length().map_or(length, |declared| declared.min(length));
        self.commit(Some(length))?;
        let admitted = self.response.admit(usize::try_from(length).unwrap_or(usize::MAX)) as u64;
        if admitted > 0
            && let Some(connection) = &mut self.connection
            && let Err(lost) = connection.transmit_file(file, at, admitted)
        {
            return Err(self.lose(&lost));
        }
        self.end()
    }

    /// Ends the answer. The request is over.
    #[inline]
    pub fn end(&mut self) -> Result<(), Unsent> {
        if self.is_foreign() {
            return Err(Unsent::Over);
        }
        if self.connection.is_some() && !self.response.is_committed() {
            self.commit(Some(0))?;
        }
        let Some(connection) = &mut self.connection else { return Err(Unsent::Over) };
        let ending = self.response.end(&mut connection.work().out);
        if ending.missing > 0 || ending.excess > 0 {
            self.complain(&self.request_line(), ending);
        }
        let Some(mut connection) = self.connection.take() else { return Err(Unsent::Over) };
        connection.number = self.number;
        self.leave_watch();
        self.log(&mut connection);
        if self.lost {
            self.reactor.close(connection);
            return Ok(());
        }
        let after = match ending.persists {
            true => After::Next,
            false if connection.may_be_sending() => After::Linger,
            false => After::Close,
        };
        connection.served = connection.served.saturating_add(1);
        self.reactor.settle(connection, after);
        Ok(())
    }

    /// Gives the request up: the connection is closed, so that the client knows the answer is incomplete.
    pub fn abort(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        if self.is_foreign() {
            // The socket is shared with the parent, and locks may be held by threads that exist only there.
            std::mem::forget(connection);
            return;
        }
        connection.number = self.number;
        self.leave_watch();
        self.log(&mut connection);
        if self.forfeited == Some(Progress::Replaced) {
            self.response.restart(&mut connection.work().out);
            return self.reactor.settle(connection, After::Linger);
        }
        if self.lost {
            connection.link.cut();
            return self.reactor.close(connection);
        }
        if self.response.ends_with_connection() {
            // An orderly end would make the answer look complete.
            connection.link.forsake();
            return self.reactor.close(connection);
        }
        // The answers to earlier, pipelined requests are complete, and may still wait before what there is of this one.
        self.response.restart(&mut connection.work().out);
        let after = if connection.may_be_sending() { After::Linger } else { After::Close };
        self.reactor.settle(connection, after);
    }

    #[inline]
    fn log(&self, connection: &mut Connection) {
        if self.reactor.is_timing() {
            connection.answered = Some(Box::new(self.timed(connection)));
        }
        let Some(log) = &self.reactor.options.access_log else { return };
        let head = connection.work.as_ref().map(|work| (&work.intake.head, work.intake.head_bytes()));
        let entry = Entry {
            peer: connection.peer,
            head,
            status: self.status(),
            size: self.response.sent(),
            microseconds: log.start() - self.started,
            number: self.number,
            kept: connection.served,
        };
        self.reactor.add_to_log(log, &entry);
    }

    #[inline]
    fn status(&self) -> u16 {
        if self.forfeited == Some(Progress::Replaced) { 504 } else { self.response.status() }
    }

    #[cold]
    fn timed(&self, connection: &Connection) -> Answered {
        let ended = clock::precise_us();
        let handed_out = if self.handed_out == 0 { ended } else { self.handed_out };
        if ended - handed_out >= self.reactor.options.slow_request / 4 {
            self.reactor.look_around();
        }
        let (number, line, status) = (self.number, line_of(connection), self.status());
        Answered { number, line, status, since: connection.since.min(handed_out), handed_out, ended }
    }

    #[cold]
    fn complain(&self, request: &str, ending: Ending) {
        let (what, octets) = match ending.missing {
            0 => ("more than its Content-Length; they were not sent", ending.excess),
            missing => ("less than its Content-Length; the connection was closed", missing),
        };
        let message = format!("request {} {request}: the application produced {octets} octets {what}", self.number);
        self.reactor.options.journal.write(Level::Error, &message);
    }
}

fn line_of(connection: &Connection) -> String {
    let Some(work) = &connection.work else { return String::new() };
    let (head, bytes) = (&work.intake.head, work.intake.head_bytes());
    format!("{} {}", head.method.of(bytes).escape_ascii(), head.target.of(bytes).escape_ascii())
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.abort();
    }
}
