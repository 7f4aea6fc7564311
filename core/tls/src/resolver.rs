//! Chooses the certificate for the host that a client names (SNI).

use std::collections::HashMap;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The certificates of a service.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    /// For clients that name no host, or an unknown one: those of the hosts of the first certificate.
    default: Vec<Arc<CertifiedKey>>,
    /// By their names in lower case; `*.` begins those with a wildcard. A name may have several, with keys of different kinds.
    names: HashMap<String, Vec<Arc<CertifiedKey>>>,
}

impl Resolver {
    /// Adds a certificate; the first is the default. A later one of the same kind of key and name is not used for it.
    pub(crate) fn add(&mut self, key: &Arc<CertifiedKey>, names: &[String]) {
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

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        crate::session::note_server_name(hello.server_name());
        self.choose(hello.server_name(), hello.signature_schemes())
    }
}
