//! The cryptography library of TLS (aws-lc-rs): other modules import algorithms only from here.

use std::sync::Arc;

pub(crate) use aws_lc_rs::{aead, digest, hmac, rand};
pub(crate) use chosen::sign::any_supported_type;
use rustls::crypto::{CryptoProvider, aws_lc_rs as chosen};

/// Algorithms of rustls: those that have no known weakness. Of key exchanges, the client's first one is taken.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(chosen::default_provider())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::NamedGroup::{X25519, X25519MLKEM768, secp256r1, secp384r1};
    use rustls::crypto::aws_lc_rs::ALL_KX_GROUPS;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore};

    use super::*;
    use crate::session::Session;
    use crate::{Certificate, Pem, Settings, TlsConfig, Version, self_signed};

    /// The key exchange of a client that has these, the one that it prefers first.
    fn agreed(groups: &[NamedGroup]) -> Option<NamedGroup> {
        let made = self_signed(vec!["localhost".into()], 2026).unwrap();
        let pem = |text: &str| Pem { name: String::new(), bytes: text.as_bytes().to_vec().into() };
        let settings = Settings {
            certificates: vec![Certificate { certificate: pem(&made.certificate), key: pem(&made.key), ocsp: None }],
            client_ca: None,
            client_auth_required: false,
            min_version: Version::Tls13,
            session_timeout: 0,
            kernel: false,
            http2: false,
        };
        let mut server = Session::new(TlsConfig::new(&settings).unwrap().current()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap()).unwrap();
        let known = |name: &NamedGroup| ALL_KX_GROUPS.iter().find(|group| group.name() == *name).copied();
        let kx_groups = groups.iter().filter_map(known).collect();
        let offered = CryptoProvider { kx_groups, ..chosen::default_provider() };
        let config = ClientConfig::builder_with_provider(Arc::new(offered))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        while server.is_handshaking() || client.is_handshaking() {
            let mut sent = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut sent).unwrap();
            }
            let mut buffer = vec![0; 1 << 16];
            let begun = server.begin(&mut buffer);
            buffer[begun..begun + sent.len()].copy_from_slice(&sent);
            if server.receive(&mut buffer[..begun + sent.len()], |_| {}).is_err() {
                return None;
            }
            let control = server.take_control();
            let mut records = &control[..];
            while !records.is_empty() {
                client.read_tls(&mut records).unwrap();
                client.process_new_packets().unwrap();
            }
        }
        client.negotiated_key_exchange_group().map(|group| group.name())
    }

    #[test]
    fn the_key_exchange_is_what_the_client_prefers() {
        assert_eq!(agreed(&[X25519MLKEM768, X25519]), Some(X25519MLKEM768));
        assert_eq!(agreed(&[X25519, X25519MLKEM768]), Some(X25519));
        // The shared name is the client's second one; it is asked for it anew.
        assert_eq!(agreed(&[NamedGroup::MLKEM1024, X25519MLKEM768]), Some(X25519MLKEM768));
        for group in [X25519, secp256r1, secp384r1] {
            assert_eq!(agreed(&[group]), Some(group));
        }
        assert_eq!(agreed(&[NamedGroup::MLKEM1024]), None);
    }
}
