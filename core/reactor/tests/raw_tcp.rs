//! Raw TCP services: connections that the reactor hands over unread, over real sockets.
//!
//! Nothing here is decided by the time it takes: [`HANG`] only ends a test that would never end.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod starting;
mod timeouts;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};

use poorhttp_reactor::{Exchange, Options, Reactor, Timeouts};
use timeouts::HANG;

struct Server {
    reactor: Reactor,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// One thread serves.
    fn new(options: Options, handler: impl Fn(&mut Exchange, TcpStream) -> bool + Send + Sync + 'static) -> Self {
        let (listener, address) = starting::listener();
        let reactor = Reactor::new(vec![listener], Options { raw_tcp: true, ..options }).unwrap();
        let threads = starting::threads(&reactor, 1, move |mut exchange| {
            let socket = TcpStream::from(exchange.duplicate().unwrap());
            let complete = handler(&mut exchange, socket);
            exchange.end_raw_tcp(complete);
        });
        Server { reactor, address, threads }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.reactor.stop(false, true);
        if !thread::panicking() {
            self.threads.drain(..).for_each(|thread| thread.join().unwrap());
        }
    }
}

fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an end in good order");
    text
}

#[test]
fn a_connection_is_handed_out_unread_and_ends_with_its_handler() {
    let server = Server::new(Options::default(), |exchange, mut socket| {
        let mut name = [0; 3];
        socket.read_exact(&mut name).unwrap();
        assert!(exchange.is_raw_tcp() && exchange.head().is_none());
        write!(socket, "{} {}", String::from_utf8_lossy(&name), exchange.request_line()).unwrap();
        true
    });
    for name in ["one", "two"] {
        let mut client = server.connect();
        client.write_all(name.as_bytes()).unwrap();
        let from = client.local_addr().unwrap();
        assert_eq!(rest(client), format!("{name} of {from}"));
    }
}

#[test]
fn sent_bytes_arrive_although_received_ones_were_not_read() {
    const LARGE: usize = 4 << 20;
    let server = Server::new(Options::default(), |_, mut socket| {
        socket.write_all(&vec![b'.'; LARGE]).unwrap();
        true
    });
    let mut client = server.connect();
    client.write_all(b"never read").unwrap();
    let reader = client.try_clone().unwrap();
    assert_eq!(rest(reader).len(), LARGE);
    // We are still heard, for a moment.
    client.write_all(b"nor this").unwrap();
}

#[test]
fn a_failure_is_a_reset() {
    let server = Server::new(Options::default(), |_, mut socket| {
        socket.write_all(b"some").unwrap();
        false
    });
    let mut client = server.connect();
    let mut text = String::new();
    let error = client.read_to_string(&mut text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_client_that_has_closed_its_sending_half_is_not_gone() {
    let server = Server::new(Options::default(), |exchange, mut socket| {
        let mut all = String::new();
        socket.read_to_string(&mut all).unwrap();
        write!(socket, "{all} {}", exchange.is_client_gone()).unwrap();
        true
    });
    let mut client = server.connect();
    client.write_all(b"word").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(client), "word false");
}

#[test]
fn the_time_to_stop_ends_a_wait_in_the_only_thread() {
    let timeouts = Timeouts { graceful: 50, ..Timeouts::default() };
    let server = Server::new(Options { timeouts, ..Options::default() }, |_, mut socket| {
        socket.write_all(b"waiting").unwrap();
        assert_eq!(socket.read(&mut [0]).unwrap(), 0);
        true
    });
    let mut client = server.connect();
    client.read_exact(&mut [0; 7]).unwrap();
    server.reactor.stop(true, true);
    assert_eq!(rest(client), "");
}

#[test]
fn connections_beyond_the_limit_are_closed() {
    let server = Server::new(Options { max_connections: 1, ..Options::default() }, |_, mut socket| {
        let mut byte = [0];
        while socket.read(&mut byte).unwrap() > 0 {
            socket.write_all(&byte).unwrap();
        }
        true
    });
    // One thread serves, so all that can be seen is that the place is free again.
    for _ in 0..3 {
        let mut client = server.connect();
        client.write_all(b"x").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(client), "x");
    }
}
