//! Chooses the certificate for the host that a client names (SNI).

use std::collections::HashMap;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::clock::now;

/// The certificates of a service.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    /// For clients that name no host, or an unknown one: those of the hosts of the first certificate.
    default: Vec<Arc<CertifiedKey>>,
    /// By their names in lower case; `*.` begins those with a wildcard. A name may have several, with keys of different kinds.
    names: HashMap<String, Vec<Arc<CertifiedKey>>>,
    staples: Vec<Staple>,
}

/// An OCSP response that ends.
#[derive(Debug)]
struct Staple {
    /// The certificate with it.
    with: Arc<CertifiedKey>,
    /// The certificate without it.
    without: Arc<CertifiedKey>,
    /// Second since 1970 from which it must not be sent.
    end: u64,
}

impl Resolver {
    /// Adds a certificate; the first is the default. A later one of the same kind of key and name is not used for it.
    /// `staple_end`: second since 1970 from which its OCSP response is not sent.
    pub(crate) fn add(&mut self, key: &Arc<CertifiedKey>, names: &[String], staple_end: u64) {
        if key.ocsp.is_some() && staple_end < u64::MAX {
            let without = Arc::new(CertifiedKey { ocsp: None, ..CertifiedKey::clone(key) });
            self.staples.push(Staple { with: Arc::clone(key), without, end: staple_end });
        }
        let first = self.names.is_empty() && self.default.is_empty();
        let shares = |default: &[Arc<CertifiedKey>]| {
            names.iter().any(|name| {
                self.names
                    .get(name)
                    .is_some_and(|there| there.iter().any(|each| default.iter().any(|d| Arc::ptr_eq(d, each))))
            })
        };
        if first || shares(&self.default) {
            self.default.push(Arc::clone(key));
        }
        for name in names {
            self.names.entry(name.clone()).or_default().push(Arc::clone(key));
        }
    }

    fn choose(&self, host: Option<&str>, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let host = host.map(str::to_ascii_lowercase).unwrap_or_default();
        let wildcard = host.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        let exact = self.names.get(&host);
        let found = exact.or_else(|| self.names.get(&wildcard?)).unwrap_or(&self.default);
        let mut usable = found.iter().filter(|key| key.key.choose_scheme(schemes).is_some());
        // A client that can do neither gets one, and the alert says what is wrong.
        usable.next().or_else(|| found.first()).cloned()
    }
}

impl Resolver {
    fn without_ended_staple(&self, key: Arc<CertifiedKey>) -> Arc<CertifiedKey> {
        match self.staples.iter().find(|staple| Arc::ptr_eq(&staple.with, &key)) {
            Some(staple) if staple.end <= now() => Arc::clone(&staple.without),
            _ => key,
        }
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        crate::session::note_server_name(hello.server_name());
        let key = self.choose(hello.server_name(), hello.signature_schemes())?;
        Some(self.without_ended_staple(key))
    }
}

#[cfg(test)]
mod tests {
    use rustls::sign::CertifiedKey;

    use super::*;
    use crate::settings::{Certificate, Pem};

    /// A certificate for these names, with a key of its own.
    fn certificate(names: &[&str]) -> (Arc<CertifiedKey>, Vec<String>) {
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let made = crate::self_signed(names, 2026).unwrap();
        let pem = |name: &str, text: &str| Pem { name: name.into(), bytes: text.as_bytes().to_vec().into() };
        let files = Certificate { certificate: pem("c", &made.certificate), key: pem("k", &made.key), ocsp: None };
        let loaded = crate::certificates::load(&files, now()).unwrap();
        (loaded.key, loaded.info.names)
    }

    fn resolver(certificates: &[(Arc<CertifiedKey>, Vec<String>)]) -> Resolver {
        let mut resolver = Resolver::default();
        certificates.iter().for_each(|(key, names)| resolver.add(key, names, u64::MAX));
        resolver
    }

    const ECDSA: &[SignatureScheme] = &[SignatureScheme::ECDSA_NISTP256_SHA256];

    #[test]
    fn a_host_has_its_own_certificate_or_that_of_a_wildcard_or_the_first() {
        let all =
            [certificate(&["a.example"]), certificate(&["*.b.example", "B.example"]), certificate(&["x.b.example"])];
        let resolver = resolver(&all);
        for (host, expected) in [
            (Some("a.example"), 0),
            (Some("A.Example"), 0),
            (Some("b.example"), 1),
            (Some("y.b.example"), 1),
            (Some("x.b.example"), 2),
            (Some("z.y.b.example"), 0),
            (Some("example"), 0),
            (Some("c.example"), 0),
            (Some("."), 0),
            (Some(""), 0),
            (None, 0),
        ] {
            assert!(Arc::ptr_eq(&resolver.choose(host, ECDSA).unwrap(), &all[expected].0), "{host:?}");
        }
    }

    #[test]
    fn of_several_certificates_of_a_host_the_first_counts() {
        let all = [certificate(&["a.example"]), certificate(&["a.example"])];
        let resolver = resolver(&all);
        assert!(Arc::ptr_eq(&resolver.choose(Some("a.example"), ECDSA).unwrap(), &all[0].0));
        // One that it cannot verify is better than none, which would have no alert that says why.
        assert!(resolver.choose(Some("a.example"), &[SignatureScheme::ED25519]).is_some());
        assert!(Resolver::default().choose(None, ECDSA).is_none());
    }
}
