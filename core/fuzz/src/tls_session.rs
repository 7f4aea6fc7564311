//! Target `tls_session`: sessions of TLS, whose client is that of rustls, or sends anything.

use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};

use poorhttp_tls::rustls::pki_types::pem::PemObject;
use poorhttp_tls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use poorhttp_tls::rustls::{ClientConfig, ClientConnection, RootCertStore, version};
use poorhttp_tls::session::{LARGEST_REST, OVERHEAD, RECORD, Session};
use poorhttp_tls::{Certificate, Pem, Settings, TlsConfig, Version, self_signed};
use rcgen::{CertificateParams, KeyPair};

/// Bytes of a step: what happens, and a number.
pub(crate) const STEP: usize = 3;
/// Bytes of content in one step.
const MOST: usize = 40_000;
/// Bytes of content, and on a wire: more only take longer.
const MOST_OF_ALL: usize = 200_000;
/// New keys of a client: of many in a row, rustls takes the client for an attacker.
const MOST_KEYS: usize = 16;
/// Bytes of an alert, encrypted or not.
const MOST_OF_ALERT: usize = 31;
/// Type of a record of the handshake.
const HANDSHAKE: u8 = 22;

/// A server without and with certificates of clients, and for each of them a client with TLS 1.2 and one with 1.3.
struct Parties {
    servers: [TlsConfig; 2],
    clients: [[Arc<ClientConfig>; 2]; 2],
}

static PARTIES: LazyLock<Parties> = LazyLock::new(|| {
    let made = self_signed(vec!["localhost".into()], 2026).expect("a certificate");
    let client_key = KeyPair::generate().expect("a key");
    let client_certificate = CertificateParams::new(["client".to_owned()])
        .and_then(|params| params.self_signed(&client_key))
        .expect("a certificate");
    let pem = |text: &str| Pem { name: "made".into(), bytes: text.as_bytes().to_vec().into() };
    let certificate = CertificateDer::from_pem_slice(made.certificate.as_bytes()).expect("it is PEM");
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("it is a certificate");
    let roots = Arc::new(roots);
    let server = |client_ca: Option<Pem>| {
        let (certificate, key) = (pem(&made.certificate), pem(&made.key));
        let certificates = vec![Certificate { certificate, key, ocsp: None }];
        let min_version = Version::Tls12;
        let settings = Settings {
            certificates,
            client_ca,
            client_auth_required: false,
            min_version,
            session_timeout: 300,
            kernel: true,
            http2: false,
        };
        TlsConfig::new(&settings).expect("the settings are good")
    };
    let client = |version, has_certificate| {
        let builder =
            ClientConfig::builder_with_protocol_versions(&[version]).with_root_certificates(Arc::clone(&roots));
        Arc::new(if has_certificate {
            let key = PrivateKeyDer::from_pem_slice(client_key.serialize_pem().as_bytes()).expect("it is PEM");
            builder.with_client_auth_cert(vec![client_certificate.der().clone()], key).expect("they fit")
        } else {
            builder.with_no_client_auth()
        })
    };
    let clients = |has_certificate| [&version::TLS12, &version::TLS13].map(|version| client(version, has_certificate));
    Parties {
        servers: [server(None), server(Some(pem(&client_certificate.pem())))],
        clients: [clients(false), clients(true)],
    }
});

/// Bytes on their way from one side to the other.
#[derive(Default)]
struct Wire {
    bytes: Vec<u8>,
    /// They are not what was sent.
    is_changed: bool,
}

/// A session, its client, and what is between them.
struct Pair {
    session: Session,
    client: ClientConnection,
    to_server: Wire,
    to_client: Wire,
    /// Content that the client has sent, and that the session has received; and the other way round.
    asked: Vec<u8>,
    heard: Vec<u8>,
    answered: Vec<u8>,
    seen: Vec<u8>,
    keys: usize,
    client_has_failed: bool,
    client_has_closed: bool,
    server_has_closed: bool,
}

/// Plays the steps of an input: both sides send content, and records are delivered in pieces, changed, left out, repeated, or made
/// up. The first byte selects the version and whether there are certificates of clients; each step is a byte for what happens and
/// two with a number.
pub fn tls_session(bytes: &[u8]) {
    let Some((&kind, script)) = bytes.split_first() else { return };
    let (version, with_certificate) = (usize::from(kind & 1), usize::from(kind >> 1 & 1));
    let client = Arc::clone(&PARTIES.clients[with_certificate][version]);
    let name = ServerName::try_from("localhost").expect("a name");
    let mut pair = Pair {
        session: Session::new(PARTIES.servers[with_certificate].current()).expect("a session"),
        client: ClientConnection::new(client, name).expect("a client"),
        to_server: Wire::default(),
        to_client: Wire::default(),
        asked: Vec::new(),
        heard: Vec::new(),
        answered: Vec::new(),
        seen: Vec::new(),
        keys: 0,
        client_has_failed: false,
        client_has_closed: false,
        server_has_closed: false,
    };
    pair.collect();
    let mut rest = script;
    while let Some((&[what, low, high], behind)) = rest.split_first_chunk::<STEP>() {
        rest = pair.step(what, usize::from(u16::from_le_bytes([low, high])), behind);
    }
    pair.settle();
    pair.check_end();
}

impl Pair {
    /// Plays one step; returns the input behind it.
    fn step<'a>(&mut self, what: u8, number: usize, behind: &'a [u8]) -> &'a [u8] {
        // The largest number is all there is.
        let within = |length: usize| if number == usize::from(u16::MAX) { length } else { number % (length + 1) };
        let wire = &mut self.to_server;
        let at = within(wire.bytes.len());
        match what % 12 {
            0 => self.ask(number % MOST),
            1 => self.answer(number % MOST),
            2 => self.deliver_to_server(at),
            3 => self.deliver_to_client(within(self.to_client.bytes.len())),
            4 if at > 0 => {
                wire.bytes[at - 1] ^= 1 << (number % 8);
                wire.is_changed = true;
            }
            5 => {
                let (made_up, behind) = behind.split_at(number.min(behind.len()));
                wire.bytes.extend_from_slice(made_up);
                wire.is_changed |= !made_up.is_empty();
                return behind;
            }
            6 => {
                wire.is_changed |= wire.bytes.drain(..at).count() > 0;
            }
            7 if (1..MOST_OF_ALL).contains(&at) => {
                let again = wire.bytes[..at].to_vec();
                wire.is_changed = true;
                wire.bytes.extend_from_slice(&again);
                wire.bytes.truncate(MOST_OF_ALL);
            }
            8 if !self.client_has_failed => {
                self.client.send_close_notify();
                // Before the end of the handshake it is an alert that nobody is protected from.
                self.client_has_closed = true;
                self.to_server.is_changed |= self.client.is_handshaking();
                self.collect();
            }
            9 => {
                self.server_has_closed |= !self.session.is_handshaking();
                self.session.close();
                self.collect();
            }
            // TLS 1.2 has no such message.
            10 if self.keys < MOST_KEYS && !self.client.is_handshaking() => {
                self.keys += usize::from(self.client.refresh_traffic_keys().is_ok());
                self.collect();
            }
            11 => self.settle(),
            _ => {}
        }
        behind
    }

    /// The client sends content.
    fn ask(&mut self, length: usize) {
        if self.client_has_closed || self.client_has_failed {
            return;
        }
        let start = self.asked.len();
        let length = length.min(MOST_OF_ALL.saturating_sub(start));
        let content: Vec<u8> = (start..start + length).map(|at| (at % 251) as u8).collect();
        let taken = self.client.writer().write(&content).expect("it buffers");
        self.asked.extend_from_slice(&content[..taken]);
        self.collect();
    }

    /// The session sends content.
    fn answer(&mut self, length: usize) {
        let start = self.answered.len();
        let length = length.min(MOST_OF_ALL.saturating_sub(start));
        // Its caller sends nothing after the alert.
        if length == 0 || self.server_has_closed {
            return;
        }
        let content: Vec<u8> = (start..start + length).map(|at| (at % 241) as u8).collect();
        let mut records = vec![0; length + (length / RECORD + 1) * OVERHEAD];
        match self.session.encrypt(&content, &mut records) {
            Ok(length) => {
                // Content is sent neither before the end of the handshake nor after a failure.
                assert!(!self.session.is_handshaking() && !self.session.has_failed());
                // What the session has to send itself comes first.
                self.collect();
                self.to_client.bytes.extend_from_slice(&records[..length]);
                self.answered.extend_from_slice(&content);
            }
            Err(_) => {
                assert!(self.session.is_handshaking() || self.session.has_failed());
                self.collect();
            }
        }
    }

    fn deliver_to_server(&mut self, length: usize) {
        let arrived: Vec<u8> = self.to_server.bytes.drain(..length).collect();
        // Debug builds of rustls panic if an error follows the alert that closes a session, as two alerts would be sent.
        if arrived.is_empty() || self.server_has_closed && self.to_server.is_changed {
            return;
        }
        let mut buffer = vec![0; LARGEST_REST];
        let begun = self.session.begin(&mut buffer);
        // Asking for it changes nothing.
        assert_eq!(self.session.begin(&mut buffer), begun);
        // What waits for its rest is bounded.
        assert!(begun < LARGEST_REST);
        buffer.truncate(begun);
        buffer.extend_from_slice(&arrived);
        let (had_failed, heard) = (self.session.has_failed(), &mut self.heard);
        let before = heard.len();
        let outcome = self.session.receive(&mut buffer, |content| heard.extend_from_slice(content));
        // A session that has failed stays so, and gives no content.
        assert_eq!(outcome.is_err(), self.session.has_failed());
        assert!(!had_failed || self.session.has_failed() && self.heard.len() == before);
        // Only bytes that the client has sent are received, in their order, each once.
        assert!(self.asked.starts_with(&self.heard));
        // Nothing that comes in a handshake is content.
        assert!(self.heard.is_empty() || !self.session.is_handshaking());
        if outcome.is_err() && !had_failed && self.session.is_handshaking() {
            let control = self.session.take_control();
            // A handshake that fails is answered by at most one alert, perhaps behind the answer to a ClientHello.
            assert!(control.len() <= MOST_OF_ALERT || control[0] == HANDSHAKE, "{control:?}");
            self.to_client.bytes.extend_from_slice(&control);
        }
        // Without a change nothing fails.
        assert!(outcome.is_ok() || self.to_server.is_changed || self.client_has_failed, "{outcome:?}");
        self.collect();
    }

    fn deliver_to_client(&mut self, length: usize) {
        let arrived: Vec<u8> = self.to_client.bytes.drain(..length).collect();
        let mut arrived = &arrived[..];
        if self.client_has_closed && self.to_server.is_changed {
            return;
        }
        while !arrived.is_empty() && !self.client_has_failed {
            if self.client.read_tls(&mut arrived).is_err() || self.client.process_new_packets().is_err() {
                self.client_has_failed = true;
            }
            let mut content = [0; 4096];
            while let Ok(length @ 1..) = self.client.reader().read(&mut content) {
                self.seen.extend_from_slice(&content[..length]);
            }
        }
        assert!(self.answered.starts_with(&self.seen));
        // The client understands everything that a session sends, unless it got something else.
        assert!(!self.client_has_failed || self.to_server.is_changed);
        self.collect();
    }

    /// Puts on the wires what both sides have to send.
    fn collect(&mut self) {
        let control = self.session.take_control();
        assert!(control.len() < 32 << 10, "{} bytes", control.len());
        self.to_client.bytes.extend_from_slice(&control);
        while self.client.wants_write() {
            self.client.write_tls(&mut self.to_server.bytes).expect("memory takes everything");
        }
    }

    /// Delivers everything, until there is nothing more.
    fn settle(&mut self) {
        while !self.to_server.bytes.is_empty() || !self.to_client.bytes.is_empty() {
            self.deliver_to_server(self.to_server.bytes.len());
            self.deliver_to_client(self.to_client.bytes.len());
        }
    }

    /// What holds when everything has arrived as it was sent.
    fn check_end(&mut self) {
        if self.to_server.is_changed {
            return;
        }
        assert!(!self.session.is_handshaking() && !self.client.is_handshaking());
        assert_eq!(self.session.is_closed(), self.client_has_closed);
        assert!(self.heard == self.asked);
        assert!(self.seen == self.answered || self.server_has_closed);
        // The client is told of the end.
        assert!(!self.server_has_closed || matches!(self.client.reader().read(&mut [0]), Ok(0)));
        assert!(self.session.info().protocol.is_some());
    }
}

/// Bytes that a client sends first.
pub(crate) fn client_hello(version: usize) -> Vec<u8> {
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientConnection::new(Arc::clone(&PARTIES.clients[0][version]), name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("memory takes everything");
    hello
}
