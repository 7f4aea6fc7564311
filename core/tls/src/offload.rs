//! Kernel TLS: gives the kernel the keys with which it encrypts what is sent, and decrypts what is received.
//!
//! Only sending is worth it: the kernel encrypts pages of files where they lie. Receiving stays here, because a kernel that
//! receives gives up at the first message that is not content.

use poorhttp_interface::kernel::{KernelKeys, Records};
use rustls::crypto::cipher::{AeadKey, InboundOpaqueMessage, Iv, MessageDecrypter};
use rustls::kernel::KernelConnection;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::{AlertDescription, ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion, SupportedCipherSuite};

/// Bytes of the header of a record.
const HEADER: usize = 5;
/// Bytes of the largest record behind its header (RFC 5246 section 6.2.3).
const LARGEST: usize = (16 << 10) + 2048;

/// The kind of records of a cipher suite, if a kernel may know it.
pub(crate) fn records_of(suite: SupportedCipherSuite) -> Option<Records> {
    use rustls::CipherSuite as Suite;
    Some(match suite.suite() {
        Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 | Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => {
            Records::Tls12Aes128
        }
        Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 | Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => {
            Records::Tls12Aes256
        }
        Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 | Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
            Records::Tls12Chacha20
        }
        Suite::TLS13_AES_128_GCM_SHA256 => Records::Tls13Aes128,
        Suite::TLS13_AES_256_GCM_SHA384 => Records::Tls13Aes256,
        Suite::TLS13_CHACHA20_POLY1305_SHA256 => Records::Tls13Chacha20,
        _ => return None,
    })
}

/// The receiving side of a session whose sending side is the kernel's.
pub(crate) struct Receiver {
    decrypter: Box<dyn MessageDecrypter>,
    /// Number of the next record.
    sequence: u64,
    /// Makes the keys that follow.
    keys: KernelConnection<ServerConnectionData>,
}

/// Parts a session, which has sent everything that it had to send.
pub(crate) fn offload(connection: UnbufferedServerConnection) -> Result<(KernelKeys, Receiver), Error> {
    let (secrets, keys) = connection.dangerous_into_kernel_connection()?;
    let suite = keys.negotiated_cipher_suite();
    let (sequence, sending) = secrets.tx;
    let (key, iv) = parts(sending)?;
    let iv = iv.as_ref().try_into().map_err(|_| Error::EncryptError)?;
    let kernel = records_of(suite).ok_or(Error::EncryptError)?.keys(key.as_ref(), iv, sequence);
    let (sequence, receiving) = secrets.rx;
    Ok((kernel, Receiver { decrypter: decrypter(suite, receiving)?, sequence, keys }))
}

fn parts(secrets: ConnectionTrafficSecrets) -> Result<(AeadKey, Iv), Error> {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => Ok((key, iv)),
        _ => Err(Error::General("a cipher that the kernel does not have".into())),
    }
}

fn decrypter(
    suite: SupportedCipherSuite,
    secrets: ConnectionTrafficSecrets,
) -> Result<Box<dyn MessageDecrypter>, Error> {
    let is_chacha20 = matches!(secrets, ConnectionTrafficSecrets::Chacha20Poly1305 { .. });
    let (key, iv) = parts(secrets)?;
    Ok(match suite {
        SupportedCipherSuite::Tls13(suite) => suite.aead_alg.decrypter(key, iv),
        // The rest of such a nonce is in the record.
        SupportedCipherSuite::Tls12(suite) if !is_chacha20 => suite.aead_alg.decrypter(key, &iv.as_ref()[..4]),
        SupportedCipherSuite::Tls12(suite) => suite.aead_alg.decrypter(key, iv.as_ref()),
    })
}

impl Receiver {
    /// Decrypts the whole records of `received`; content goes to `take`. `at` becomes the beginning of what is left. Returns
    /// whether the peer has ended its side.
    pub(crate) fn receive(
        &mut self,
        received: &mut [u8],
        at: &mut usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<bool, Error> {
        let is_tls13 = self.keys.protocol_version() == ProtocolVersion::TLSv1_3;
        while let Some(&[kind, _, _, high, low]) = received[*at..].first_chunk::<HEADER>() {
            let length = usize::from(u16::from_be_bytes([high, low]));
            if length > LARGEST {
                return Err(Error::PeerSentOversizedRecord);
            }
            let begin = *at + HEADER;
            let Some(payload) = received.get_mut(begin..begin + length) else { break };
            let kind = ContentType::from(kind);
            if is_tls13 && kind != ContentType::ApplicationData {
                return Err(Error::DecryptError);
            }
            let record = InboundOpaqueMessage::new(kind, ProtocolVersion::TLSv1_2, payload);
            let message = self.decrypter.decrypt(record, self.sequence)?;
            self.sequence += 1;
            *at = begin + length;
            match (message.typ, message.payload) {
                (ContentType::ApplicationData, content) => take(content),
                (ContentType::Alert, &[_, description]) => match AlertDescription::from(description) {
                    AlertDescription::CloseNotify => return Ok(true),
                    AlertDescription::UserCanceled => {}
                    other => return Err(Error::AlertReceived(other)),
                },
                // A KeyUpdate (RFC 8446 section 4.6.3): 0 tells of the peer's own keys, 1 asks for others of ours too.
                (ContentType::Handshake, [24, 0, 0, 1, 0]) if is_tls13 => {
                    let (sequence, secrets) = self.keys.update_rx_secret()?;
                    self.decrypter = decrypter(self.keys.negotiated_cipher_suite(), secrets)?;
                    self.sequence = sequence;
                }
                (ContentType::Handshake, [24, 0, 0, 1, 1]) if is_tls13 => {
                    return Err(Error::General("the client asks for keys that the kernel cannot change".into()));
                }
                _ => return Err(Error::General("a message that may not follow the handshake".into())),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::sync::Arc;

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;
    use crate::provider::{aead, provider};
    use crate::session::{OVERHEAD, Session};
    use crate::{Certificate, Pem, Settings, TlsConfig, Version, self_signed};

    const CONTENT: u8 = 23;
    const ALERT: u8 = 21;

    /// Makes records as the kernel does (`net/tls/tls_sw.c`).
    struct Kernel {
        records: Records,
        nonce: Vec<u8>,
        key: aead::LessSafeKey,
        salt: Vec<u8>,
        sequence: u64,
    }

    impl Kernel {
        fn new(records: Records, keys: &KernelKeys) -> Self {
            let (algorithm, nonce, key, salt) = match records.cipher() {
                (51, key) => (&aead::AES_128_GCM, 8, key, 4),
                (52, key) => (&aead::AES_256_GCM, 8, key, 4),
                (_, key) => (&aead::CHACHA20_POLY1305, 12, key, 0),
            };
            let bytes = keys.as_bytes();
            assert_eq!(bytes[..2], (if records.is_tls12() { 0x0303_u16 } else { 0x0304 }).to_ne_bytes());
            assert_eq!(bytes[2..4], records.cipher().0.to_ne_bytes());
            let (nonce, rest) = bytes[4..].split_at(nonce);
            let (key, rest) = rest.split_at(key);
            let (salt, sequence) = rest.split_at(salt);
            Kernel {
                records,
                nonce: nonce.to_vec(),
                key: aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, key).unwrap()),
                salt: salt.to_vec(),
                sequence: u64::from_be_bytes(sequence.try_into().unwrap()),
            }
        }

        /// The record, and the nonce that it shows.
        fn record(&mut self, kind: u8, content: &[u8]) -> (Vec<u8>, u64) {
            let mut nonce: [u8; 12] = [&self.salt[..], &self.nonce].concat().try_into().unwrap();
            let shows_nonce = self.records.is_tls12() && !self.records.is_chacha20();
            if !shows_nonce {
                nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
            }
            let shown = if shows_nonce { nonce[4..].to_vec() } else { Vec::new() };
            let (mut sealed, header) = match self.records.is_tls12() {
                true => (content.to_vec(), [kind, 3, 3]),
                false => ([content, &[kind]].concat(), [CONTENT, 3, 3]),
            };
            let whole = (shown.len() + sealed.len() + 16) as u16;
            let header = [&header[..], &whole.to_be_bytes()].concat();
            let aad = match self.records.is_tls12() {
                true => {
                    [&self.sequence.to_be_bytes()[..], &[kind, 3, 3], &(content.len() as u16).to_be_bytes()].concat()
                }
                false => header.clone(),
            };
            let seal_nonce = aead::Nonce::assume_unique_for_key(nonce);
            self.key.seal_in_place_append_tag(seal_nonce, aead::Aad::from(aad), &mut sealed).unwrap();
            self.sequence += 1;
            let number = u64::from_be_bytes(nonce[4..].try_into().unwrap());
            if shows_nonce {
                self.nonce = number.wrapping_add(1).to_be_bytes().to_vec();
            }
            ([header, shown, sealed].concat(), number)
        }
    }

    /// A session and its client after the handshake, with this kind of records.
    fn connect(records: Records) -> (Session, ClientConnection) {
        let made = self_signed(vec!["localhost".into()], 2026).unwrap();
        let pem = |bytes: &[u8]| Pem { name: String::new(), bytes: bytes.to_vec().into() };
        let settings = Settings {
            certificates: vec![Certificate {
                certificate: pem(made.certificate.as_bytes()),
                key: pem(made.key.as_bytes()),
                ocsp: None,
            }],
            client_ca: None,
            client_auth_required: false,
            min_version: Version::Tls12,
            session_timeout: 300,
            kernel: true,
            http2: false,
        };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap()).unwrap();
        let mut offered = (*provider()).clone();
        offered.cipher_suites.retain(|suite| records_of(*suite) == Some(records));
        let config = ClientConfig::builder_with_provider(Arc::new(offered))
            .with_protocol_versions(&[if records.is_tls12() {
                &rustls::version::TLS12
            } else {
                &rustls::version::TLS13
            }])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        let mut server = Session::new(TlsConfig::new(&settings).unwrap().current()).unwrap();
        while server.is_handshaking() || client.is_handshaking() {
            assert_eq!(deliver(&mut client, &mut server).unwrap(), b"");
            let control = server.take_control();
            give(&mut client, &control);
        }
        (server, client)
    }

    /// Has the session receive what its client has to send, in two pieces; its content.
    fn deliver(client: &mut ClientConnection, server: &mut Session) -> Result<Vec<u8>, Error> {
        let (mut sent, mut content) = (Vec::new(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut sent).unwrap();
        }
        for piece in sent.chunks(sent.len() / 2 + 1) {
            let mut buffer = vec![0; 200_000];
            let begun = server.begin(&mut buffer);
            buffer[begun..begun + piece.len()].copy_from_slice(piece);
            server.receive(&mut buffer[..begun + piece.len()], |bytes| content.extend_from_slice(bytes))?;
        }
        Ok(content)
    }

    fn give(client: &mut ClientConnection, mut records: &[u8]) {
        while !records.is_empty() {
            client.read_tls(&mut records).unwrap();
            client.process_new_packets().unwrap();
        }
    }

    fn received(client: &mut ClientConnection) -> Vec<u8> {
        let mut content = Vec::new();
        match client.reader().read_to_end(&mut content) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
            _ => content,
        }
    }

    fn send(server: &mut Session, content: &[u8]) -> Vec<u8> {
        let mut records = vec![0; content.len() + OVERHEAD];
        let length = server.encrypt(content, &mut records).unwrap();
        [server.take_control(), records[..length].to_vec()].concat()
    }

    #[test]
    fn both_sides_go_on_where_the_kernel_takes_over() {
        for records in Records::ALL {
            let (mut server, mut client) = connect(records);
            let mut shown = Vec::new();
            for number in 0..5 {
                let sent = send(&mut server, b"from here");
                shown.push(u64::from_be_bytes(sent[sent.len().saturating_sub(8 + 9 + 16)..][..8].try_into().unwrap()));
                give(&mut client, &sent);
                assert_eq!(received(&mut client), b"from here");
                client.writer().write_all(&[number]).unwrap();
                assert_eq!(deliver(&mut client, &mut server).unwrap(), [number]);
                assert_eq!(server.can_offload(), None, "it may have something to send");
            }
            give(&mut client, &send(&mut server, b"last"));
            assert_eq!(server.can_offload(), Some(records));
            let mut kernel = Kernel::new(records, &server.offload().unwrap());
            assert_eq!(server.can_offload(), None);
            let mut sent = Vec::new();
            for _ in 0..1000 {
                let (record, nonce) = kernel.record(CONTENT, b"kernel");
                assert!(!records.is_tls12() || records.is_chacha20() || !shown.contains(&nonce));
                sent.extend(record);
            }
            give(&mut client, &sent);
            assert_eq!(received(&mut client), [&b"last"[..], &b"kernel".repeat(1000)].concat());
            let body = vec![7; 100_000];
            for piece in body.chunks(30_000) {
                client.writer().write_all(piece).unwrap();
                assert_eq!(deliver(&mut client, &mut server).unwrap(), piece);
            }
            give(&mut client, &kernel.record(ALERT, &[1, 0]).0);
            assert_eq!(received(&mut client), b"");
            client.send_close_notify();
            assert_eq!(deliver(&mut client, &mut server).unwrap(), b"");
            assert!(server.is_closed() && !server.has_failed());
        }
    }

    #[test]
    fn a_client_that_asks_for_other_keys_is_refused() {
        let (mut server, mut client) = connect(Records::Tls13Aes128);
        give(&mut client, &send(&mut server, b"x"));
        server.offload().unwrap();
        client.refresh_traffic_keys().unwrap();
        let error = deliver(&mut client, &mut server).unwrap_err();
        assert!(error.to_string().contains("cannot change"), "{error}");
    }

    #[test]
    fn what_is_no_record_of_the_client_ends_the_session() {
        for records in [Records::Tls12Aes128, Records::Tls13Aes128] {
            for wrong in [&[23, 3, 3, 0, 40][..], &[21, 3, 3, 0, 40], &[22, 3, 3, 0, 40], &[23, 3, 3, 255, 255]] {
                let (mut server, mut client) = connect(records);
                give(&mut client, &send(&mut server, b"x"));
                server.offload().unwrap();
                let mut bytes = [wrong, &[0; 40]].concat();
                server.receive(&mut bytes, |_| panic!("content")).unwrap_err();
                assert!(server.has_failed() && server.take_control().is_empty());
            }
        }
    }
}
