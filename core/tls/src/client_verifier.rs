//! Verifies the certificates of clients; notes the earliest expiry in a chain, after which no session resumes.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::SectionKind;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use x509_cert::der::Encode;

use crate::certificates::{self, parse, seconds};
use crate::provider::provider;
use crate::settings::Pem;
use crate::tickets;

/// An issuer of clients. rustls takes it for a name with a key, which never ends; OpenSSL, and this module, do not.
#[derive(Debug)]
struct Root {
    der: CertificateDer<'static>,
    /// DER.
    subject: Vec<u8>,
    /// Seconds since 1970 of its validity, both included.
    not_before: u64,
    not_after: u64,
}

impl Root {
    fn is_valid(&self, now: u64) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }
}

/// What verifies until one of the roots begins or ends.
#[derive(Clone, Debug)]
struct Period {
    begin: u64,
    /// Not included.
    end: u64,
    /// `None`: no root is valid.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

/// Verifies certificates by a file with those of their issuers, and with revocation lists.
#[derive(Debug)]
pub(crate) struct ClientVerifier {
    roots: Vec<Root>,
    lists: Vec<CertificateRevocationListDer<'static>>,
    is_required: bool,
    subjects: Vec<DistinguishedName>,
    present: RwLock<Period>,
}

impl ClientVerifier {
    /// Returns it, and sentences about roots with which no client can be verified now. An error begins with the name of the file.
    pub(crate) fn new(file: &Pem, is_required: bool, now: u64) -> Result<(Self, Vec<String>), String> {
        let (mut roots, mut warnings) = (Vec::new(), Vec::new());
        for (number, der) in certificates::chain(file)?.into_iter().enumerate() {
            let number = number + 1;
            let mut store = RootCertStore::empty();
            store.add(der.clone()).map_err(|error| format!("{}: certificate {number}: {error}", file.name))?;
            let subject = store.subjects().remove(0).as_ref().to_vec();
            let validity = parse(&der).map(|parsed| parsed.tbs_certificate.validity);
            let (not_before, not_after) = validity
                .map_or((0, u64::MAX), |validity| (seconds(&validity.not_before), seconds(&validity.not_after)));
            let root = Root { der, subject, not_before, not_after };
            if !root.is_valid(now) {
                let what = if root.not_after < now { "has expired" } else { "is not valid yet; is the clock right?" };
                warnings.push(format!(
                    "{}: certificate {number} {what}; clients whose certificates it has issued are refused",
                    file.name
                ));
            }
            roots.push(root);
        }
        let mut lists = Vec::new();
        for section in certificates::sections(file) {
            if let (SectionKind::Crl, der) = section? {
                lists.push(CertificateRevocationListDer::from(der.to_vec()));
            }
        }
        let nobody = Period { begin: 0, end: 0, verifier: None };
        let mut made = ClientVerifier { roots, lists, is_required, subjects: Vec::new(), present: RwLock::new(nobody) };
        let all = made.verifier(|_| true).map_err(|error| format!("{}: {error}", file.name))?;
        made.subjects = all.root_hint_subjects().to_vec();
        let period = made.period(now);
        made.present = RwLock::new(period);
        Ok((made, warnings))
    }

    /// What verifies with some of the roots.
    fn verifier(&self, has: impl Fn(&Root) -> bool) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let mut roots = RootCertStore::empty();
        for root in self.roots.iter().filter(|root| has(root)) {
            roots.add(root.der.clone()).map_err(|error| error.to_string())?;
        }
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        if !self.lists.is_empty() {
            // Issuers without a list revoke nothing.
            builder = builder.with_crls(self.lists.iter().cloned()).allow_unknown_revocation_status();
        }
        if !self.is_required {
            builder = builder.allow_unauthenticated();
        }
        builder.build().map_err(|error| error.to_string())
    }

    fn period(&self, now: u64) -> Period {
        let changes = || {
            self.roots.iter().flat_map(|root| [root.not_before, root.not_after.saturating_add(1)]).chain([0, u64::MAX])
        };
        Period {
            begin: changes().filter(|at| *at <= now).max().unwrap_or_default(),
            end: changes().filter(|at| *at > now).min().unwrap_or(u64::MAX),
            // With some roots it is made as with all. Without any, it cannot be.
            verifier: self.verifier(|root| root.is_valid(now)).ok(),
        }
    }

    fn at(&self, now: u64) -> Option<Arc<dyn ClientCertVerifier>> {
        let present = self.present.read().unwrap_or_else(PoisonError::into_inner).clone();
        if (present.begin..present.end).contains(&now) {
            return present.verifier;
        }
        let period = self.period(now);
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = period.clone();
        period.verifier
    }

    /// Until when, in seconds since 1970, all certificates are valid that the client was verified by.
    fn end(&self, certificates: &[Dated], now: u64) -> u64 {
        // The client may have sent others, which have ended: these were not needed.
        let sent = certificates.iter().map(|each| each.not_after).filter(|end| *end >= now);
        let issuers = self
            .roots
            .iter()
            .filter(|root| root.is_valid(now) && certificates.iter().any(|each| each.issuer == root.subject));
        sent.chain(issuers.map(|root| root.not_after)).min().unwrap_or(now)
    }
}

fn unix(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

/// A certificate that a client has sent: its issuer, and when it ends.
struct Dated {
    /// DER, as [`Root::subject`].
    issuer: Vec<u8>,
    not_after: u64,
}

impl Dated {
    /// One that cannot be parsed has no issuer, and ends `now`.
    fn of(der: &CertificateDer<'_>, now: u64) -> Self {
        let parsed = parse(der).ok().and_then(|parsed| {
            let certificate = parsed.tbs_certificate;
            let not_after = seconds(&certificate.validity.not_after);
            Some(Dated { issuer: certificate.issuer.to_der().ok()?, not_after })
        });
        parsed.unwrap_or(Dated { issuer: Vec::new(), not_after: now })
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        time: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let now = time.as_secs();
        let sent = [end_entity].into_iter().chain(intermediates);
        let certificates: Vec<Dated> = sent.map(|der| Dated::of(der, now)).collect();
        let outcome = match self.at(now) {
            Some(verifier) => verifier.verify_client_cert(end_entity, intermediates, time),
            None => Err(CertificateError::UnknownIssuer.into()),
        };
        match outcome {
            Ok(verified) => {
                tickets::note_client_end(self.end(&certificates, now));
                Ok(verified)
            }
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
                let mut issuers = self
                    .roots
                    .iter()
                    .filter(|root| !root.is_valid(now) && certificates.iter().any(|each| each.issuer == root.subject));
                Err(Error::InvalidCertificate(match issuers.next() {
                    Some(Root { not_after, .. }) if *not_after < now => {
                        CertificateError::ExpiredContext { time, not_after: unix(*not_after) }
                    }
                    Some(Root { not_before, .. }) => {
                        CertificateError::NotValidYetContext { time, not_before: unix(*not_before) }
                    }
                    None => CertificateError::UnknownIssuer,
                }))
            }
            Err(error) => Err(error),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &provider().signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &provider().signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
