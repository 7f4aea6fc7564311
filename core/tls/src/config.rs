//! TLS configuration of a service's listeners: its certificates, which may be replaced while sessions are open.

use std::sync::{Arc, PoisonError, RwLock};

use poorhttp_interface::tls::{self, Certificates};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, version};

use crate::certificates::{self, Info};
use crate::client_verifier::ClientVerifier;
use crate::clock::now;
use crate::provider::{digest, provider};
use crate::resolver::Resolver;
use crate::session::{HTTP2, Session};
use crate::settings::{Settings, Version};
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

impl Certificates for TlsConfig {
    fn session(&self) -> Result<Box<dyn tls::Session>, String> {
        match Session::new(self.current()) {
            Ok(session) => Ok(Box::new(session)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn replace(&self, written: &[u8]) -> Result<(), String> {
        self.replace(&Settings::decode(written).ok_or("they cannot be read")?)
    }
}

impl Present {
    fn new(settings: &Settings) -> Result<Self, String> {
        let (provider, now) = (provider(), now());
        let mut resolver = Resolver::default();
        let (mut infos, mut warnings) = (Vec::new(), Vec::new());
        for files in &settings.certificates {
            let loaded = certificates::load(files, now)?;
            resolver.add(&loaded.key, &loaded.info.names, loaded.staple_end);
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
            Some(file) => {
                let (verifier, doubts) = ClientVerifier::new(file, settings.client_auth_required, now)?;
                warnings.extend(doubts);
                builder.with_client_cert_verifier(Arc::new(verifier))
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(resolver));
        // A client that names others alone gets the alert for it (RFC 7301).
        let http2 = if settings.http2 { HTTP2 } else { b"" };
        let offered = [http2, b"http/1.1", b"http/1.0"].into_iter().filter(|name| !name.is_empty());
        config.alpn_protocols = offered.map(<[u8]>::to_vec).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.enable_secret_extraction = settings.kernel;
        // Two tickets: a browser opens several connections at once.
        config.send_tls13_tickets = if settings.session_timeout > 0 { 2 } else { 0 };
        if settings.session_timeout > 0 {
            let tickets = Tickets::new(settings.session_timeout, context(settings, &infos));
            config.ticketer = Arc::new(tickets.ok_or("the system has no random numbers")?);
        }
        Ok(Present { config: Arc::new(config), certificates: infos.into(), warnings: warnings.into() })
    }
}

/// Names what a client has shown before it got a ticket, and to which hosts. Certificates that are renewed do not change it.
fn context(settings: &Settings, certificates: &[Info]) -> Vec<u8> {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(&[u8::from(settings.client_ca.is_some()), u8::from(settings.client_auth_required)]);
    let mut hosts: Vec<&str> = certificates.iter().flat_map(|each| each.names.iter().map(String::as_str)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hash.update(&(hosts.len() as u64).to_be_bytes());
    for host in hosts {
        hash.update(&(host.len() as u64).to_be_bytes());
        hash.update(host.as_bytes());
    }
    hash.update(settings.client_ca.as_ref().map(|ca| &ca.bytes[..]).unwrap_or_default());
    hash.finish().as_ref().to_vec()
}
