//! One request and what belongs to it until it is answered.
//!
//! [`crate::exchange::response`] answers it, [`crate::exchange::backpressure`] looks after the client meanwhile.
//!
//! ```text
//! response.rs          status, fields and body of the response
//! backpressure.rs      waits for a slow client, and detects a client that is gone
//! client_abort.rs      drops queued requests whose client has disconnected
//! request_timeout.rs   thread that enforces `request_timeout`
//! ```

pub(crate) mod backpressure;
pub(crate) mod client_abort;
pub(crate) mod request_timeout;
pub(crate) mod response;

use std::net::SocketAddr;
use std::sync::Arc;

use poorhttp_http::{Head, Response};

use crate::connection::Connection;
use crate::connection::body::Body;
use crate::exchange::request_timeout::{InHand, Progress, Watched};
use crate::handlers::raw_tcp::line_of_plain;
use crate::handlers::x_sendfile::Named;
use crate::reactor::Reactor;
use crate::sys::clock;

/// A complete request that waits for its answer. It owns its connection until then; dropped without an answer, the
/// connection is closed.
#[derive(Debug)]
pub struct Exchange {
    pub(crate) reactor: Arc<Reactor>,
    /// Gone when the request is over.
    pub(crate) connection: Option<Box<Connection>>,
    pub(crate) response: Response,
    pub(crate) number: u64,
    /// Of [`crate::log::access::AccessLog::start`].
    pub(crate) started: u64,
    /// Where in the bytes of the connection the answer begins, and where its content does once the head is complete. Only
    /// the access log needs them.
    pub(crate) start: u64,
    pub(crate) body: u64,
    pub(crate) lost: bool,
    /// We have ended the connection before the answer was complete, and said why.
    pub(crate) cut: bool,
    /// Since when the client has been seen to send nothing more while the application had nothing for it, in
    /// milliseconds of [`clock::now`]. 0: it has not.
    pub(crate) alone: u64,
    /// This head has just been remembered, and waits for what is made of it.
    pub(crate) remembers: bool,
    /// The file that the application wants sent instead of what it produces.
    pub(crate) named: Option<Named>,
    /// Somebody else goes on with the answer, a published folder or whoever looks after what is parked; the application still
    /// returns what it has.
    pub(crate) stood_in: bool,
    /// Of the reactor's watch, since [`Exchange::hand_out`].
    pub(crate) watched: Option<Arc<Watched>>,
    /// How the watch has ended it, if it was faster than the application.
    pub(crate) forfeited: Option<Progress>,
    /// When the application got it, if anybody wants to know; of [`clock::precise_us`].
    pub(crate) handed_out: u64,
}

impl Exchange {
    #[inline]
    pub(crate) fn new(reactor: Arc<Reactor>, mut connection: Box<Connection>, number: u64, remembers: bool) -> Self {
        // Who answers in the application's place cannot know what was gathered.
        let lost = reactor.watch.is_some() && connection.transmit(&[]).is_err();
        let log = reactor.options.access_log.as_ref();
        let (started, start) = log.map_or((0, 0), |log| (log.start(), connection.end_of_output()));
        let response = match &connection.work {
            Some(work) => Response::new(&work.intake.head, work.intake.head_bytes(), work.out.len()),
            None => Response::to_refused(connection.inbound.dialect(), false, 0),
        };
        Exchange {
            reactor,
            connection: Some(connection),
            response,
            number,
            started,
            start,
            body: start,
            lost,
            cut: false,
            alone: 0,
            remembers,
            named: None,
            stood_in: false,
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
        let (dialect, link) = (connection.inbound.dialect(), Arc::clone(&connection.link));
        let in_hand = watch.enter(self.number, self.request_line(), is_head, dialect, self.is_plain(), link);
        self.watched = Some(Arc::clone(in_hand.watched()));
        Some(in_hand)
    }

    /// Whether it matters when [`Exchange::hand_out`] is called.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.reactor.watch.is_some() || self.reactor.is_timing()
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

    /// Who has connected, or is named in their place for the whole connection; unknown for a Unix socket.
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

    /// Takes the body of the request.
    pub fn take_body(&mut self) -> Body {
        let body = self.connection.as_mut().and_then(|connection| connection.work().body.take());
        body.map_or(Body::Empty, |body| body.take())
    }

    /// Whether this process is a fork of the one that serves: the answer is the parent's business.
    pub fn is_foreign(&self) -> bool {
        self.reactor.is_foreign()
    }

    /// Whether the server stops, and waits for requests like this one for some time.
    pub fn is_stopping(&self) -> bool {
        // Where all threads are busy with requests nobody else would hear of it.
        self.reactor.hear();
        self.reactor.is_stopping()
    }

    /// Whether the client has gone before it was answered.
    pub fn is_lost(&self) -> bool {
        self.lost
    }
}

pub(crate) fn line_of(connection: &Connection) -> String {
    let Some(work) = &connection.work else { return line_of_plain(connection) };
    let (head, bytes) = (&work.intake.head, work.intake.head_bytes());
    format!("{} {}", head.method.of(bytes).escape_ascii(), head.target.of(bytes).escape_ascii())
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.abort();
    }
}
