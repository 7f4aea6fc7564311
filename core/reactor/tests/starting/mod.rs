//! What a server of the tests starts with: a listening socket, and threads that serve.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use poorhttp_reactor::{Exchange, Next, Reactor};

/// A socket that listens on a free port, and its address.
pub(crate) fn listener() -> (OwnedFd, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    (listener.into(), address)
}

/// Threads that call a handler for each request, until the reactor has stopped.
pub(crate) fn threads(
    reactor: &Reactor,
    number: usize,
    handler: impl Fn(Exchange) + Send + Sync + 'static,
) -> Vec<JoinHandle<()>> {
    let handler = Arc::new(handler);
    let run = |_| {
        let (reactor, handler) = (reactor.clone(), Arc::clone(&handler));
        thread::spawn(move || {
            loop {
                match reactor.wait_next() {
                    Next::Request(exchange) => handler(exchange),
                    Next::Interrupted => {}
                    Next::Finished => return,
                }
            }
        })
    };
    (0..number).map(run).collect()
}
