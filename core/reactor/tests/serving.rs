//! A reactor over real sockets, with handlers in threads, and with its descriptor in another event loop's epoll.
//!
//! Nothing here is decided by the time it takes: [`HANG`] only ends a test that would never end.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod starting;
mod timeouts;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use poorhttp_http::Limits;
use poorhttp_reactor::{
    AccessLog, Body, Channel, Counters, ErrorLog, Exchange, FdHandoff, Level, Next, Options, Reactor, SendError, Sink,
    TimedRequest, TimeoutHandler, Timeouts,
};
use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use starting::listener;
use timeouts::{HANG, NEVER, SOON, patient};

fn options(timeouts: Timeouts) -> Options {
    Options { timeouts, ..Options::default() }
}

/// Some threads that serve.
struct Server {
    reactor: Reactor,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    fn new(threads: usize, options: Options, handler: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        let (listener, address) = listener();
        let reactor = Reactor::new(vec![listener], options).unwrap();
        let threads = starting::threads(&reactor, threads, handler);
        Server { reactor, address, threads }
    }

    fn connect(&self) -> Client {
        Client::new(self.address)
    }

    /// Waits until every thread has ended; told to stop or not.
    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.reactor.stop(false, true);
        if !thread::panicking() {
            self.join();
        }
    }
}

/// What a client reads.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    fields: String,
    body: Vec<u8>,
}

impl Answer {
    fn has(&self, field: &str) -> bool {
        self.fields.lines().any(|line| line.eq_ignore_ascii_case(field))
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.set_write_timeout(Some(HANG)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    fn get(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }

    /// The next head; a body follows.
    fn head(&mut self) -> Answer {
        let mut lines = String::new();
        while !lines.ends_with("\r\n\r\n") {
            let read = self.stream.read_line(&mut lines).expect("the server has to answer");
            assert!(read > 0, "the connection has ended after {lines:?}");
        }
        let (status, fields) = lines.split_once("\r\n").unwrap();
        Answer { status: status[9..12].parse().unwrap(), fields: fields.to_owned(), body: Vec::new() }
    }

    fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        let length = answer.fields.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        if let Some(length) = length {
            answer.body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut answer.body).expect("the body has to come");
        } else if answer.has("Transfer-Encoding: chunked") {
            loop {
                let mut line = String::new();
                self.stream.read_line(&mut line).unwrap();
                let size = usize::from_str_radix(line.trim_end(), 16).unwrap();
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).unwrap();
                assert!(chunk.ends_with(b"\r\n"));
                answer.body.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        }
        answer
    }

    /// Everything up to the end of the connection. A reset is an end as well.
    fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the connection has to end");
        }
        rest
    }

    fn expect_end(&mut self) {
        assert_eq!(self.rest().escape_ascii().to_string(), "");
    }
}

fn path(exchange: &Exchange) -> String {
    let (head, bytes) = exchange.head().unwrap();
    String::from_utf8(head.path().of(bytes).to_vec()).unwrap()
}

fn start(exchange: &mut Exchange, fields: &[(&str, &str)]) {
    exchange.start("200 OK", |out| fields.iter().try_for_each(|(name, value)| out.field(name, value))).unwrap();
}

/// Answers with the path and, behind a space, the body of the request.
fn echo(mut exchange: Exchange) {
    let mut text = path(&exchange).into_bytes();
    match exchange.take_body() {
        Body::Empty => {}
        Body::Memory(bytes) => {
            text.push(b' ');
            text.extend_from_slice(&bytes);
        }
        Body::File(file, length) => {
            text.push(b' ');
            assert_eq!(file.file().unwrap().read_to_end(&mut text).unwrap() as u64, length);
        }
    }
    start(&mut exchange, &[]);
    exchange.finish(&[&text]).unwrap();
    assert!(exchange.is_over());
}

/// Something long in which no two places look the same.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64 / 8 + 1).flat_map(|number| (number * 0x9e37_79b9).to_le_bytes()).take(length).collect()
}

/// A handler's request to go on, which the test grants.
fn gate() -> (Sender<()>, Arc<Mutex<Receiver<()>>>) {
    let (open, wait) = channel();
    (open, Arc::new(Mutex::new(wait)))
}

#[test]
fn a_connection_carries_many_requests() {
    let server = Server::new(1, options(patient()), |exchange| {
        assert!(exchange.request().is_some_and(|request| request.peer().is_some()));
        echo(exchange);
    });
    let mut client = server.connect();
    for number in 0..100 {
        client.get(&format!("/{number}"));
        let answer = client.answer();
        assert_eq!((answer.status, answer.text()), (200, &*format!("/{number}")));
    }
}

#[test]
fn two_hundred_requests_in_one_write_are_answered_in_order() {
    for threads in [1, 4] {
        let server = Server::new(threads, options(patient()), echo);
        let mut client = server.connect();
        let request = |number| match number % 3 {
            0 => format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"),
            1 => format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\r\n"),
            _ => format!("POST /{number} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"),
        };
        client.send((0..200).map(request).collect::<String>());
        for number in 0..200 {
            let body = ["", " \r\n", " a"][number % 3];
            assert_eq!(client.answer().text(), format!("/{number}{body}"));
        }
    }
}

#[test]
fn bodies_of_every_size_arrive_whole() {
    let server = Server::new(2, options(patient()), echo);
    for length in [1, 8_000, 100_000, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 3_000_000] {
        let mut client = server.connect();
        let content = pattern(length);
        client.send(
            [format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").as_bytes(), &content].concat(),
        );
        assert!(client.answer().body == [b"/ ", &content[..]].concat(), "{length} bytes");
        client.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in content.chunks(70_001) {
            client.send([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
        }
        client.send("0\r\n\r\n");
        assert!(client.answer().body == [b"/ ", &content[..]].concat(), "{length} bytes in chunks");
    }
}

/// Between a head and its body a connection has nothing to read, but it is not idle.
#[test]
fn heads_that_wait_for_their_bodies_are_not_mixed_up() {
    let server = Server::new(1, options(patient()), echo);
    let mut clients: Vec<Client> = (0..10).map(|_| server.connect()).collect();
    let mut other = server.connect();
    let mut meanwhile = |round: &str| {
        other.get(round);
        assert_eq!(other.answer().text(), round);
    };
    for (number, client) in clients.iter_mut().enumerate() {
        let framing = ["Content-Length: 1", "Transfer-Encoding: chunked"][number % 2];
        client.send(format!("POST /{number} HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"));
    }
    meanwhile("/one");
    meanwhile("/two");
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(["x", "1\r\nx\r\n0\r\n\r\n"][number % 2]);
        meanwhile("/three");
        assert_eq!(client.answer().text(), format!("/{number} x"));
    }
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    let server = Server::new(1, options(patient()), echo);
    let mut client = server.connect();
    client.send("POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.head().status, 100);
    server.connect().get("/meanwhile");
    client.send("hello");
    assert_eq!(client.answer().text(), "/a hello");
    // Who does not wait is not told.
    client.send("POST /b HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.answer().text(), "/b hello");
}

#[test]
fn options_asterisk_is_answered_by_the_server() {
    let server = Server::new(1, options(patient()), |_| panic!("no request for an application"));
    let mut client = server.connect();
    client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3));
    for _ in 0..3 {
        let answer = client.answer();
        assert!(answer.status == 204 && answer.fields.contains("Allow: GET"), "{answer:?}");
    }
}

#[test]
fn a_slow_reader_gets_everything_while_others_are_served() {
    const LENGTH: usize = 20_000_000;
    let (finished, wait) = channel();
    let server = Server::new(1, options(patient()), move |mut exchange| match &*path(&exchange) {
        "/whole" => {
            start(&mut exchange, &[]);
            exchange.finish(&[b"<", &pattern(LENGTH), b">"]).unwrap();
            finished.send(()).unwrap();
        }
        "/pieces" => {
            start(&mut exchange, &[]);
            pattern(LENGTH).chunks(777_777).for_each(|piece| exchange.write(piece).unwrap());
            exchange.end().unwrap();
            finished.send(()).unwrap();
        }
        _ => echo(exchange),
    });
    for (target, before, behind) in [("/whole", "<", ">"), ("/pieces", "", "")] {
        let mut client = server.connect();
        client.get(target);
        client.get("/behind");
        // The only thread has long gone on when the first byte is read.
        wait.recv_timeout(HANG).unwrap();
        let mut other = server.connect();
        other.get("/other");
        assert_eq!(other.answer().text(), "/other");
        let expected = [before.as_bytes(), &pattern(LENGTH), behind.as_bytes()].concat();
        assert!(client.answer().body == expected, "{target}");
        assert_eq!(client.answer().text(), "/behind");
    }
}

/// The socket may take more than one turn sends, and no edge says so.
#[test]
fn queued_bytes_are_sent_while_the_application_is_busy() {
    const PIECE: usize = 1_000_000;
    const PIECES: usize = 36;
    let (open, wait) = gate();
    let server = Server::new(2, options(patient()), move |mut exchange| {
        start(&mut exchange, &[]);
        let piece = pattern(PIECE);
        for _ in 0..PIECES {
            exchange.write(&piece).unwrap();
        }
        wait.lock().unwrap().recv().unwrap();
        exchange.end().unwrap();
    });
    let mut client = server.connect();
    client.get("/");
    assert!(client.head().has("Transfer-Encoding: chunked"));
    let mut taken = vec![0; PIECES * (PIECE + "f4240\r\n\r\n".len())];
    client.stream.read_exact(&mut taken).unwrap();
    open.send(()).unwrap();
    let mut last = [0; 5];
    client.stream.read_exact(&mut last).unwrap();
    assert_eq!(&last, b"0\r\n\r\n");
    let chunk = [b"f4240\r\n", pattern(PIECE).as_slice(), b"\r\n"].concat();
    assert!(taken == chunk.repeat(PIECES));
}

#[test]
fn files_are_sent() {
    const LENGTH: usize = 5_000_000;
    let content = pattern(LENGTH);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content).unwrap();
    // Where the file happens to be read is of no importance, and stays.
    file.seek(SeekFrom::Start(7)).unwrap();
    let theirs = file.try_clone().unwrap();
    let server = Server::new(1, options(patient()), move |mut exchange| {
        let file = OwnedFd::from(theirs.try_clone().unwrap());
        match &*path(&exchange) {
            "/all" => start(&mut exchange, &[]),
            "/declared" => start(&mut exchange, &[("Content-Length", "10")]),
            _ => return echo(exchange),
        }
        exchange.send_file(file, 1_000, LENGTH as u64 - 1_000).unwrap();
        assert!(exchange.is_over());
    });
    let mut client = server.connect();
    for _ in 0..3 {
        client.get("/all");
        client.get("/declared");
        client.get("/echo");
        assert!(client.answer().body == content[1_000..]);
        assert!(client.answer().body == content[1_000..1_010]);
        assert_eq!(client.answer().text(), "/echo");
        client.send("HEAD /all HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(client.head().has(&format!("Content-Length: {}", LENGTH - 1_000)));
    }
    assert_eq!(file.stream_position().unwrap(), 7);
}

#[test]
fn a_file_that_is_too_short_ends_the_connection() {
    let server = Server::new(1, options(patient()), |mut exchange| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"short").unwrap();
        start(&mut exchange, &[]);
        let _ = exchange.send_file(file.into(), 0, 10);
    });
    let mut client = server.connect();
    client.get("/");
    let answer = client.head();
    assert!(answer.has("Content-Length: 10"));
    assert_eq!(client.rest(), b"short");
}

#[test]
fn the_end_of_an_http_1_0_connection_is_the_end_of_its_answer() {
    let server = Server::new(1, options(patient()), |mut exchange| {
        start(&mut exchange, &[]);
        exchange.write(b"one").unwrap();
        exchange.write(b"two").unwrap();
        exchange.end().unwrap();
    });
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(client.head().has("Connection: close"));
    assert_eq!(client.rest(), b"onetwo");
}

#[test]
fn a_client_that_has_closed_its_sending_half_is_answered() {
    let server = Server::new(1, options(patient()), echo);
    let mut client = server.connect();
    client.get("/one");
    client.get("/two");
    client.stream.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!((client.answer().text(), client.answer().text()), ("/one", "/two"));
    client.expect_end();
}

#[test]
fn refused_requests_are_answered_and_their_connections_closed() {
    let limits = Limits { body: 1_000, ..Limits::default() };
    let server = Server::new(1, Options { limits, ..options(patient()) }, echo);
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/3.0\r\n\r\n", 505),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413),
    ] {
        let mut client = server.connect();
        client.get("/first");
        client.send(request);
        client.get("/never");
        assert_eq!(client.answer().text(), "/first");
        let answer = client.answer();
        assert!(answer.status == status && answer.has("Connection: close"), "{answer:?}");
        client.expect_end();
    }
    // A client that goes on sending can still read why it is refused.
    let mut client = server.connect();
    client.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
    client.send(vec![b'x'; 2_000_000]);
    assert_eq!(client.answer().status, 413);
    client.expect_end();
}

#[test]
fn a_graceful_stop_answers_requests_in_flight() {
    let (begun, wait) = channel();
    let (open, closed) = gate();
    let mut server = Server::new(3, options(patient()), move |exchange| {
        begun.send(()).unwrap();
        closed.lock().unwrap().recv().unwrap();
        echo(exchange);
    });
    let mut idle = server.connect();
    idle.get("/idle");
    wait.recv_timeout(HANG).unwrap();
    open.send(()).unwrap();
    assert_eq!(idle.answer().text(), "/idle");
    let (mut busy, mut sending) = (server.connect(), server.connect());
    busy.get("/busy");
    wait.recv_timeout(HANG).unwrap();
    sending.send("GET /sending HTTP/1.1\r\n");
    // The reactor has seen it when it answers what came later; the idle connection is one that has been answered.
    idle.get("/idle");
    wait.recv_timeout(HANG).unwrap();
    open.send(()).unwrap();
    open.send(()).unwrap();
    assert_eq!(idle.answer().text(), "/idle");
    assert_eq!(busy.answer().text(), "/busy");
    busy.get("/last");
    wait.recv_timeout(HANG).unwrap();
    server.reactor.stop(true, true);
    idle.expect_end();
    open.send(()).unwrap();
    let answer = busy.answer();
    assert!(answer.text() == "/last" && answer.has("Connection: close"), "{answer:?}");
    busy.expect_end();
    assert!(!server.reactor.is_finished());
    sending.send("Host: a\r\n\r\n");
    wait.recv_timeout(HANG).unwrap();
    open.send(()).unwrap();
    let answer = sending.answer();
    assert!(answer.text() == "/sending" && answer.has("Connection: close"), "{answer:?}");
    sending.expect_end();
    server.join();
    assert!(server.reactor.is_finished());
}

/// A listening socket that two reactors share, as two processes would.
fn shared_listener() -> ([OwnedFd; 2], SocketAddr) {
    let (listener, address) = listener();
    ([listener.try_clone().unwrap(), listener], address)
}

fn next_request(reactor: &Reactor) -> Exchange {
    loop {
        match reactor.wait_next() {
            Next::Request(exchange) => return exchange,
            Next::Interrupted => {}
            Next::Finished => panic!("it has ended"),
        }
    }
}

fn wait_for_the_end(reactor: &Reactor) {
    loop {
        match reactor.wait_next() {
            Next::Request(exchange) => panic!("{exchange:?}"),
            Next::Interrupted => {}
            Next::Finished => return,
        }
    }
}

#[test]
fn the_backlog_is_left_to_other_workers_if_there_are_any() {
    let ([ours, theirs], address) = shared_listener();
    let reactor = Reactor::new(vec![ours], options(patient())).unwrap();
    let mut client = Client::new(address);
    client.get("/");
    reactor.stop(true, false);
    wait_for_the_end(&reactor);
    let other = Reactor::new(vec![theirs], options(patient())).unwrap();
    let mut late = Client::new(address);
    other.stop(true, true);
    late.get("/late");
    for (client, path) in [(&mut client, "/"), (&mut late, "/late")] {
        echo(next_request(&other));
        let answer = client.answer();
        assert!(answer.text() == path && answer.has("Connection: close"), "{answer:?}");
    }
    wait_for_the_end(&other);
}

#[test]
fn idle_connections_are_read_during_a_graceful_stop() {
    let timeouts = Timeouts { drain: NEVER, ..patient() };
    let mut server = Server::new(2, options(timeouts), echo);
    let (mut idle, mut fresh, mut gone) = (server.connect(), server.connect(), server.connect());
    for client in [&mut idle, &mut gone] {
        client.get("/");
        assert!(!client.answer().has("Connection: close"));
    }
    server.reactor.stop(true, true);
    for client in [&mut idle, &mut fresh] {
        client.get("/again");
        let answer = client.answer();
        assert!(answer.text() == "/again" && answer.has("Connection: close"), "{answer:?}");
        client.expect_end();
    }
    assert!(!server.reactor.is_finished());
    drop(gone);
    server.join();
}

/// Nobody looks while the time to ask passes. What has come until then counts.
#[test]
fn requests_that_arrived_in_time_are_answered_even_if_read_late() {
    let (listener, address) = listener();
    let options = Options { external_loop: true, ..options(patient()) };
    let reactor = Reactor::new(vec![listener], options).unwrap();
    let mut client = Client::new(address);
    client.get("/");
    while reactor.poll_next().map(echo).is_none() {}
    assert_eq!(client.answer().text(), "/");
    reactor.stop(true, true);
    assert!(reactor.poll_next().is_none());
    client.get("/in-time");
    thread::sleep(Duration::from_millis(3 * SOON));
    while reactor.poll_next().map(echo).is_none() {}
    assert_eq!(client.answer().text(), "/in-time");
    client.expect_end();
}

#[test]
fn only_the_last_answer_of_a_pipeline_says_that_it_is_the_last() {
    for (threads, bodies) in [(1, false), (1, true), (3, false), (3, true)] {
        let (begun, wait) = channel();
        let (open, closed) = gate();
        let mut server = Server::new(threads, options(patient()), move |exchange| {
            begun.send(()).unwrap();
            closed.lock().unwrap().recv().unwrap();
            echo(exchange);
        });
        let mut client = server.connect();
        let requests = match bodies {
            false => "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(4),
            true => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx".repeat(4),
        };
        // The third is only half there when the first is answered.
        let (now, later) = requests.split_at(requests.len() * 5 / 8);
        client.send(now);
        wait.recv_timeout(HANG).unwrap();
        server.reactor.stop(true, true);
        open.send(()).unwrap();
        open.send(()).unwrap();
        let mut answers = vec![client.answer(), client.answer()];
        client.send(later);
        open.send(()).unwrap();
        open.send(()).unwrap();
        answers.extend([client.answer(), client.answer()]);
        let last: Vec<bool> = answers.iter().map(|answer| answer.has("Connection: close")).collect();
        assert_eq!(last, [false, false, false, true]);
        client.expect_end();
        drop(client);
        server.join();
    }
}

/// What came behind a request is on its way to be read when that is answered.
#[test]
fn an_unread_request_is_answered_during_a_graceful_stop() {
    let (listener, address) = listener();
    let reactor = Reactor::new(vec![listener], options(patient())).unwrap();
    let mut client = Client::new(address);
    client.get("/one");
    let exchange = next_request(&reactor);
    client.get("/two");
    reactor.stop(true, true);
    echo(exchange);
    let answer = client.answer();
    assert!(answer.text() == "/one" && !answer.has("Connection: close"), "{answer:?}");
    echo(next_request(&reactor));
    let answer = client.answer();
    assert!(answer.text() == "/two" && answer.has("Connection: close"), "{answer:?}");
    client.expect_end();
    drop(client);
    wait_for_the_end(&reactor);
}

/// One application notices it by its next call, another never returns: the threads without a request end all the same.
#[test]
fn a_reactor_that_gives_up_cuts_off_its_connections() {
    let (told, learnt) = channel();
    let (_go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let mut server = Server::new(4, options(patient()), move |mut exchange| {
        start(&mut exchange, &[]);
        let _ = exchange.write(b"x");
        if exchange.number() == 1 {
            let _ = wait.lock().unwrap().recv();
        } else {
            while exchange.write(&[b'x'; 10_000]).is_ok() {}
            told.send((exchange.is_lost(), exchange.is_cut())).unwrap();
        }
    });
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect();
        client.get("/");
        client.head();
        clients.push(client);
    }
    server.reactor.stop(false, true);
    server.reactor.give_up();
    assert_eq!(learnt.recv_timeout(HANG), Ok((true, true)));
    while server.threads.iter().filter(|thread| !thread.is_finished()).count() > 1 {
        thread::sleep(Duration::from_millis(1));
    }
    for mut client in clients {
        assert!(client.stream.read_to_end(&mut Vec::new()).is_err(), "the end would look like that of the response");
    }
    // The one that never returns.
    server.threads.clear();
}

/// Who comes to the others is none of its business.
#[test]
fn a_retiring_reactor_is_not_woken_for_the_backlog() {
    let ([ours, _theirs], address) = shared_listener();
    let timeouts = Timeouts { drain: NEVER, ..patient() };
    let options = Options { external_loop: true, ..options(timeouts) };
    let reactor = Reactor::new(vec![ours], options).unwrap();
    let mut idle = Client::new(address);
    idle.get("/");
    while reactor.poll_next().map(echo).is_none() {}
    assert_eq!(idle.answer().text(), "/");
    reactor.stop(true, false);
    let _waiting = Client::new(address);
    let looks = (0..1_000).take_while(|_| is_ready(&reactor, 10) && reactor.poll_next().is_none()).count();
    assert!(looks < 1_000, "it never comes to rest");
}

#[test]
fn messages_between_worker_and_main_process() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.set_read_timeout(Some(HANG)).unwrap();
    let channel = Some(Channel::new(ours.into()));
    let mut server = Server::new(2, Options { channel, recycle_after: 2, ..options(patient()) }, echo);
    let mut heard = [0];
    let mut hear = |theirs: &mut UnixStream| {
        theirs.read_exact(&mut heard).unwrap();
        heard[0]
    };
    server.reactor.send(b'+');
    assert_eq!(hear(&mut theirs), b'+');
    let mut client = server.connect();
    let mut ask = |path: &str| {
        client.get(path);
        client.answer()
    };
    ask("/1");
    theirs.write_all(b"?").unwrap();
    assert_eq!(hear(&mut theirs), b'.');
    ask("/2");
    assert_eq!(hear(&mut theirs), b'm');
    for number in 3..6 {
        assert!(!ask(&format!("/{number}")).has("Connection: close"));
    }
    theirs.write_all(b"?").unwrap();
    assert_eq!(hear(&mut theirs), b'.');
    theirs.write_all(b"r").unwrap();
    server.join();
}

#[test]
fn without_a_main_process_a_worker_ends() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let channel = Some(Channel::new(ours.into()));
    let mut server = Server::new(2, Options { channel, ..options(patient()) }, echo);
    drop(theirs);
    server.join();
}

#[test]
fn idle_connections_are_passed_to_the_next_worker() {
    let (give, take) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
    let way = |version| Some(FdHandoff::new(give.try_clone().unwrap(), take.try_clone().unwrap(), version));
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let channel = Some(Channel::new(ours.into()));
    let (release, released) = std::sync::mpsc::channel();
    let released = Mutex::new(released);
    let old = Options { channel, fd_handoff: way(1), ..options(Timeouts { drain: NEVER, ..patient() }) };
    let mut old = Server::new(2, old, move |mut exchange| {
        if path(&exchange) == "/slow" {
            released.lock().unwrap().recv().unwrap();
        }
        start(&mut exchange, &[]);
        exchange.finish(&[b"old"]).unwrap();
    });
    let mut clients: Vec<Client> = (0..5).map(|_| old.connect()).collect();
    for client in &mut clients[..3] {
        client.get("/");
        assert_eq!(client.answer().text(), "old");
    }
    clients[0].get("/slow");
    // One has begun to speak, and was heard before the next, so the old one hears it out.
    clients[1].send("GET / HTTP/1.1\r\n");
    clients[2].get("/");
    assert_eq!(clients[2].answer().text(), "old");
    theirs.write_all(b"?H").unwrap();
    let mut new = Server::new(1, Options { fd_handoff: way(2), ..options(patient()) }, |mut exchange| {
        start(&mut exchange, &[]);
        exchange.finish(&[b"new"]).unwrap();
    });
    for client in &mut clients[2..] {
        client.get("/");
        assert_eq!(client.answer().text(), "new");
    }
    clients[1].send("Host: a\r\n\r\n");
    assert_eq!(clients[1].answer().text(), "old");
    release.send(()).unwrap();
    assert_eq!(clients[0].answer().text(), "old");
    for client in &mut clients[..2] {
        client.get("/");
        assert_eq!(client.answer().text(), "new");
    }
    old.join();
    new.reactor.stop(true, true);
    new.join();
}

#[test]
fn an_overdue_stop_closes_all_connections() {
    let timeouts = Timeouts { graceful: SOON, ..patient() };
    let mut server = Server::new(2, options(timeouts), echo);
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.get("/");
        client.answer();
        client.send("GET /half HTTP/1.1\r\n");
    }
    server.reactor.stop(true, true);
    server.join();
    clients.iter_mut().for_each(|client| drop(client.rest()));
}

#[test]
fn every_thread_ends_with_the_reactor() {
    for threads in [1, 2, 3, 8] {
        for _ in 0..20 {
            let mut server = Server::new(threads, options(patient()), echo);
            server.reactor.stop(true, true);
            server.join();
        }
    }
}

#[test]
fn a_request_that_is_dropped_ends_its_connection() {
    let server = Server::new(1, options(patient()), |mut exchange| match &*path(&exchange) {
        "/drop" => drop(exchange),
        "/half" => {
            start(&mut exchange, &[("Content-Length", "10")]);
            exchange.write(b"half").unwrap();
        }
        _ => {
            exchange.abort();
            assert!(exchange.is_over());
            assert!(matches!(exchange.end(), Err(SendError::Over)));
            assert!(matches!(exchange.write(b"x"), Err(SendError::Over)));
        }
    });
    for target in ["/drop", "/abort"] {
        let mut client = server.connect();
        client.get(target);
        client.expect_end();
    }
    let mut client = server.connect();
    client.get("/half");
    client.head();
    assert_eq!(client.rest(), b"half");
}

#[test]
fn invalid_responses_never_reach_the_client() {
    let server = Server::new(1, options(patient()), |mut exchange| {
        let wrong = exchange.start("200 OK", |out| {
            out.field("X-Good", "1")?;
            out.field("X-Bad", "a\r\nSet-Cookie: b")
        });
        assert!(matches!(wrong, Err(SendError::Invalid(_))));
        assert!(matches!(exchange.start("2 00", |_| Ok(())), Err(SendError::Invalid(_))));
        assert!(!exchange.response().is_started());
        exchange.start::<SendError>("500 Oh", |_| Ok(())).unwrap();
        exchange.finish(&[b"sorry"]).unwrap();
    });
    let mut client = server.connect();
    client.get("/one");
    client.get("/two");
    for _ in 0..2 {
        let answer = client.answer();
        assert_eq!((answer.status, answer.text()), (500, "sorry"));
        assert!(!answer.fields.contains("X-"), "{answer:?}");
    }
}

#[test]
fn a_head_that_does_not_come_in_time() {
    // Longer than a busy machine needs between a connection and its first byte.
    let server = Server::new(1, options(Timeouts { header: 5 * SOON, ..patient() }), echo);
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHo");
    let answer = client.answer();
    assert!(answer.status == 408 && answer.has("Connection: close"), "{answer:?}");
    client.expect_end();
    // On a connection that was used before, too.
    let mut client = server.connect();
    client.get("/first");
    assert_eq!(client.answer().text(), "/first");
    client.send("G");
    assert_eq!(client.answer().status, 408);
    client.expect_end();
    // However it drips.
    let mut client = server.connect();
    client.send("GET /");
    drip(&mut client, b"a");
    assert_eq!(client.answer().status, 408);
    // Who says nothing at all is told nothing.
    server.connect().expect_end();
}

#[test]
fn a_body_that_does_not_come_in_time() {
    let server = Server::new(1, options(Timeouts { body: SOON, ..patient() }), echo);
    for part in ["", "x"] {
        let mut client = server.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{part}"));
        assert_eq!(client.answer().status, 408);
        client.expect_end();
    }
}

/// Sends a byte every millisecond for as long as there is no answer.
fn drip(client: &mut Client, bytes: &[u8]) {
    for part in bytes.chunks(1).cycle() {
        let stream = client.stream.get_mut();
        let mut ready = [rustix::event::PollFd::new(stream, rustix::event::PollFlags::IN)];
        let moment = rustix::time::Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        if rustix::event::poll(&mut ready, Some(&moment)).unwrap() > 0 || stream.write_all(part).is_err() {
            return;
        }
    }
}

#[test]
fn a_body_that_comes_too_slowly() {
    let min_rate = 1_000_000;
    let server = Server::new(1, options(Timeouts { body: SOON, min_rate, ..patient() }), echo);
    for (framing, bytes) in [("Content-Length: 1000000", "x"), ("Transfer-Encoding: chunked", "1\r\nx\r\n")] {
        let mut client = server.connect();
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"));
        drip(&mut client, bytes.as_bytes());
        assert_eq!(client.answer().status, 408);
        client.expect_end();
    }
}

#[test]
fn a_body_may_take_its_time_at_a_rate() {
    // Longer than a busy machine pauses, and not as long as the whole body takes.
    let timeouts = Timeouts { body: 15 * SOON, min_rate: 1, ..patient() };
    let server = Server::new(1, options(timeouts), echo);
    let mut client = server.connect();
    const PIECES: usize = 20;
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {PIECES}\r\n\r\n"));
    for _ in 0..PIECES {
        thread::sleep(Duration::from_millis(SOON));
        client.send("x");
    }
    assert_eq!(client.answer().text(), format!("/ {}", "x".repeat(PIECES)));
}

#[test]
fn a_client_that_reads_too_slowly_is_cut_off() {
    const LENGTH: usize = 50_000_000;
    let (error_log, mut lines) = error_log();
    let timeouts = Timeouts { write: SOON, min_rate: u64::MAX, ..patient() };
    let server = Server::new(1, Options { error_log, ..options(timeouts) }, |mut exchange| {
        start(&mut exchange, &[]);
        exchange.finish(&[&pattern(LENGTH)]).unwrap();
    });
    let mut client = server.connect();
    client.get("/");
    client.head();
    let (mut taken, mut sip) = (0, [0; 10_000]);
    while let Ok(bytes @ 1..) = client.stream.read(&mut sip) {
        taken += bytes;
        thread::sleep(Duration::from_millis(1));
    }
    assert!(taken < LENGTH);
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("does not read its response"), "{line}");
}

#[test]
fn the_oldest_idle_connection_is_evicted() {
    let server = Server::new(1, Options { max_connections: 3, ..options(patient()) }, echo);
    let mut clients: Vec<Client> = Vec::new();
    for number in 0..10 {
        let mut client = server.connect();
        client.get(&format!("/{number}"));
        assert_eq!(client.answer().text(), format!("/{number}"));
        clients.push(client);
        if number >= 3 {
            clients.remove(0).expect_end();
        }
    }
    for client in &mut clients {
        client.get("/still");
        assert_eq!(client.answer().text(), "/still");
    }
}

#[test]
fn new_connections_get_503_when_all_are_busy() {
    let (error_log, mut lines) = error_log();
    let server = Server::new(1, Options { max_connections: 2, error_log, ..options(patient()) }, echo);
    let mut busy = [server.connect(), server.connect()];
    for client in &mut busy {
        client.send("GET /busy HTTP/1.1\r\n");
    }
    for _ in 0..300 {
        let mut client = server.connect();
        let answer = client.answer();
        assert!(answer.status == 503 && answer.has("Retry-After: 1") && answer.has("Connection: close"), "{answer:?}");
        client.expect_end();
    }
    for client in &mut busy {
        client.send("Host: a\r\n\r\n");
        assert_eq!(client.answer().text(), "/busy");
    }
    let mut client = server.connect();
    client.get("/after");
    assert_eq!(client.answer().text(), "/after");
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("2 connections are open (max_connections)"), "{line}");
}

#[test]
fn an_idle_connection_is_closed() {
    let server = Server::new(1, options(Timeouts { keepalive: SOON, ..patient() }), echo);
    let mut client = server.connect();
    client.get("/");
    assert_eq!(client.answer().status, 200);
    client.expect_end();
}

/// A journal whose lines can be waited for.
fn error_log() -> (Arc<ErrorLog>, BufReader<File>) {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    (Arc::new(ErrorLog::new(Sink::lines(writer, false), Level::Info, false)), BufReader::new(reader.into()))
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    const LENGTH: usize = 20_000_000;
    let (error_log, mut lines) = error_log();
    let options = Options { error_log, ..options(Timeouts { write: SOON, ..patient() }) };
    let server = Server::new(1, options, |mut exchange| {
        start(&mut exchange, &[]);
        exchange.finish(&[&pattern(LENGTH)]).unwrap();
    });
    let mut client = server.connect();
    client.get("/");
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("does not read its response"), "{line}");
    client.head();
    assert!(client.rest().len() < LENGTH);
}

#[test]
fn an_application_gets_an_error_if_its_client_reads_nothing() {
    let (told, learnt) = channel();
    let server = Server::new(2, options(Timeouts { write: SOON, ..patient() }), move |mut exchange| {
        start(&mut exchange, &[]);
        let error = loop {
            if let Err(error) = exchange.write(&[b'x'; 100_000]) {
                break error;
            }
            thread::sleep(Duration::from_millis(1));
        };
        told.send((matches!(error, SendError::Disconnected), exchange.is_lost())).unwrap();
    });
    let mut client = server.connect();
    client.get("/");
    assert_eq!(learnt.recv_timeout(HANG).unwrap(), (true, true));
    assert!(!client.rest().ends_with(b"0\r\n\r\n"), "an answer that was cut off must not look complete");
}

#[test]
fn an_application_can_ask_whether_its_client_has_disconnected() {
    let (told, learnt) = channel();
    let server = Server::new(1, options(patient()), move |mut exchange| {
        start(&mut exchange, &[]);
        while exchange.write(&[b'x'; 10_000]).is_ok() {}
        told.send(exchange.is_lost()).unwrap();
    });
    let mut client = server.connect();
    client.get("/");
    client.head();
    drop(client);
    assert!(learnt.recv_timeout(HANG).unwrap());
}

/// None of these requests can be answered before all are being handled.
#[test]
fn as_many_requests_are_handled_at_once_as_there_are_threads() {
    const THREADS: usize = 8;
    let barrier = Barrier::new(THREADS);
    let server = Server::new(THREADS, options(patient()), move |exchange| {
        barrier.wait();
        echo(exchange);
    });
    let mut clients: Vec<Client> = (0..THREADS).map(|_| server.connect()).collect();
    for round in 0..30 {
        clients.iter_mut().for_each(|client| client.get(&format!("/{round}")));
        clients.iter_mut().for_each(|client| assert_eq!(client.answer().text(), format!("/{round}")));
    }
}

#[test]
fn handlers_that_sleep_and_handlers_that_do_not() {
    let server = Server::new(8, options(patient()), |exchange| {
        let number: u64 = path(&exchange)[1..].parse().unwrap();
        if number.is_multiple_of(7) {
            thread::sleep(Duration::from_millis(number % 5 + 1));
        }
        echo(exchange);
    });
    let address = server.address;
    let clients = (0..24u64).map(|client| {
        thread::spawn(move || {
            let mut connection = Client::new(address);
            for number in (client..client + 40).map(|number| number * 31) {
                // Now one by one, now two at once, now on a new connection.
                connection.get(&format!("/{number}"));
                if number % 3 == 0 {
                    connection.get("/0");
                }
                assert_eq!(connection.answer().text(), format!("/{number}"));
                if number % 3 == 0 {
                    assert_eq!(connection.answer().text(), "/0");
                }
                if number % 11 == 0 {
                    connection = Client::new(address);
                }
            }
        })
    });
    clients.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

/// A thread that comes back from a long request finds the next one of its connection, while the thread that polls knows
/// nothing of it.
#[test]
fn events_during_a_long_request_are_handled() {
    let (begun, wait) = channel();
    let (open, closed) = gate();
    let server = Server::new(4, options(patient()), move |exchange| {
        if path(&exchange) == "/long" {
            begun.send(()).unwrap();
            closed.lock().unwrap().recv().unwrap();
        }
        echo(exchange);
    });
    for _ in 0..5 {
        let (mut long, mut short) = (server.connect(), server.connect());
        long.get("/long");
        wait.recv_timeout(HANG).unwrap();
        // So many requests that the stall has no effect any more.
        for number in 0..300 {
            short.get(&format!("/{number}"));
            assert_eq!(short.answer().text(), format!("/{number}"));
        }
        long.get("/next");
        // It was noted when what came after it is answered.
        short.get("/");
        short.answer();
        open.send(()).unwrap();
        assert_eq!(long.answer().text(), "/long");
        assert_eq!(long.answer().text(), "/next");
    }
}

#[test]
fn an_external_event_loop() {
    let (listener, address) = listener();
    // Longer than a busy machine needs between two rounds.
    let timeouts = Timeouts { keepalive: 20 * SOON, ..patient() };
    let options = Options { external_loop: true, ..options(timeouts) };
    let reactor = Reactor::new(vec![listener], options).unwrap();
    let outer = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&outer, reactor.fd(), epoll::EventData::new_u64(1), epoll::EventFlags::IN).unwrap();
    let (told, reactor_of_clients) = (Arc::new(AtomicUsize::new(0)), reactor.clone());
    let done = Arc::clone(&told);
    let clients = thread::spawn(move || {
        let mut clients: Vec<Client> = (0..5).map(|_| Client::new(address)).collect();
        for round in 0..20 {
            for client in &mut clients {
                client.get(&format!("/{round}"));
                client.get("/again");
            }
            for client in &mut clients {
                assert_eq!(client.answer().text(), format!("/{round}"));
                assert_eq!(client.answer().text(), "/again");
            }
        }
        clients.iter_mut().for_each(Client::expect_end);
        told.store(1, Ordering::Release);
        reactor_of_clients.wake();
    });
    let (mut answered, mut held) = (0, Vec::new());
    let guard = rustix::time::Timespec { tv_sec: HANG.as_secs() as i64, tv_nsec: 0 };
    let wait = || {
        let mut events = [const { std::mem::MaybeUninit::uninit() }; 4];
        let (events, _) = epoll::wait(&outer, &mut events, Some(&guard)).unwrap();
        assert_eq!(events.len(), 1, "the reactor has something to do");
    };
    while answered < 5 * 20 * 2 {
        wait();
        while let Some(exchange) = reactor.poll_next() {
            // Every other request is answered only when there are no others to be had, as a greenlet would.
            match answered % 2 {
                0 => echo(exchange),
                _ => held.push(exchange),
            }
            answered += 1;
        }
        held.drain(..).for_each(echo);
    }
    while done.load(Ordering::Acquire) == 0 {
        wait();
        assert!(reactor.poll_next().is_none());
    }
    clients.join().unwrap();
    reactor.stop(true, true);
    while !reactor.is_finished() {
        wait();
        assert!(reactor.poll_next().is_none());
    }
}

/// Whether a reactor has something to do, within so many milliseconds.
fn is_ready(reactor: &Reactor, milliseconds: i64) -> bool {
    let mut ready = [rustix::event::PollFd::from_borrowed_fd(reactor.fd(), rustix::event::PollFlags::IN)];
    let time = rustix::time::Timespec { tv_sec: milliseconds / 1_000, tv_nsec: milliseconds % 1_000 * 1_000_000 };
    rustix::event::poll(&mut ready, Some(&time)).unwrap() > 0
}

/// A reactor that was told to stop at once waits for the last request without asking for the processor.
#[test]
fn a_late_stop_is_quiet() {
    let (listener, address) = listener();
    let options = Options { external_loop: true, ..options(patient()) };
    let reactor = Reactor::new(vec![listener], options).unwrap();
    let mut client = Client::new(address);
    client.get("/");
    let exchange = loop {
        assert!(is_ready(&reactor, HANG.as_millis() as i64));
        if let Some(exchange) = reactor.poll_next() {
            break exchange;
        }
    };
    reactor.stop(false, true);
    let looks = (0..1_000).take_while(|_| is_ready(&reactor, 10) && reactor.poll_next().is_none()).count();
    assert!(looks < 1_000, "it never comes to rest");
    assert!(!reactor.is_finished());
    echo(exchange);
    assert_eq!(client.answer().text(), "/");
    client.expect_end();
    assert!(reactor.is_finished());
}

#[test]
fn a_reused_slot_keeps_nothing_of_its_previous_connection() {
    let server = Server::new(2, options(patient()), echo);
    for number in 0..200 {
        let mut client = server.connect();
        // A half of something is left behind.
        client.send("POST /left HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
        drop(client);
        let mut client = server.connect();
        client.send(format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"));
        client.send("x");
        assert_eq!(client.answer().text(), format!("/{number} x"));
    }
}

#[test]
fn every_request_has_its_line() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let log = AccessLog::new(Sink::lines(writer, false), "%L %r %s %B %k", String::new(), None, None).unwrap();
    let server = Server::new(1, Options { access_log: Some(Arc::new(log)), ..options(patient()) }, echo);
    let mut client = server.connect();
    client.get("/a");
    client.get("/bc");
    client.send("bad\r\n\r\n");
    client.rest();
    drop(server);
    let lines: Vec<String> = BufReader::new(File::from(reader)).lines().map_while(Result::ok).collect();
    assert_eq!(lines, ["1 GET /a HTTP/1.1 200 2 0", "2 GET /bc HTTP/1.1 200 3 1", "3 - 400 42 2"]);
}

/// Counts, so that each of many requests is seen exactly once.
#[test]
fn nothing_is_handled_twice() {
    let seen: Arc<Vec<AtomicUsize>> = Arc::new((0..2_000).map(|_| AtomicUsize::new(0)).collect());
    let counts = Arc::clone(&seen);
    let server = Server::new(4, options(patient()), move |exchange| {
        counts[path(&exchange)[1..].parse::<usize>().unwrap()].fetch_add(1, Ordering::Relaxed);
        echo(exchange);
    });
    let address = server.address;
    let clients: Vec<_> = (0..4)
        .map(|client| {
            thread::spawn(move || {
                let mut connection = Client::new(address);
                for batch in 0..50 {
                    let numbers = (0..10).map(|number| client * 500 + batch * 10 + number);
                    numbers.clone().for_each(|number| connection.get(&format!("/{number}")));
                    numbers.for_each(|number| assert_eq!(connection.answer().text(), format!("/{number}")));
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
}

/// Notes the requests that are overdue or stuck, and interrupts none.
#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<Vec<String>>,
}

impl TimeoutHandler for Bell {
    fn overdue(&self, request: Arc<TimedRequest>) {
        self.rung.lock().unwrap().push(format!("overdue: {}", request.line()));
    }

    fn stuck(&self, request: &TimedRequest) {
        self.rung.lock().unwrap().push(format!("stuck: {}", request.line()));
    }
}

/// A server whose handler begins as `begin` does and hangs then, until something is sent to the sender.
fn hanging(
    begin: impl Fn(&mut Exchange) + Send + Sync + 'static,
) -> (Server, Arc<Bell>, UnixStream, Sender<()>, Receiver<Option<SendError>>) {
    let bell = Arc::new(Bell::default());
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_read_timeout(Some(HANG)).unwrap();
    ours.set_nonblocking(true).unwrap();
    let (release, released) = channel();
    let (tell, told) = channel();
    let (released, tell) = (Mutex::new(released), Mutex::new(tell));
    let options = Options {
        timeouts: Timeouts { request: SOON, ..patient() },
        timeout_handler: Some(Arc::clone(&bell) as Arc<dyn TimeoutHandler>),
        channel: Some(Channel::new(ours.into())),
        ..Options::default()
    };
    let server = Server::new(1, options, move |mut exchange| {
        let in_flight = exchange.hand_out();
        if exchange.request_line().ends_with("/quick") {
            exchange.start::<SendError>("200 OK", |_| Ok(())).unwrap();
            return exchange.finish(&[b"quick"]).unwrap();
        }
        begin(&mut exchange);
        released.lock().unwrap().recv().unwrap();
        assert!(exchange.has_timed_out());
        if !exchange.response().is_started() {
            exchange.start::<SendError>("200 OK", |_| Ok(())).unwrap();
        }
        tell.lock().unwrap().send(exchange.finish(&[b"too late"]).err()).unwrap();
        drop(in_flight);
    });
    (server, bell, theirs, release, told)
}

#[test]
fn a_stuck_request_is_answered_after_the_responses_before_it() {
    let (server, bell, mut main_process, release, told) = hanging(|_| {});
    let mut client = server.connect();
    client.send("GET /quick HTTP/1.1\r\nHost: a\r\n\r\nHEAD /hang HTTP/1.1\r\nHost: a\r\n\r\nGET /never");
    let mut all = String::new();
    client.stream.read_to_string(&mut all).unwrap();
    let (first, second) = all.split_once("quick").unwrap();
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(second.starts_with("HTTP/1.1 504 Gateway Timeout\r\n") && second.ends_with("\r\n\r\n"));
    assert!(second.contains("Connection: close\r\n"));
    let mut received = [0];
    main_process.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"t");
    release.send(()).unwrap();
    assert!(matches!(told.recv_timeout(HANG).unwrap(), Some(SendError::Disconnected)));
    assert_eq!(*bell.rung.lock().unwrap(), ["overdue: HEAD /hang", "stuck: HEAD /hang"]);
    let mut next = server.connect();
    next.get("/quick");
    assert_eq!(next.answer().status, 200);
}

#[test]
fn a_response_whose_application_is_stuck_is_cut_short() {
    let (server, bell, mut main_process, release, told) = hanging(|exchange| {
        exchange.start::<SendError>("200 OK", |_| Ok(())).unwrap();
        exchange.write(b"first").unwrap();
    });
    let mut client = server.connect();
    // Without chunks or length: only a reset tells that this is not all.
    client.send("GET /hang HTTP/1.0\r\n\r\n");
    let error = client.stream.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    main_process.read_exact(&mut [0]).unwrap();
    release.send(()).unwrap();
    assert!(told.recv_timeout(HANG).unwrap().is_some());
    assert_eq!(*bell.rung.lock().unwrap(), ["overdue: GET /hang", "stuck: GET /hang"]);
}

/// So many requests that are answered without anybody being asked.
fn many(number: usize) -> String {
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n".repeat(number)
}

#[test]
fn a_wake_up_is_seen_among_requests_answered_by_the_reactor() {
    let (listener, address) = listener();
    let reactor = Reactor::new(vec![listener], options(patient())).unwrap();
    let mut client = Client::new(address);
    client.get("/first");
    client.send(many(2_000));
    client.get("/last");
    let next = || match reactor.wait_next() {
        Next::Request(exchange) => Some(exchange),
        Next::Interrupted => None,
        Next::Finished => unreachable!("it was not stopped"),
    };
    let first = next().expect("it was not woken");
    assert_eq!(path(&first), "/first");
    reactor.wake();
    echo(first);
    assert!(next().is_none(), "it was woken");
    let last = next().expect("it was woken once");
    assert_eq!(path(&last), "/last");
}

#[test]
fn requests_answered_by_the_reactor_do_not_block_an_external_loop() {
    let (listener, address) = listener();
    let options = Options { external_loop: true, ..options(patient()) };
    let reactor = Reactor::new(vec![listener], options).unwrap();
    let mut client = Client::new(address);
    client.send(many(4_000));
    client.get("/last");
    let mut looks = 0;
    loop {
        assert!(is_ready(&reactor, HANG.as_millis() as i64), "there is more to do");
        looks += 1;
        if let Some(exchange) = reactor.poll_next() {
            assert_eq!(path(&exchange), "/last");
            break;
        }
    }
    assert!(looks > 8, "{looks} looks");
}

fn wait_for(condition: impl Fn() -> bool) {
    let end = Instant::now() + HANG;
    while !condition() {
        assert!(Instant::now() < end, "what is waited for does not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Makes a long poll of `/park`, and of `/missed` one that accepts an end an hour ago.
fn park(mut exchange: Exchange) {
    let path = path(&exchange);
    if !path.starts_with("/park") && path != "/missed" {
        return echo(exchange);
    }
    start(&mut exchange, &[]);
    if path != "/park/silent" {
        exchange.write(b"hello ").unwrap();
    }
    exchange.hold_open(b"farewell", if path == "/missed" { 3_600_000 } else { 0 }).unwrap();
    assert!(exchange.is_over());
    // What the application still returns is ignored.
    exchange.finish(&[b"lost"]).unwrap();
    assert!(matches!(exchange.hold_open(b"once more", 0), Err(SendError::Over)));
}

/// Reads what was said before an answer was parked.
fn expect_held_open(client: &mut Client) {
    assert_eq!(client.head().status, 200);
    let mut received = [0; 11];
    client.stream.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"6\r\nhello \r\n");
}

#[test]
fn long_polls_occupy_no_thread_and_end_together() {
    for threads in [1, 3] {
        // A busy machine may take long between a connection and its request, but not that long.
        let timeouts = Timeouts { header: 20 * SOON, keepalive: SOON, write: SOON, ..patient() };
        // A client has read what was said before its thread parks the answer.
        let ended = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ended);
        let server = Server::new(threads, options(timeouts), move |exchange| {
            park(exchange);
            count.fetch_add(1, Ordering::Release);
        });
        let mut clients: Vec<Client> = (0..100).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.get("/park");
            expect_held_open(client);
        }
        wait_for(|| ended.load(Ordering::Acquire) == 100);
        // Longer than any time limit: one that came later is closed by it.
        server.connect().expect_end();
        let mut other = server.connect();
        other.get("/other");
        assert_eq!(other.answer().text(), "/other");
        server.reactor.end_long_polls();
        for client in &mut clients {
            assert_eq!(client.rest().escape_ascii().to_string(), r"8\r\nfarewell\r\n0\r\n\r\n");
        }
        // Who comes later waits for the next one, unless it is late.
        let (mut late, mut next) = (server.connect(), server.connect());
        next.get("/park");
        expect_held_open(&mut next);
        // The hundred, the other one and this one.
        wait_for(|| ended.load(Ordering::Acquire) == 102);
        late.get("/missed");
        expect_held_open(&mut late);
        assert_eq!(late.rest().escape_ascii().to_string(), r"8\r\nfarewell\r\n0\r\n\r\n");
        other = server.connect();
        other.get("/other");
        assert_eq!(other.answer().text(), "/other");
        server.reactor.end_long_polls();
        assert_eq!(next.rest().escape_ascii().to_string(), r"8\r\nfarewell\r\n0\r\n\r\n");
    }
}

#[test]
fn all_long_polls_get_what_is_pushed_until_they_end() {
    let server = Server::new(1, options(patient()), park);
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.get("/park");
        expect_held_open(client);
    }
    // By then the only thread has left the last of them.
    let mut other = server.connect();
    other.get("/other");
    assert_eq!(other.answer().text(), "/other");
    for _ in 0..2 {
        // Until all have returned from the application, which counts as well.
        assert!((3..=4).contains(&server.reactor.push_to_long_polls(b"news")));
        for client in &mut clients {
            let mut received = [0; 9];
            client.stream.read_exact(&mut received).unwrap();
            assert_eq!(&received, b"4\r\nnews\r\n");
        }
    }
    drop(clients.pop());
    // Who comes later gets only what comes later still.
    let mut late = server.connect();
    late.get("/park");
    expect_held_open(&mut late);
    clients.push(late);
    other.get("/other");
    assert_eq!(other.answer().text(), "/other");
    server.reactor.end_long_polls();
    for client in &mut clients {
        assert_eq!(client.rest().escape_ascii().to_string(), r"8\r\nfarewell\r\n0\r\n\r\n");
    }
}

#[test]
fn a_client_that_does_not_read_misses_what_is_pushed() {
    let server = Server::new(1, options(patient()), park);
    let mut client = server.connect();
    client.get("/park");
    expect_held_open(&mut client);
    let mut other = server.connect();
    // More than the sockets take, and not more memory with each.
    let chunk = vec![b'x'; 1 << 20];
    other.get("/other");
    assert_eq!(other.answer().text(), "/other");
    for _ in 0..40 {
        server.reactor.push_to_long_polls(&chunk);
        other.get("/other");
        assert_eq!(other.answer().text(), "/other");
    }
    server.reactor.push_to_long_polls(b"the last");
    let mut received = Vec::new();
    while !received.ends_with(b"8\r\nthe last\r\n") {
        let mut piece = [0; 65536];
        let length = client.stream.read(&mut piece).unwrap();
        assert!(length > 0, "it ended after {} bytes", received.len());
        received.extend_from_slice(&piece[..length]);
    }
    assert!(received.len() < 20 << 20, "{} bytes were kept for a client that did not read", received.len());
}

#[test]
fn a_stop_ends_long_polls_at_once() {
    for graceful in [true, false] {
        let mut server = Server::new(1, options(Timeouts { drain: NEVER, ..patient() }), park);
        let mut client = server.connect();
        client.get("/park");
        expect_held_open(&mut client);
        server.reactor.stop(graceful, false);
        assert_eq!(client.rest().escape_ascii().to_string(), r"0\r\n\r\n");
        server.join();
    }
}

#[test]
fn a_long_poll_ends_when_its_client_leaves_and_its_next_request_is_not_answered() {
    let counters: &'static Counters = Box::leak(Box::default());
    let server = Server::new(1, Options { counters: Some(counters), ..options(patient()) }, park);
    let mut client = server.connect();
    client.send("GET /park HTTP/1.1\r\nHost: a\r\n\r\nGET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    expect_held_open(&mut client);
    client.get("/park");
    wait_for(|| counters.counts().answers[1] == 1);
    drop(client);
    wait_for(|| counters.counts().connections == 0);
    let counts = counters.counts();
    assert_eq!((counts.requests, counts.in_flight), (1, 0));
}

#[test]
fn long_polls_without_a_body_or_without_chunks() {
    let server = Server::new(1, options(patient()), park);
    let (mut head, mut old) = (server.connect(), server.connect());
    head.send("HEAD /park/silent HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(head.head().has("Connection: close"));
    head.expect_end();
    old.send("GET /park HTTP/1.0\r\n\r\n");
    assert_eq!(old.head().status, 200);
    let mut received = [0; 6];
    old.stream.read_exact(&mut received).unwrap();
    // By the same thread, which has parked the other answer by then.
    let mut other = server.connect();
    other.get("/other");
    assert_eq!(other.answer().text(), "/other");
    server.reactor.end_long_polls();
    assert_eq!(old.rest(), b"farewell");
}
