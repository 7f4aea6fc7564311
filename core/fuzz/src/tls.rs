//! Target `tls`: what a server's TLS session makes of any bytes, and of a client whose bytes are split or changed.

use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, OnceLock};

use poorhttp_tls::rustls::pki_types::pem::PemObject;
use poorhttp_tls::rustls::pki_types::{CertificateDer, ServerName};
use poorhttp_tls::rustls::{ClientConfig, ClientConnection, RootCertStore, version};
use poorhttp_tls::session::{LARGEST_REST, OVERHEAD, RECORD, Session};
use poorhttp_tls::{Certificate, Pem, Settings, TlsConfig, Version, self_signed};

use crate::requests::pieces;

/// Content that a client sends.
const REQUEST: &[u8] = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody";

/// The server's configuration, and those of clients of TLS 1.2 and 1.3.
fn configs() -> &'static (TlsConfig, [Arc<ClientConfig>; 2]) {
    static CONFIGS: OnceLock<(TlsConfig, [Arc<ClientConfig>; 2])> = OnceLock::new();
    CONFIGS.get_or_init(|| {
        let made = self_signed(vec!["localhost".into()], 2026).unwrap();
        let pem = |bytes: &[u8]| Pem { name: "made".into(), bytes: bytes.to_vec().into() };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap()).unwrap();
        let certificate =
            Certificate { certificate: pem(made.certificate.as_bytes()), key: pem(made.key.as_bytes()), ocsp: None };
        let settings = Settings {
            certificates: vec![certificate],
            client_ca: None,
            client_auth_required: false,
            min_version: Version::Tls12,
            session_timeout: 300,
            kernel: true,
        };
        let clients = [&version::TLS12, &version::TLS13].map(|version| {
            let builder = ClientConfig::builder_with_protocol_versions(&[version]);
            Arc::new(builder.with_root_certificates(roots.clone()).with_no_client_auth())
        });
        (TlsConfig::new(&settings).unwrap(), clients)
    })
}

/// The server's side: a session and its buffer.
struct Server {
    session: Session,
    buffer: Vec<u8>,
    content: Vec<u8>,
}

impl Default for Server {
    fn default() -> Self {
        let session = Session::new(configs().0.current()).unwrap();
        Server { session, buffer: vec![0; LARGEST_REST + (64 << 10)], content: Vec::new() }
    }
}

impl Server {
    /// Receives a piece. `false`: the session has failed.
    fn receive(&mut self, piece: &[u8]) -> bool {
        let begun = self.session.begin(&mut self.buffer);
        self.buffer[begun..begun + piece.len()].copy_from_slice(piece);
        let content = &mut self.content;
        let input = &mut self.buffer[..begun + piece.len()];
        self.session.receive(input, |bytes| content.extend_from_slice(bytes)).is_ok()
    }

    /// The records of content.
    fn encrypt(&mut self, content: &[u8]) -> Vec<u8> {
        let mut records = vec![0; content.len() + (content.len() / RECORD + 1) * OVERHEAD];
        let length = self.session.encrypt(content, &mut records).unwrap();
        let mut all = self.session.take_control();
        all.extend_from_slice(&records[..length]);
        all
    }
}

/// A client of TLS 1.2, or 1.3.
fn client(is_new: bool) -> ClientConnection {
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(Arc::clone(&configs().1[usize::from(is_new)]), name).unwrap()
}

/// What a client has to send.
fn sent(client: &mut ClientConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut records).unwrap();
    }
    records
}

/// What a client reads in these records.
fn read(client: &mut ClientConnection, mut records: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    while !records.is_empty() {
        client.read_tls(&mut records).unwrap();
        client.process_new_packets().unwrap();
        let mut part = [0; 4096];
        loop {
            match client.reader().read(&mut part) {
                Ok(0) => break,
                Ok(length) => content.extend_from_slice(&part[..length]),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
    }
    content
}

/// The first bit of the first byte says whether the client speaks TLS 1.3; the next two, which byte of the client's is changed,
/// if any is; then come four sizes of pieces, and garbage.
pub fn tls(bytes: &[u8]) {
    let Some((&[first, high, low, sizes @ ..], garbage)) = bytes.split_first_chunk::<7>() else { return };
    garbage_is_refused(garbage, &sizes);
    let changed = match usize::from(high & 0x7f) << 8 | usize::from(low) {
        0 => None,
        at => Some(at - 1),
    };
    a_client_is_understood(first & 1 == 1, &sizes, changed, high >> 7 | 1 << (first >> 5));
}

/// Bytes that come in no handshake are never content, and are answered by at most one alert.
fn garbage_is_refused(garbage: &[u8], sizes: &[u8; 4]) {
    let mut server = Server::default();
    for piece in pieces(garbage, sizes) {
        if !server.receive(piece) {
            let alert = server.session.take_control();
            // Behind a ClientHello that was answered, there may be more.
            assert!(server.session.has_failed() && (alert.len() <= 7 || alert[0] == 22), "{alert:?}");
            assert!(!server.receive(piece), "it goes on");
            break;
        }
    }
    assert!(server.content.is_empty() && server.session.is_handshaking());
}

/// However its bytes are split, a client is understood; if one of them is changed, it never says something else.
fn a_client_is_understood(is_new: bool, sizes: &[u8; 4], changed: Option<usize>, mask: u8) {
    let (mut client, mut server) = (client(is_new), Server::default());
    client.writer().write_all(REQUEST).unwrap();
    let mut offset = 0;
    // Three flights at most.
    for _ in 0..4 {
        let mut records = sent(&mut client);
        if let Some(byte) = changed.and_then(|at| at.checked_sub(offset)).and_then(|at| records.get_mut(at)) {
            *byte ^= mask;
        }
        offset += records.len();
        for piece in pieces(&records, sizes) {
            if !server.receive(piece) {
                assert!(changed.is_some(), "a client is refused");
                assert!(REQUEST.starts_with(&server.content));
                return;
            }
        }
        let answer = server.session.take_control();
        if changed.is_none() {
            assert!(read(&mut client, &answer).is_empty());
        } else {
            let mut answer = &answer[..];
            while !answer.is_empty() {
                if client.read_tls(&mut answer).is_err() || client.process_new_packets().is_err() {
                    assert!(server.content.is_empty() || REQUEST.starts_with(&server.content));
                    return;
                }
            }
        }
    }
    assert!(REQUEST.starts_with(&server.content));
    if changed.is_none() {
        assert!(server.content == REQUEST && !server.session.is_handshaking());
        let answer: Vec<u8> =
            (0..=255).cycle().take(sizes.iter().map(|&size| usize::from(size) << 6).sum::<usize>() + 1).collect();
        let mut records = server.encrypt(&answer);
        server.session.close();
        records.extend_from_slice(&server.session.take_control());
        assert!(read(&mut client, &records) == answer);
        // The end is announced.
        assert!(matches!(client.reader().read(&mut [0]), Ok(0)));
    }
}
