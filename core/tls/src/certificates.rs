//! Reads certificates with their keys, and says what is wrong with them.

use std::sync::Arc;

use rustls::pki_types::pem::{self, SectionKind, SliceIter};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use x509_cert::Certificate as X509;
use x509_cert::der::Decode;
use x509_cert::time::Time;
use zeroize::Zeroizing;

use crate::ocsp;
use crate::provider::{any_supported_type, digest};
use crate::settings::{Certificate, Pem};

/// What people want to know of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Path of its file.
    pub file: String,
    /// Hosts that it is for, in lower case.
    pub names: Vec<String>,
    /// Seconds since 1970 until which it is valid, and from which on.
    pub not_after: i64,
    /// See `not_after`.
    pub not_before: i64,
    /// SHA-256 of it.
    pub fingerprint: [u8; 32],
}

/// A certificate with its key.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) key: Arc<CertifiedKey>,
    /// Second since 1970 from which its OCSP response must not be sent any more.
    pub(crate) staple_end: u64,
    pub(crate) info: Info,
    /// Mistakes with which it can be used.
    pub(crate) warnings: Vec<String>,
}

/// Reads a certificate and its key; `now` is in seconds since 1970. The error begins with the name of a file.
pub(crate) fn load(files: &Certificate, now: u64) -> Result<Loaded, String> {
    let chain = chain(&files.certificate)?;
    let signing = private_key(&files.key)?;
    let name = &files.certificate.name;
    let parsed = chain.iter().enumerate().map(|(number, der)| {
        parse(der).map_err(|error| format!("{name}: certificate {} cannot be read: {error}", number + 1))
    });
    let parsed = parsed.collect::<Result<Vec<X509>, String>>()?;
    if let Some(public) = signing.public_key() {
        let position = chain.iter().position(|der| has_key(der, &public));
        match position {
            Some(0) => {}
            Some(other) => {
                return Err(format!(
                    "{name}: the certificate of the key {} is number {} of the file; it must be the first, and those of \
                     its issuers follow",
                    files.key.name,
                    other + 1
                ));
            }
            None => {
                return Err(format!(
                    "{}: this key does not belong to the certificate {name}; name the key that its request was made \
                     with, or the file that was renewed with it",
                    files.key.name
                ));
            }
        }
    }
    let mut warnings = Vec::new();
    for (number, pair) in parsed.windows(2).enumerate() {
        if pair[0].tbs_certificate.issuer != pair[1].tbs_certificate.subject {
            warnings.push(format!(
                "{name}: certificate {} of the file is not that of the issuer of certificate {}; clients may not trust \
                 it",
                number + 2,
                number + 1
            ));
        }
    }
    let names = host_names(&chain[0]);
    let (Some(first), Some(leaf)) = (parsed.first(), chain.first()) else {
        return Err(format!("{name}: has no certificate"));
    };
    let validity = &first.tbs_certificate.validity;
    let seconds = |time| i64::try_from(seconds(time)).unwrap_or(i64::MAX);
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest::digest(&digest::SHA256, leaf).as_ref());
    let info = Info {
        file: name.clone(),
        names,
        not_after: seconds(&validity.not_after),
        not_before: seconds(&validity.not_before),
        fingerprint,
    };
    let mut key = CertifiedKey::new(chain, signing);
    let mut staple_end = u64::MAX;
    if let Some(file) = &files.ocsp {
        match ocsp::end_of(&file.bytes, &key.cert, now) {
            Ok(end) => (key.ocsp, staple_end) = (Some(file.bytes.to_vec()), end),
            Err(reason) => warnings.push(format!("{}: clients do not get this OCSP response: {reason}", file.name)),
        }
    }
    Ok(Loaded { key: Arc::new(key), staple_end, info, warnings })
}

/// Reads the certificates of a file; there is at least one.
pub(crate) fn chain(file: &Pem) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut found = Vec::new();
    let mut others = Vec::new();
    for section in sections(file) {
        match section? {
            (SectionKind::Certificate, der) => found.push(CertificateDer::from(der.to_vec())),
            (kind, _) => others.push(kind),
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    Err(match others.first() {
        Some(SectionKind::Csr) => {
            format!(
                "{}: is a certificate request (CSR); name the certificate that the issuer has made from it",
                file.name
            )
        }
        Some(kind) if is_key(*kind) => {
            format!("{}: is a private key, not a certificate; were the two files swapped?", file.name)
        }
        _ => no_pem(file, "certificate"),
    })
}

fn private_key(file: &Pem) -> Result<Arc<dyn SigningKey>, String> {
    let name = &file.name;
    let text = String::from_utf8_lossy(&file.bytes);
    if text.contains("ENCRYPTED") {
        return Err(format!(
            "{name}: the key is encrypted with a password; decrypt it with openssl pkey -in FILE -out NEW, readable by \
             its owner alone"
        ));
    }
    let mut certificate = false;
    for section in sections(file) {
        let (kind, der) = section?;
        certificate |= kind == SectionKind::Certificate;
        let key = match kind {
            SectionKind::PrivateKey => PrivateKeyDer::Pkcs8(der[..].into()),
            SectionKind::RsaPrivateKey => PrivateKeyDer::Pkcs1(der[..].into()),
            SectionKind::EcPrivateKey => PrivateKeyDer::Sec1(der[..].into()),
            _ => continue,
        };
        // Not `KeyProvider::load_private_key`, which takes a copy that nobody wipes.
        return any_supported_type(&key).map_err(|error| {
            format!("{name}: the key cannot be used: {error}; keys are RSA of 2048 to 8192 bits, ECDSA, or Ed25519")
        });
    }
    Err(match certificate {
        true => format!(
            "{name}: has a certificate but no private key; name the file of the key in tls_key (or were the two files \
             swapped?)"
        ),
        false => no_pem(file, "private key"),
    })
}

/// The sections of a file, wiped when they are dropped.
pub(crate) fn sections(file: &Pem) -> impl Iterator<Item = Result<(SectionKind, Zeroizing<Vec<u8>>), String>> {
    SliceIter::<(SectionKind, Vec<u8>)>::new(&file.bytes).map(|section| match section {
        Ok((kind, der)) => Ok((kind, Zeroizing::new(der))),
        Err(error) => Err(format!("{}: is damaged: {}", file.name, describe(&error))),
    })
}

fn describe(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section of PEM has no end".into(),
        pem::Error::IllegalSectionStart { .. } => "a section of PEM begins in another one".into(),
        pem::Error::Base64Decode(_) => "what a section of PEM holds is not base64".into(),
        other => format!("{other:?}"),
    }
}

fn is_key(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey)
}

fn no_pem(file: &Pem, what: &str) -> String {
    let name = &file.name;
    match file.bytes.first() {
        None => format!("{name}: is empty"),
        Some(0x30) => format!("{name}: has no {what} in PEM; if it is DER, convert it with openssl"),
        _ => format!("{name}: has no {what} in PEM, which begins with -----BEGIN {}-----", what.to_uppercase()),
    }
}

/// Seconds since 1970.
pub(crate) fn seconds(time: &Time) -> u64 {
    time.to_unix_duration().as_secs()
}

/// Parses a certificate.
pub(crate) fn parse(der: &[u8]) -> Result<X509, String> {
    X509::from_der(der).map_err(|error| error.to_string())
}

fn has_key(der: &CertificateDer<'_>, key: &[u8]) -> bool {
    webpki::EndEntityCert::try_from(der).is_ok_and(|parsed| parsed.subject_public_key_info().as_ref() == key)
}

/// The hosts of a certificate, in lower case.
fn host_names(der: &CertificateDer<'_>) -> Vec<String> {
    let parsed = webpki::EndEntityCert::try_from(der);
    parsed.map(|parsed| parsed.valid_dns_names().map(str::to_ascii_lowercase).collect()).unwrap_or_default()
}
