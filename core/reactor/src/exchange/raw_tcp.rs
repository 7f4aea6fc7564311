//! Raw TCP: connections that are handed out unread, for other protocols than HTTP.
//!
//! While a handler runs it has a duplicate of the socket, and the connection is not registered with the poller. Afterwards
//! the connection is closed here in an orderly way.

use crate::connection::Connection;
use crate::connection::state::After;
use crate::event_loop::reactor::Reactor;
use crate::event_loop::{finish, ready_queue};
use crate::exchange::Exchange;
use crate::sys::Errno;
use crate::sys::socket::Transport;

/// Closes a raw TCP connection when its client has finished, too, or has had a moment to do so: input after the close would
/// be answered by a reset, which could destroy what was sent.
fn close_after_client(reactor: &Reactor, mut connection: Box<Connection>) {
    let may_send = matches!(connection.socket.transport.peek(&mut [0]), Ok(1..) | Err(Errno::AGAIN));
    let waits_for_client = may_send && ready_queue::watch(reactor, &mut connection);
    connection.registered = true;
    connection.served = 1;
    finish::response_done(reactor, connection, if waits_for_client { After::Linger } else { After::Close });
}

/// What [`Exchange::end_raw_tcp`] does.
pub(crate) fn end(exchange: &mut Exchange, complete: bool) {
    let Some(stream) = exchange.take_stream(complete && !exchange.lost) else { return };
    if complete && !exchange.lost {
        return close_after_client(&exchange.reactor, stream.into_connection());
    }
    stream.socket().reset();
    stream.close(&exchange.reactor);
}
