//! Contents of the certificate files, and how the main process sends them to workers.

use zeroize::Zeroizing;

/// Contents of a file, wiped when they are dropped; PEM, but for OCSP responses.
#[derive(Clone)]
pub struct Pem {
    /// Its path, for messages.
    pub name: String,
    /// What it holds.
    pub bytes: Zeroizing<Vec<u8>>,
}

/// The files of one certificate.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate, and behind it those of its issuers.
    pub certificate: Pem,
    /// Its private key.
    pub key: Pem,
    /// Response of its issuer that it is not revoked, in DER.
    pub ocsp: Option<Pem>,
}

/// Oldest version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// Everything that makes a [`crate::TlsConfig`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The first is for clients that name no host, or one that no certificate has.
    pub certificates: Vec<Certificate>,
    /// Issuers of the certificates of clients, and their revocation lists.
    pub client_ca: Option<Pem>,
    /// Whether a client without certificate is refused.
    pub client_auth_required: bool,
    /// Oldest version of the protocol.
    pub min_version: Version,
    /// Seconds for which a client may resume a session; 0: no tickets are sent.
    pub session_timeout: u32,
    /// Whether keys may be given to the kernel.
    pub kernel: bool,
    /// Whether HTTP/2 is offered (ALPN), before HTTP/1.1.
    pub http2: bool,
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.name)
    }
}

impl Settings {
    /// The settings as bytes, which [`Settings::decode`] reads in another process of the same version.
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // Not grown while keys are in it: each copy that a growing vector leaves behind would have to be wiped.
        let size = self.pieces().map(|piece| piece.len() + 4).sum::<usize>() + HEADER;
        let mut out = Zeroizing::new(Vec::with_capacity(size));
        out.push(u8::from(self.client_auth_required));
        out.push(u8::from(self.client_ca.is_some()));
        out.push(u8::from(self.min_version == Version::Tls13));
        out.extend(self.session_timeout.to_ne_bytes());
        out.push(u8::from(self.kernel));
        out.push(u8::from(self.http2));
        for piece in self.pieces() {
            out.extend(u32::try_from(piece.len()).unwrap_or(u32::MAX).to_ne_bytes());
            out.extend(piece);
        }
        out
    }

    fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let ca = self.client_ca.iter().flat_map(|ca| [ca.name.as_bytes(), &ca.bytes[..]]);
        ca.chain(self.certificates.iter().flat_map(|each| {
            let (certificate, key) = (&each.certificate, &each.key);
            [
                certificate.name.as_bytes(),
                &certificate.bytes[..],
                key.name.as_bytes(),
                &key.bytes[..],
                each.ocsp.as_ref().map(|file| file.name.as_bytes()).unwrap_or_default(),
                each.ocsp.as_ref().map(|file| &file.bytes[..]).unwrap_or_default(),
            ]
        }))
    }

    /// Reads what [`Settings::encode`] has written.
    pub fn decode(bytes: &[u8]) -> Option<Settings> {
        let (header, mut rest) = bytes.split_at_checked(HEADER)?;
        let mut pieces = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (piece, behind) = behind.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
            pieces.push(piece);
            rest = behind;
        }
        let pem = |name: &[u8], bytes: &[u8]| Pem {
            name: String::from_utf8_lossy(name).into_owned(),
            bytes: Zeroizing::new(bytes.to_vec()),
        };
        let has_ca = header[1] == 1;
        let (ca, certificates) = pieces.split_at_checked(if has_ca { 2 } else { 0 })?;
        if !rest.is_empty() || certificates.len() % 6 != 0 {
            return None;
        }
        let certificates = certificates.chunks_exact(6).map(|each| Certificate {
            certificate: pem(each[0], each[1]),
            key: pem(each[2], each[3]),
            ocsp: (!each[4].is_empty()).then(|| pem(each[4], each[5])),
        });
        Some(Settings {
            certificates: certificates.collect(),
            client_ca: has_ca.then(|| pem(ca[0], ca[1])),
            client_auth_required: header[0] == 1,
            min_version: if header[2] == 1 { Version::Tls13 } else { Version::Tls12 },
            session_timeout: u32::from_ne_bytes([header[3], header[4], header[5], header[6]]),
            kernel: header[7] == 1,
            http2: header[8] == 1,
        })
    }
}

/// Bytes before the first piece.
const HEADER: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_reads_the_same_settings() {
        let pem = |name: &str| Pem { name: name.into(), bytes: Zeroizing::new(format!("in {name}").into_bytes()) };
        let certificate = |ocsp: Option<Pem>| Certificate { certificate: pem("a.pem"), key: pem("a.key"), ocsp };
        for client_ca in [None, Some(pem("ca.pem"))] {
            let settings = Settings {
                certificates: vec![certificate(None), certificate(Some(pem("a.der")))],
                client_ca,
                client_auth_required: true,
                min_version: Version::Tls13,
                session_timeout: 77,
                kernel: true,
                http2: true,
            };
            let bytes = settings.encode();
            let read = Settings::decode(&bytes).unwrap();
            assert_eq!(read.encode(), bytes);
            assert!(read.certificates[0].ocsp.is_none());
            assert_eq!(read.certificates[1].ocsp.as_ref().unwrap().name, "a.der");
            assert_eq!(read.client_ca.is_some(), settings.client_ca.is_some());
            for cut in 0..bytes.len() {
                assert!(Settings::decode(&bytes[..cut]).is_none_or(|read| read.certificates.len() < 2), "{cut}");
            }
        }
    }

    #[test]
    fn no_key_is_in_debug_output() {
        let key = Pem { name: "k".into(), bytes: Zeroizing::new(b"secret".to_vec()) };
        assert_eq!(format!("{key:?}"), "k");
    }
}
