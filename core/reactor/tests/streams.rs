//! Connections with many streams, by a protocol for tests: each stream has a request, a response and an end of its own.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod frames;
mod starting;
mod timeouts;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use frames::{Client, WINDOW};
use poorhttp_http::Protocol;
use poorhttp_reactor::{
    AccessLog, BodyPart, Counters, Exchange, Interest, Listener, Negotiation, Options, Reactor, Routes, SendError,
    Sink, TimedRequest, TimeoutHandler, Timeouts,
};
use timeouts::{HANG, SOON, patient};

fn listener(streams: bool) -> (Listener, SocketAddr) {
    let (socket, address) = starting::listener();
    let streams = if streams { Negotiation::Always } else { Negotiation::Never };
    (Listener { socket: socket.into(), protocol: Protocol::Http, proxied: false, tls: None, streams }, address)
}

/// Some threads that serve.
struct Server {
    reactor: Reactor,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    fn new(threads: usize, options: Options, handler: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        let (listener, address) = listener(true);
        let options = Options { multiplexing: Some(frames::multiplexing()), ..options };
        let reactor = Reactor::new(vec![listener], options).unwrap();
        let threads = starting::threads(&reactor, threads, handler);
        Server { reactor, address, threads }
    }

    fn join(&mut self) {
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
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

fn path(exchange: &Exchange) -> String {
    let (head, bytes) = exchange.head().unwrap();
    String::from_utf8(head.path().of(bytes).to_vec()).unwrap()
}

fn start(exchange: &mut Exchange) {
    exchange.start::<SendError>("200 OK", |_| Ok(())).unwrap();
}

fn answer(mut exchange: Exchange, text: &[u8]) {
    start(&mut exchange);
    exchange.finish(&[text]).unwrap();
}

/// Receives the body; the thread waits for it.
fn receive(exchange: &mut Exchange) -> Vec<u8> {
    let (mut body, mut room) = (Vec::new(), [0; 10_000]);
    loop {
        match exchange.receive_body(&mut room).unwrap() {
            BodyPart::Content(bytes) => body.extend_from_slice(&room[..bytes]),
            BodyPart::End => return body,
            BodyPart::NothingYet(time) => exchange.waiter().unwrap().wait(Interest::DATA, time),
        }
    }
}

fn streamed_uploads() -> Option<Routes<()>> {
    let mut routes = Routes::default();
    routes.add("", "/upload", Some(()));
    Some(routes)
}

fn wait_for(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < HANG);
        thread::yield_now();
    }
}

/// Interrupts nothing.
#[derive(Debug)]
struct Patience;

impl TimeoutHandler for Patience {
    fn overdue(&self, _: Arc<TimedRequest>) {}

    fn stuck(&self, _: &TimedRequest) {}
}

const LONG: usize = 3_000_000;

/// Which of four streams end, and how: one is aborted by its client, one exceeds the request timeout, one is read slowly.
fn end_in_another_order(threads: usize) {
    let (reader, writer) = std::io::pipe().unwrap();
    let log = AccessLog::new(Sink::lines(writer.into(), false), "%r %s %B", String::new(), None, None).unwrap();
    let counters: &'static Counters = Box::leak(Box::default());
    let (go_on, wait) = channel();
    let wait = Mutex::new(wait);
    let options = Options {
        timeouts: Timeouts { request: SOON, ..patient() },
        timeout_handler: Some(Arc::new(Patience)),
        access_log: Some(Arc::new(log)),
        counters: Some(counters),
        ..Options::default()
    };
    let mut server = Server::new(threads, options, move |mut exchange| {
        let in_flight = exchange.hand_out();
        match &*path(&exchange) {
            "/slow" => answer(exchange, &[b's'; LONG]),
            "/abort" => {
                start(&mut exchange);
                exchange.write(b"begun").unwrap();
                // Nobody else may be there to read that the client leaves.
                while exchange.write(b"").is_ok() {
                    exchange.waiter().unwrap().wait(Interest::default(), SOON);
                }
                exchange.abort();
            }
            "/hang" => {
                wait.lock().unwrap().recv().unwrap();
                assert!(exchange.has_timed_out());
            }
            _ => answer(exchange, b"quick"),
        }
        drop(in_flight);
    });
    let mut client = Client::new(server.address);
    client.get(1, "/slow");
    assert_eq!(client.next().kind, 'H');
    let mut slow = 0;
    while slow < WINDOW {
        let frame = client.next();
        assert_eq!((frame.kind, frame.stream), ('D', 1));
        slow += frame.payload.len();
    }
    client.get(3, "/abort");
    assert_eq!((client.next().kind, client.next().payload), ('H', b"begun".to_vec()));
    assert_eq!(counters.counts().connections, 1);
    client.get(5, "/hang");
    client.send('R', 3, b"");
    // Its thread answers, since the application does not.
    assert_eq!(client.response(5).0, 504);
    go_on.send(()).unwrap();
    client.get(7, "/quick");
    assert_eq!(client.response(7), (200, b"quick".to_vec()));
    client.make_room(1, WINDOW);
    assert_eq!(client.content(1).len(), LONG - slow);
    server.reactor.stop(true, true);
    server.join();
    let mut lines: Vec<String> = BufReader::new(reader).lines().map_while(Result::ok).take(4).collect();
    assert_eq!(lines.last().unwrap(), &format!("GET /slow HTTP/1.1 200 {LONG}"), "it ended last");
    lines.sort();
    assert_eq!(lines[0], "GET /abort HTTP/1.1 200 5");
    assert!(lines[1].starts_with("GET /hang HTTP/1.1 504 "), "{lines:?}");
    assert_eq!(lines[2], "GET /quick HTTP/1.1 200 5");
    let counts = counters.counts();
    assert_eq!((counts.requests, counts.answers, counts.connections), (4, [0, 3, 0, 0, 1], 0));
    assert_eq!(counters.metrics.timed_out.load(Ordering::Relaxed), 1);
}

#[test]
fn streams_end_in_another_order_than_they_began_with_one_thread() {
    end_in_another_order(1);
}

#[test]
fn streams_end_in_another_order_than_they_began_with_several_threads() {
    end_in_another_order(4);
}

#[test]
fn a_thread_that_waits_for_a_body_reads_the_connection() {
    for threads in [1, 3] {
        let options = Options { streamed_bodies: streamed_uploads(), timeouts: patient(), ..Options::default() };
        let server = Server::new(threads, options, |mut exchange| match &*path(&exchange) {
            "/upload" => {
                let body = receive(&mut exchange);
                answer(exchange, &body);
            }
            _ => answer(exchange, b"quick"),
        });
        let mut client = Client::new(server.address);
        client.post(1, "/upload");
        client.send('D', 1, b"one ");
        // It was received: there is room for as much again.
        let room = client.frame().unwrap();
        assert_eq!((room.kind, room.payload), ('W', 4u32.to_be_bytes().to_vec()));
        client.get(3, "/quick");
        if threads > 1 {
            assert_eq!(client.response(3), (200, b"quick".to_vec()));
        }
        client.send('D', 1, b"two");
        client.send('E', 1, b"");
        assert_eq!(client.response(1), (200, b"one two".to_vec()));
        if threads == 1 {
            assert_eq!(client.response(3), (200, b"quick".to_vec()));
        }
        // A body that the application gets as a whole.
        client.post(5, "/other");
        client.send('D', 5, &[b'x'; 2 * WINDOW]);
        client.send('E', 5, b"");
        assert_eq!(client.response(5).0, 200);
    }
}

/// Several threads wait for bodies on one connection, and only one of them for its socket.
#[test]
fn all_threads_wait_for_bodies_of_one_connection() {
    let options = Options { streamed_bodies: streamed_uploads(), timeouts: patient(), ..Options::default() };
    let server = Server::new(3, options, |mut exchange| {
        let body = receive(&mut exchange);
        answer(exchange, &body);
    });
    let mut client = Client::new(server.address);
    for stream in [1, 3, 5] {
        client.post(stream, "/upload");
        client.send('D', stream, b"first ");
        assert_eq!(client.frame().unwrap().kind, 'W');
    }
    for stream in [3, 5, 1] {
        client.send('D', stream, b"last");
        client.send('E', stream, b"");
        assert_eq!(client.response(stream), (200, b"first last".to_vec()));
    }
}

#[test]
fn a_thread_waits_for_room_on_its_stream_only() {
    for threads in [1, 2] {
        let (done, finished) = channel();
        let done = Mutex::new(done);
        // Nothing goes to a file, so the application waits.
        let spool = Arc::new(poorhttp_reactor::Spool::new(
            poorhttp_reactor::TempDir(std::env::temp_dir()),
            0,
            0,
            Arc::default(),
        ));
        let options = Options { spool, timeouts: patient(), ..Options::default() };
        let server = Server::new(threads, options, move |mut exchange| match &*path(&exchange) {
            "/long" => {
                start(&mut exchange);
                let piece = vec![b'l'; LONG];
                let mut sent = exchange.finish(&[&piece]);
                while let Err(SendError::Full(taken)) = sent {
                    let time = exchange.send_timeout_left();
                    exchange.waiter().unwrap().wait(Interest::ROOM, time);
                    sent = match exchange.send_queued() {
                        Ok(()) => exchange.finish_from(&[&piece], taken),
                        Err(SendError::Full(_)) => Err(SendError::Full(taken)),
                        error => error,
                    };
                }
                sent.unwrap();
                done.lock().unwrap().send(()).unwrap();
            }
            _ => answer(exchange, b"quick"),
        });
        let mut client = Client::new(server.address);
        client.get(1, "/long");
        assert_eq!(client.next().kind, 'H');
        let mut got = 0;
        while got < WINDOW {
            got += client.next().payload.len();
        }
        client.get(3, "/quick");
        if threads > 1 {
            assert_eq!(client.response(3), (200, b"quick".to_vec()));
        }
        assert!(finished.try_recv().is_err(), "it waits");
        let mut order = Vec::new();
        client.make_room(1, WINDOW);
        while got < LONG || order.len() < if threads > 1 { 1 } else { 2 } {
            let frame = client.next();
            match frame.kind {
                'D' if frame.stream == 1 => {
                    got += frame.payload.len();
                    client.make_room(1, frame.payload.len());
                }
                'E' => order.push(frame.stream),
                _ => {}
            }
        }
        assert_eq!(got, LONG);
        finished.recv_timeout(HANG).unwrap();
    }
}

#[test]
fn a_body_that_does_not_come_is_refused_and_other_streams_go_on() {
    let options = Options { timeouts: Timeouts { body: SOON, ..patient() }, ..Options::default() };
    let server = Server::new(1, options, |exchange| answer(exchange, b"quick"));
    let mut client = Client::new(server.address);
    client.post(1, "/");
    assert_eq!(client.response(1).0, 408);
    client.send('h', 3, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: bad\r\n\r\n");
    assert_eq!(client.response(3).0, 400);
    client.get(5, "/");
    assert_eq!(client.response(5), (200, b"quick".to_vec()));
}

#[test]
fn a_stream_that_is_not_read_is_reset_and_other_streams_go_on() {
    let options = Options { timeouts: Timeouts { write: SOON, ..patient() }, ..Options::default() };
    let server = Server::new(1, options, |exchange| {
        let content = if path(&exchange) == "/long" { vec![b'l'; 2 * WINDOW] } else { b"quick".to_vec() };
        answer(exchange, &content);
    });
    let mut client = Client::new(server.address);
    client.get(1, "/long");
    while client.next().kind != 'R' {}
    client.get(3, "/");
    assert_eq!(client.response(3), (200, b"quick".to_vec()));
}

#[test]
fn a_stop_waits_for_the_streams() {
    for threads in [1, 2] {
        let (go_on, wait) = channel::<()>();
        let wait = Mutex::new(wait);
        let mut server = Server::new(threads, Options { timeouts: patient(), ..Options::default() }, move |exchange| {
            wait.lock().unwrap().recv().unwrap();
            answer(exchange, b"late");
        });
        let mut client = Client::new(server.address);
        client.get(1, "/");
        let reactor = server.reactor.clone();
        wait_for(|| reactor.counters().counts().requests == 1);
        reactor.stop(true, true);
        go_on.send(()).unwrap();
        let mut kinds = Vec::new();
        while let Some(frame) = client.frame() {
            kinds.push(frame.kind);
        }
        kinds.retain(|kind| *kind != 'G');
        assert_eq!(kinds, ['H', 'D', 'E']);
        server.join();
    }
}

#[test]
fn a_client_that_leaves_ends_its_streams() {
    for threads in [1, 2] {
        let (left, has_left) = channel();
        let left: Mutex<Sender<bool>> = Mutex::new(left);
        let options = Options { streamed_bodies: streamed_uploads(), timeouts: patient(), ..Options::default() };
        let server = Server::new(threads, options, move |mut exchange| {
            let mut room = [0; 10];
            let outcome = loop {
                match exchange.receive_body(&mut room) {
                    Ok(BodyPart::NothingYet(time)) => exchange.waiter().unwrap().wait(Interest::DATA, time),
                    other => break other,
                }
            };
            left.lock().unwrap().send(outcome.is_err()).unwrap();
        });
        let mut client = Client::new(server.address);
        client.post(1, "/upload");
        wait_for(|| server.reactor.counters().counts().requests == 1);
        drop(client);
        assert_eq!(has_left.recv_timeout(HANG), Ok(true));
        wait_for(|| server.reactor.counters().counts().connections == 0);
    }
}

/// No byte of the client wakes the thread that waits: another thread ends the stream.
#[test]
fn a_thread_that_waits_is_woken_by_the_end_of_its_stream() {
    let options = Options { streamed_bodies: streamed_uploads(), timeouts: patient(), ..Options::default() };
    let (ended, has_ended) = channel();
    let ended: Mutex<Sender<()>> = Mutex::new(ended);
    let server = Server::new(1, options, move |mut exchange| {
        assert!(matches!(exchange.receive_body(&mut [0; 10]), Ok(BodyPart::NothingYet(_))));
        let waiters = [(); 2].map(|()| exchange.waiter().unwrap());
        let threads = waiters.map(|waiter| thread::spawn(move || waiter.wait(Interest::DATA, timeouts::NEVER)));
        // Most likely both wait by then; if not, they find the end. On a busy machine each call takes milliseconds.
        (0..50).for_each(|_| thread::yield_now());
        exchange.cut();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        ended.lock().unwrap().send(()).unwrap();
    });
    let mut client = Client::new(server.address);
    client.post(1, "/upload");
    has_ended.recv_timeout(HANG).unwrap();
    assert_eq!(client.next().kind, 'R');
}

#[test]
fn an_unknown_frame_ends_the_connection_and_its_streams() {
    let (failed, has_failed) = channel();
    let failed: Mutex<Sender<()>> = Mutex::new(failed);
    let server = Server::new(1, Options { timeouts: patient(), ..Options::default() }, move |mut exchange| {
        start(&mut exchange);
        exchange.write(b"begun").unwrap();
        while exchange.write(b"").is_ok() {
            exchange.waiter().unwrap().wait(Interest::default(), SOON);
        }
        failed.lock().unwrap().send(()).unwrap();
    });
    let mut client = Client::new(server.address);
    client.get(1, "/");
    // A request that comes with it is not handed out.
    assert_eq!(client.next().kind, 'H');
    client.send('?', 0, b"");
    has_failed.recv_timeout(HANG).unwrap();
    let frames: Vec<_> = std::iter::from_fn(|| client.frame()).map(|frame| frame.kind).collect();
    assert!(frames.contains(&'G'), "{frames:?}");
}

/// A mode on the event loop of another library: nothing blocks, and a notice says when there is more to do.
#[test]
fn notices_of_data_room_and_the_end_of_a_client() {
    let (plain, plain_address) = listener(false);
    let (shared, shared_address) = listener(true);
    let options = Options {
        streamed_bodies: streamed_uploads(),
        external_loop: true,
        timeouts: patient(),
        multiplexing: Some(frames::multiplexing()),
        ..Options::default()
    };
    let reactor = Reactor::new(vec![plain, shared], options).unwrap();
    let next = || {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < HANG);
            if let Some(exchange) = reactor.poll_next() {
                return exchange;
            }
        }
    };
    let notice = |exchange: &mut Exchange, interest| {
        let noticed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&noticed);
        exchange.notify(interest, move || flag.store(true, Ordering::Release));
        noticed
    };
    let until = |noticed: &AtomicBool| {
        wait_for(|| {
            assert!(reactor.poll_next().is_none());
            noticed.load(Ordering::Acquire)
        });
    };
    let mut plain = TcpStream::connect(plain_address).unwrap();
    plain.write_all(b"POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    let mut client = Client::new(shared_address);
    let mut room = [0; 100];
    for number in 0..2 {
        if number == 1 {
            client.post(1, "/upload");
        }
        let mut exchange = next();
        assert!(matches!(exchange.receive_body(&mut room), Ok(BodyPart::NothingYet(_))));
        let noticed = notice(&mut exchange, Interest::DATA);
        assert!(reactor.poll_next().is_none() && !noticed.load(Ordering::Acquire));
        match number {
            0 => plain.write_all(b"4\r\ndata\r\n").unwrap(),
            _ => client.send('D', 1, b"data"),
        }
        until(&noticed);
        assert_eq!(exchange.receive_body(&mut room).unwrap(), BodyPart::Content(4));
        assert!(matches!(exchange.receive_body(&mut room), Ok(BodyPart::NothingYet(_))));
        start(&mut exchange);
        // The client ends.
        let noticed = notice(&mut exchange, Interest::default());
        assert!(reactor.poll_next().is_none() && !noticed.load(Ordering::Acquire));
        match number {
            0 => plain.shutdown(std::net::Shutdown::Both).unwrap(),
            _ => client.send('R', 1, b""),
        }
        until(&noticed);
        assert!(exchange.receive_body(&mut room).is_err());
    }
    reactor.stop(false, true);
}
