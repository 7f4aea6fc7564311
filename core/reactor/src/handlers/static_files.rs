//! Static files: answers requests for them, and for files that the application names.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use poorhttp_files::{FileRequest, Lookup, StaticRoute};
use poorhttp_http::{Head, Reject, percent_decoded};

use crate::connection::Connection;
use crate::connection::request::Request;
use crate::exchange::Exchange;
use crate::exchange::x_sendfile::get_or_head;
use crate::handlers::health;
use crate::log::error::Level;
use crate::options::Handling;
use crate::scheduler::state::State;
use crate::sys::clock;

/// Outcome of the attempt to answer.
pub(crate) enum Outcome {
    /// Not a static file: for the application.
    NotStatic(Box<Connection>),
    /// Answered.
    Answered,
    /// To be tried again by a caller that may wait for the file system.
    NeedsBlockingIo(Box<Connection>),
}

/// Answers a request if it is for a static file.
pub(crate) fn answer(state: &Arc<State>, mut connection: Box<Connection>, may_wait: bool) -> Outcome {
    let request = &connection.request;
    let found = request
        .head()
        .and_then(|(head, bytes)| look_up(state, request, head.method.of(bytes), &path_of(head, bytes)?, may_wait));
    let Some((published, found)) = found else { return Outcome::NotStatic(connection) };
    let reply = match found {
        Lookup::Reply(reply) => reply,
        Lookup::NotFound(_) if published.falls_through => return Outcome::NotStatic(connection),
        Lookup::NotFound(reply) | Lookup::OutsideRoot(reply) | Lookup::Failed(reply, _) => reply,
        Lookup::WouldBlock => return Outcome::NeedsBlockingIo(connection),
    };
    let caches_head = connection.request.cache_head(&state.cached_heads);
    // An error means that the client is gone.
    let _ = Exchange::new(Arc::clone(state), connection, state.next_number(), caches_head).reply(reply);
    Outcome::Answered
}

/// Rejects a request with a body for a static file or a health check, before the body is received.
#[cold]
pub(crate) fn refuses_body(handling: &Handling, request: &Request) -> Option<Reject> {
    let (head, bytes) = request.head()?;
    if let Some(reject) = health::refuses_body_of_question(handling, head, bytes) {
        return Some(reject);
    }
    let routes = handling.routes.as_ref()?;
    let (published, _) = routes.find(|| request.requested_authority(), &path_of(head, bytes)?)?;
    let is_read = matches!(head.method.of(bytes), b"GET" | b"HEAD");
    (!is_read && !published.falls_through).then_some(Reject { status: 405, reason: "a body for a file" })
}

/// The route of a path, and its file. Logs that a symbolic link is not followed, and errors of the file system: the status alone
/// does not explain these.
fn look_up<'a>(
    state: &'a State,
    request: &Request,
    method: &[u8],
    path: &[u8],
    may_wait: bool,
) -> Option<(&'a StaticRoute, Lookup)> {
    let routes = state.handling.routes.as_ref()?;
    let (published, prefix) = routes.find(|| request.requested_authority(), path)?;
    if published.falls_through && !matches!(method, b"GET" | b"HEAD") {
        return None;
    }
    let ((head, bytes), script) = (request.head()?, request.script());
    let (now, poll) = (clock::unix_time(), state.poll_number());
    let file_request = FileRequest { head, bytes, method, script: &script, path, prefix, now, poll, may_wait };
    let mut found = published.root.answer(&file_request);
    if let Lookup::OutsideRoot(reply) = found {
        let (line, folder) = (request.line(), published.root.path().display());
        let message = format!("{line}: a symbolic link is absolute or leads out of {folder}, and is not followed");
        state.log(Level::Warning, &message);
        found = Lookup::NotFound(reply);
    } else if let Lookup::Failed(reply, error) = found {
        let (line, folder, error) = (request.line(), published.root.path().display(), io::Error::from(error));
        state.log(Level::Error, &format!("{line}: a file of {folder} cannot be read: {error}"));
        found = Lookup::Reply(reply);
    }
    Some((published, found))
}

/// The decoded path of the request; none for `OPTIONS *`.
pub(crate) fn path_of<'a>(head: &Head, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    match head.path().of(bytes) {
        b"" => Some(Cow::Borrowed(b"/")),
        [b'/', ..] => Some(head.decoded_path(bytes)),
        _ => None,
    }
}

/// Answers with the static file at `path`, if there is one, as for GET. The request is over then.
pub fn send_static(exchange: &mut Exchange, path: &[u8]) -> bool {
    let Some((head, bytes)) = exchange.head() else { return false };
    let method = get_or_head(head.method.of(bytes));
    let state = Arc::clone(&exchange.writer.state);
    state.advance_poll_number();
    let Some(request) = exchange.request() else { return false };
    match look_up(&state, request, method, &percent_decoded(path), true) {
        None | Some((_, Lookup::WouldBlock)) => false,
        Some((published, Lookup::NotFound(_))) if published.falls_through => false,
        // An error means that the client is gone.
        Some((
            _,
            Lookup::Reply(reply) | Lookup::NotFound(reply) | Lookup::OutsideRoot(reply) | Lookup::Failed(reply, _),
        )) => {
            let _ = exchange.reply(reply);
            exchange.note_answered_elsewhere();
            true
        }
    }
}
