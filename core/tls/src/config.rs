//! The certificates of a service, as its listeners use them.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::SectionKind;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, version};

use crate::certificates::{self, Info};
use crate::provider::{digest, provider};
use crate::resolver::Resolver;
use crate::settings::{Pem, Settings, Version};
use crate::tickets::Tickets;

/// Certificates, which may be replaced while sessions are open.
#[derive(Debug)]
pub struct TlsConfig {
    present: RwLock<Present>,
}

#[derive(Clone, Debug)]
struct Present {
    config: Arc<ServerConfig>,
    certificates: Arc<[Info]>,
    warnings: Arc<[String]>,
}

impl TlsConfig {
    /// An error is one sentence for the operator, and begins with the name of the file.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        Ok(TlsConfig { present: RwLock::new(Present::new(settings)?) })
    }

    /// Uses other certificates for new sessions. After an error, all is as before.
    pub fn replace(&self, settings: &Settings) -> Result<(), String> {
        let new = Present::new(settings)?;
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// What a new session begins with.
    pub fn current(&self) -> Arc<ServerConfig> {
        self.read(|present| Arc::clone(&present.config))
    }

    /// Its certificates, in their order.
    pub fn certificates(&self) -> Arc<[Info]> {
        self.read(|present| Arc::clone(&present.certificates))
    }

    /// Mistakes in the files that do not keep them from being used: sentences, which begin with the name of a file.
    pub fn warnings(&self) -> Arc<[String]> {
        self.read(|present| Arc::clone(&present.warnings))
    }

    fn read<T>(&self, get: impl FnOnce(&Present) -> T) -> T {
        get(&self.present.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Present {
    fn new(settings: &Settings) -> Result<Self, String> {
        let provider = provider();
        let mut resolver = Resolver::default();
        let (mut infos, mut warnings) = (Vec::new(), Vec::new());
        for files in &settings.certificates {
            let loaded = certificates::load(files)?;
            resolver.add(&loaded.key, &loaded.info.names);
            infos.push(loaded.info);
            warnings.extend(loaded.warnings);
        }
        if infos.is_empty() {
            return Err("no certificate is given".into());
        }
        let versions: &[_] = match settings.min_version {
            Version::Tls12 => &[&version::TLS13, &version::TLS12],
            Version::Tls13 => &[&version::TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| error.to_string())?;
        let builder = match &settings.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => builder.with_client_cert_verifier(verifier(file, settings.client_auth_required)?),
        };
        let mut config = builder.with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.enable_secret_extraction = settings.kernel;
        // Two tickets: a browser opens several connections at once.
        config.send_tls13_tickets = if settings.session_timeout > 0 { 2 } else { 0 };
        if settings.session_timeout > 0 {
            let tickets = Tickets::new(settings.session_timeout, context(settings));
            config.ticketer = Arc::new(tickets.ok_or("the system has no random numbers")?);
        }
        Ok(Present { config: Arc::new(config), certificates: infos.into(), warnings: warnings.into() })
    }
}

/// Names what a client has shown before it got a ticket. Certificates that are renewed do not change it.
fn context(settings: &Settings) -> Vec<u8> {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(&[u8::from(settings.client_ca.is_some()), u8::from(settings.client_auth_required)]);
    hash.update(settings.client_ca.as_ref().map(|ca| &ca.bytes[..]).unwrap_or_default());
    hash.finish().as_ref().to_vec()
}

/// Verifies the certificates of clients by a file with those of their issuers, and with revocation lists.
fn verifier(file: &Pem, required: bool) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for (number, der) in certificates::chain(file)?.into_iter().enumerate() {
        roots.add(der).map_err(|error| format!("{}: certificate {}: {error}", file.name, number + 1))?;
    }
    let mut lists = Vec::new();
    for section in certificates::sections(file) {
        if let (SectionKind::Crl, der) = section? {
            lists.push(CertificateRevocationListDer::from(der.to_vec()));
        }
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
    if !lists.is_empty() {
        // Issuers without a list revoke nothing.
        builder = builder.with_crls(lists).allow_unknown_revocation_status();
    }
    if !required {
        builder = builder.allow_unauthenticated();
    }
    builder.build().map_err(|error| format!("{}: {error}", file.name))
}
