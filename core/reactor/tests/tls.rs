//! A reactor whose clients speak TLS, over real sockets.
//!
//! Nothing here is decided by the time it takes: [`HANG`] only ends a test that would never end.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod starting;
mod timeouts;

use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use poorhttp_http::{Limits, Protocol};
use poorhttp_interface::tls::Certificates;
use poorhttp_reactor::{Body, Exchange, Listener, Options, Reactor, SendError, TimedRequest, TimeoutHandler, Timeouts};
use poorhttp_tls::rustls::pki_types::pem::PemObject;
use poorhttp_tls::rustls::pki_types::{CertificateDer, ServerName};
use poorhttp_tls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion, version,
};
use poorhttp_tls::{Certificate, Pem, Settings, TlsConfig, Version, self_signed};
use timeouts::{HANG, SOON, patient};

const VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

/// A server with a certificate for localhost, and what trusts it.
struct Server {
    reactor: Reactor,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
    roots: Arc<RootCertStore>,
}

impl Server {
    fn new(options: Options, handler: impl Fn(Exchange) + Send + Sync + 'static) -> Self {
        let made = self_signed(vec!["localhost".into()], 2026).unwrap();
        let pem = |name: &str, bytes: &[u8]| Pem { name: name.into(), bytes: bytes.to_vec().into() };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap()).unwrap();
        let certificate = Certificate {
            certificate: pem("certificate", made.certificate.as_bytes()),
            key: pem("key", made.key.as_bytes()),
            ocsp: None,
        };
        let settings = Settings {
            certificates: vec![certificate],
            client_ca: None,
            client_auth_required: false,
            min_version: Version::Tls12,
            session_timeout: 300,
            kernel: true,
            http2: false,
        };
        let config: Arc<dyn Certificates> = Arc::new(TlsConfig::new(&settings).unwrap());
        let tls = Some(config);
        let (socket, address) = starting::listener();
        let streams = poorhttp_reactor::Negotiation::Never;
        let listener = Listener { socket: socket.into(), protocol: Protocol::Http, proxied: false, tls, streams };
        let reactor = Reactor::new(vec![listener], options).unwrap();
        let threads = starting::threads(&reactor, 2, handler);
        Server { threads, reactor, address, roots: Arc::new(roots) }
    }

    fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.set_write_timeout(Some(HANG)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    fn session(&self, version: &'static SupportedProtocolVersion) -> ClientConnection {
        let config = ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap()
    }

    fn connect(&self, version: &'static SupportedProtocolVersion) -> StreamOwned<ClientConnection, TcpStream> {
        StreamOwned::new(self.session(version), self.tcp())
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

/// Answers with the target and a body of so many bytes as its number says; what was sent, with its length.
fn answer(mut exchange: Exchange) {
    let target = exchange.head().map(|(head, bytes)| head.target.of(bytes).to_vec()).unwrap();
    let body = match exchange.take_body() {
        Body::Empty => 0,
        Body::Memory(bytes) => bytes.iter().filter(|&&byte| byte == b'v').count() as u64,
        Body::File(_, length) => length,
    };
    let number = std::str::from_utf8(&target[1..]).unwrap().parse::<usize>().unwrap_or(0);
    exchange.start::<SendError>("200 OK", |_| Ok(())).unwrap();
    let content = if body > 0 { body.to_string().into_bytes() } else { pattern(number) };
    let _ = exchange.finish(&[&content]);
}

fn pattern(length: usize) -> Vec<u8> {
    (0..=250u8).cycle().take(length).collect()
}

/// Reads a response with Content-Length: its head and its body.
fn read_answer(stream: &mut impl Read) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (head, body)
}

fn get(number: usize) -> String {
    format!("GET /{number} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn requests_are_answered_on_a_kept_connection() {
    let server = Server::new(Options { timeouts: patient(), ..Options::default() }, answer);
    for version in VERSIONS {
        let mut client = server.connect(version);
        for length in [0, 1, 1_500, 16_384, 16_385, 100_000] {
            client.write_all(get(length).as_bytes()).unwrap();
            assert!(read_answer(&mut client).1 == pattern(length), "{length}");
        }
        // Pipelined.
        client.write_all([get(1_500), get(3), get(70_000)].concat().as_bytes()).unwrap();
        for length in [1_500, 3, 70_000] {
            assert!(read_answer(&mut client).1 == pattern(length), "{length}");
        }
    }
}

#[test]
fn every_byte_of_the_client_may_come_alone() {
    let server = Server::new(Options { timeouts: patient(), ..Options::default() }, answer);
    for version in VERSIONS {
        let (mut session, mut stream) = (server.session(version), server.tcp());
        session.writer().write_all([get(5), get(20_000)].concat().as_bytes()).unwrap();
        let mut answers = Vec::new();
        while answers.iter().filter(|&&byte| byte == b'H').count() < 2 || answers.len() < 20_005 {
            let mut records = Vec::new();
            while session.wants_write() {
                session.write_tls(&mut records).unwrap();
            }
            for byte in records {
                stream.write_all(&[byte]).unwrap();
            }
            if session.read_tls(&mut stream).unwrap() == 0 {
                panic!("the server has ended the connection");
            }
            session.process_new_packets().unwrap();
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = session.reader().read(&mut part) {
                answers.extend_from_slice(&part[..length]);
            }
        }
    }
}

#[test]
fn a_slow_reader_gets_everything_and_then_the_end() {
    let big = 12 << 20;
    let server = Server::new(Options { timeouts: patient(), ..Options::default() }, answer);
    for version in VERSIONS {
        let mut client = server.connect(version);
        let request = format!("GET /{big} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        // The server can send no more long before that.
        thread::sleep(Duration::from_millis(200));
        let (head, body) = read_answer(&mut client);
        assert!(head.contains("Connection: close") && body == pattern(big));
        // rustls reports an end without the alert as an error.
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    }
}

#[test]
fn files_are_sent() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&pattern(3_000_000)).unwrap();
    let server = Server::new(Options { timeouts: patient(), ..Options::default() }, move |mut exchange| {
        let mut copy = file.try_clone().unwrap();
        copy.seek(SeekFrom::Start(0)).unwrap();
        exchange.start::<SendError>("200 OK", |_| Ok(())).unwrap();
        let _ = exchange.send_file(copy.into(), 5, 2_999_990);
    });
    for version in VERSIONS {
        let mut client = server.connect(version);
        for _ in 0..2 {
            client.write_all(get(0).as_bytes()).unwrap();
            assert!(read_answer(&mut client).1 == pattern(3_000_000)[5..2_999_995]);
        }
    }
}

#[test]
fn bodies_are_received() {
    let limits = Limits { body: 1 << 30, ..Limits::default() };
    let server = Server::new(Options { timeouts: patient(), limits, ..Options::default() }, answer);
    for version in VERSIONS {
        let mut client = server.connect(version);
        for length in [1, 20_000, 200_000, 5_000_000] {
            let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n");
            client.write_all(head.as_bytes()).unwrap();
            client.write_all(&vec![b'v'; length]).unwrap();
            assert_eq!(read_answer(&mut client).1, length.to_string().into_bytes());
        }
    }
}

#[test]
fn pieces_of_a_response_are_sent_as_they_come() {
    let server = Server::new(Options { timeouts: patient(), ..Options::default() }, |mut exchange| {
        exchange.start::<SendError>("200 OK", |_| Ok(())).unwrap();
        for piece in 0..1_000 {
            exchange.write(format!("{piece} ").as_bytes()).unwrap();
        }
        exchange.end().unwrap();
    });
    let mut client = server.connect(&version::TLS13);
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    let expected: String = (0..1_000).map(|piece| format!("{piece} ")).collect();
    assert!(all.ends_with(&expected) && all.starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn an_answer_that_is_cut_short_does_not_look_complete() {
    let server = Server::new(Options { timeouts: patient(), ..Options::default() }, |mut exchange| {
        exchange.start::<SendError>("200 OK", |_| Ok(())).unwrap();
        exchange.write(b"a part").unwrap();
        exchange.abort();
    });
    for version in VERSIONS {
        let mut client = server.connect(version);
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let error = client.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{error}");
    }
}

#[test]
fn plain_http_is_told_so() {
    let server = Server::new(Options { timeouts: patient(), ..Options::default() }, answer);
    let mut client = server.tcp();
    client.write_all(get(0).as_bytes()).unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).unwrap();
    assert!(all.starts_with("HTTP/1.1 400 ") && all.contains("plain HTTP was sent to an HTTPS port"), "{all}");
}

#[test]
fn nothing_that_is_not_tls_is_answered_but_by_an_alert() {
    let server = Server::new(Options { timeouts: patient(), ..Options::default() }, answer);
    for garbage in [
        &b"\0\0\0\0\0\0\0\0"[..],
        b"\x16\x03\x01\x00\x02ab",
        b"\x17\x03\x03\x00\x02ab",
        b"\x80\x2e\x01\x03\x01",
        b"\xff",
    ] {
        let mut client = server.tcp();
        client.write_all(garbage).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut all = Vec::new();
        // An alert, if the record could be read.
        let _ = client.read_to_end(&mut all);
        assert!(all.is_empty() || (all[0] == 21 && all.len() == 7), "{all:?}");
    }
    // Others are served as before.
    let mut client = server.connect(&version::TLS13);
    client.write_all(get(7).as_bytes()).unwrap();
    assert!(read_answer(&mut client).1 == pattern(7));
}

#[test]
fn a_handshake_that_is_cut_at_any_byte_harms_nobody() {
    let server = Server::new(Options { timeouts: patient(), ..Options::default() }, answer);
    for version in VERSIONS {
        // The client's first flight, and its second one for a server that has answered.
        let mut hello = Vec::new();
        server.session(version).write_tls(&mut hello).unwrap();
        for length in 0..hello.len() {
            let mut client = server.tcp();
            client.write_all(&hello[..length]).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            let mut all = Vec::new();
            client.read_to_end(&mut all).unwrap();
            assert!(all.is_empty(), "{length}: {all:?}");
        }
        let (mut session, mut client) = (server.session(version), server.tcp());
        while session.is_handshaking() {
            while session.wants_write() {
                session.write_tls(&mut client).unwrap();
            }
            session.read_tls(&mut client).unwrap();
            session.process_new_packets().unwrap();
        }
        let mut finished = Vec::new();
        session.write_tls(&mut finished).unwrap();
        drop((finished, session, client));
    }
    let mut client = server.connect(&version::TLS13);
    client.write_all(get(7).as_bytes()).unwrap();
    assert!(read_answer(&mut client).1 == pattern(7));
}

/// A request timeout that interrupts nothing.
#[derive(Debug)]
struct NoInterrupts;

impl TimeoutHandler for NoInterrupts {
    fn overdue(&self, _: Arc<TimedRequest>) {}

    fn stuck(&self, _: &TimedRequest) {}
}

#[test]
fn refusals_ask_for_tls_if_they_are_encrypted() {
    let options = Options {
        timeouts: Timeouts { request: SOON, ..patient() },
        timeout_handler: Some(Arc::new(NoInterrupts)),
        hsts: "max-age=60".into(),
        ..Options::default()
    };
    let (release, released) = channel();
    let released = Mutex::new(released);
    let server = Server::new(options, move |mut exchange| {
        let _in_flight = exchange.hand_out();
        released.lock().unwrap().recv().unwrap();
    });
    for (request, status) in [("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 504)] {
        let mut client = server.connect(&version::TLS13);
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert_eq!(answer.matches("Strict-Transport-Security: max-age=60\r\n").count(), 1, "{answer}");
    }
    release.send(()).unwrap();
    // A browser must ignore it, and a program in between could forge it.
    let (mut plain, mut answer) = (server.tcp(), String::new());
    plain.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    plain.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && !answer.contains("Strict-Transport-Security"), "{answer}");
}

#[test]
fn a_handshake_has_its_time() {
    let timeouts = Timeouts { header: 50, ..patient() };
    let server = Server::new(Options { timeouts, ..Options::default() }, answer);
    let mut client = server.tcp();
    client.write_all(b"\x16\x03\x01").unwrap();
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn a_stop_waits_for_no_handshake() {
    let mut server =
        Server::new(Options { timeouts: Timeouts { graceful: 100, ..patient() }, ..Options::default() }, answer);
    let mut client = server.tcp();
    client.write_all(b"\x16\x03\x01").unwrap();
    let mut kept = server.connect(&version::TLS13);
    kept.write_all(get(7).as_bytes()).unwrap();
    assert!(read_answer(&mut kept).1 == pattern(7));
    server.reactor.stop(true, true);
    server.threads.drain(..).for_each(|thread| thread.join().unwrap());
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(kept.read(&mut [0; 8]).unwrap(), 0);
}
