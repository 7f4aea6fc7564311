//! Requests that are answered here, without the application: for files of published folders, and files that the application
//! names instead of sending them.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use poorhttp_files::{Asked, Content, Found, Part, Reply};
use poorhttp_http::{Head, Reject, decoded_path};

use crate::connection::Connection;
use crate::exchange::response::Unsent;
use crate::exchange::{Exchange, line_of};
use crate::handlers::routes::Published;
use crate::log::error::Level;
use crate::reactor::Reactor;
use crate::sys::clock;

/// Milliseconds between looks for files that need not be open any more.
const TIDIED: u64 = 10_000;

/// What became of a request.
pub(crate) enum Outcome {
    /// It is for the application.
    Elsewhere(Box<Connection>),
    /// It has been answered.
    Answered,
    /// To be tried again by somebody who may wait for the file system.
    Later(Box<Connection>),
}

impl Reactor {
    /// Answers a complete request if it is for a published folder.
    pub(crate) fn publish(self: &Arc<Self>, mut connection: Box<Connection>, may_wait: bool) -> Outcome {
        let Some((published, found)) = self.look_up(&connection, may_wait) else {
            return Outcome::Elsewhere(connection);
        };
        let reply = match found {
            Found::Reply(reply) => reply,
            Found::Missing(_) if published.falls_through => return Outcome::Elsewhere(connection),
            Found::Missing(reply) | Found::Outside(reply) => reply,
            Found::Later => return Outcome::Later(connection),
        };
        let remembers = self.consider_remembering(&mut connection);
        // Whoever has gone does not get it.
        let _ = Exchange::new(Arc::clone(self), connection, self.next_number(), remembers).reply(reply);
        Outcome::Answered
    }

    /// Why a request whose body is to come need not send it: no file takes one.
    #[cold]
    pub(crate) fn refuses_body(&self, connection: &Connection) -> Option<Reject> {
        let intake = &connection.work.as_ref()?.intake;
        let (head, bytes) = (&intake.head, intake.head_bytes());
        if let Some(reject) = self.refuses_body_of_question(head, bytes) {
            return Some(reject);
        }
        let routes = self.options.routes.as_ref()?;
        let (published, _) = routes.find(|| connection.asked_for(), &path_of(head, bytes)?)?;
        let is_read = matches!(head.method.of(bytes), b"GET" | b"HEAD");
        (!is_read && !published.falls_through).then_some(Reject { status: 405, reason: "a body for a file" })
    }

    fn look_up(&self, connection: &Connection, may_wait: bool) -> Option<(&Published, Found)> {
        let intake = &connection.work.as_ref()?.intake;
        let (head, bytes) = (&intake.head, intake.head_bytes());
        let path = path_of(head, bytes)?;
        self.look_up_path(connection, head.method.of(bytes), &path, may_wait)
    }

    fn look_up_path(
        &self,
        connection: &Connection,
        method: &[u8],
        path: &[u8],
        may_wait: bool,
    ) -> Option<(&Published, Found)> {
        let routes = self.options.routes.as_ref()?;
        let (published, prefix) = routes.find(|| connection.asked_for(), path)?;
        if published.falls_through && !matches!(method, b"GET" | b"HEAD") {
            return None;
        }
        let intake = &connection.work.as_ref()?.intake;
        let (head, bytes, script) = (&intake.head, intake.head_bytes(), connection.script());
        let (now, look) = (clock::today(), self.look());
        let asked = Asked { head, bytes, method, script: &script, path, prefix, now, look, may_wait };
        Some((published, self.tell_link(published.site.answer(&asked), published, connection)))
    }

    /// Logs that a symbolic link is not followed: a 404 alone does not tell why.
    #[inline]
    fn tell_link(&self, found: Found, published: &Published, connection: &Connection) -> Found {
        let Found::Outside(reply) = found else { return found };
        let (line, folder) = (line_of(connection), published.site.path().display());
        let message = format!("{line}: a symbolic link is absolute or leads out of {folder}, and is not followed");
        self.options.journal.write(Level::Warning, &message);
        Found::Missing(reply)
    }

    /// A file is open, and nobody knows whether it will be asked for again.
    #[cold]
    fn tidy_files_some_day(&self) {
        let mut core = self.lock();
        self.tidying.store(true, Ordering::Relaxed);
        core.tidy_files = clock::now() + TIDIED;
        self.set_alarm(&mut core);
    }

    /// Closes the files that nobody has asked for lately: one that was removed needs room on the disk until then. A thread does
    /// it, because to close a file may take as long as to write to it.
    #[cold]
    pub(crate) fn tidy_files(self: &Arc<Self>) {
        let (files, reactor) = (Arc::clone(&self.options.files), Arc::downgrade(self));
        let tidy = move || {
            let some_are_left = files.tidy(clock::today());
            if let Some(reactor) = reactor.upgrade() {
                reactor.tidying.store(some_are_left, Ordering::Relaxed);
                if some_are_left {
                    reactor.tidy_files_some_day();
                }
            }
        };
        if thread::Builder::new().name("poorhttp-tidy".to_owned()).spawn(tidy).is_err() {
            self.tidy_files_some_day();
        }
    }

    /// The number of the present look at the poller.
    pub(crate) fn look(&self) -> u64 {
        self.look.load(Ordering::Relaxed)
    }

    /// An application has run: what it has written shall be seen, also by who asked before the poller is looked at again.
    #[inline]
    pub(crate) fn look_again(&self) {
        if self.options.routes.is_some() || !self.options.deliveries.is_empty() {
            self.look.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The path that is asked for, decoded; none in `OPTIONS *`.
pub(crate) fn path_of<'a>(head: &Head, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    match head.path().of(bytes) {
        b"" => Some(Cow::Borrowed(b"/")),
        [b'/', ..] => Some(head.decoded_path(bytes)),
        _ => None,
    }
}

impl Exchange {
    /// Answers as if the client had asked for this path with GET, if it is one of a published folder. The request is over then.
    pub fn send_static(&mut self, path: &[u8]) -> bool {
        let Some((head, bytes)) = self.head() else { return false };
        let method = if head.method.of(bytes) == b"HEAD" { &b"HEAD"[..] } else { b"GET" };
        let reactor = Arc::clone(&self.reactor);
        reactor.look_again();
        let Some(connection) = &self.connection else { return false };
        match reactor.look_up_path(connection, method, &decoded_path(path), true) {
            None | Some((_, Found::Later)) => false,
            Some((published, Found::Missing(_))) if published.falls_through => false,
            // Whoever has gone does not get it.
            Some((_, Found::Reply(reply) | Found::Missing(reply) | Found::Outside(reply))) => {
                let _ = self.reply(reply);
                self.stood_in = true;
                true
            }
        }
    }

    /// Sends a whole answer. The request is over.
    pub(crate) fn reply(&mut self, reply: Reply) -> Result<(), Unsent> {
        let connection = self.connection.as_mut().ok_or(Unsent::Over)?;
        self.response.start_prepared(&mut connection.work().out, &reply.status, &reply.fields)?;
        if reply.length == 0 && !matches!(self.response.status(), 204 | 304) {
            // In answer to HEAD as well: of a file it is known that it is empty.
            self.response.field(&mut connection.work().out, "Content-Length", "0")?;
        }
        self.commit(Some(reply.length))?;
        if reply.content.is_on_disk() && !self.reactor.tidying.load(Ordering::Relaxed) {
            self.reactor.tidy_files_some_day();
        }
        match reply.content {
            Content::Nothing => {}
            Content::Memory(bytes) => self.put(&bytes)?,
            Content::File { file, at } => {
                if let length @ 1.. = self.admit(reply.length) {
                    self.transmit_parts([Part::File { file, at, length }])?;
                }
            }
            Content::Parts(parts) => {
                if self.admit(reply.length) > 0 {
                    self.transmit_parts(parts)?;
                }
            }
        }
        self.conclude()
    }
}
