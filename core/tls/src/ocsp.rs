//! Checks an OCSP response (RFC 6960) before clients get it: whether it fits the certificate, and until when.

use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate as X509;
use x509_cert::der::asn1::AnyRef;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode, Encode, Header, Reader, SliceReader};
use x509_ocsp::{BasicOcspResponse, CertId, CertStatus, OcspResponse, OcspResponseStatus};

use crate::provider::{digest, provider};

/// Seconds by which the clock of the responder may be ahead.
const SKEW: u64 = 300;

const BASIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
/// Extended key usage of a certificate with which its issuer has others sign responses.
const OCSP_SIGNING: &[u8] = &[0x2B, 6, 1, 5, 5, 7, 3, 9];

/// Returns the second since 1970 from which the response must not be sent any more. An error says why it must not be sent.
///
/// `chain` is the certificate, followed by the certificates of its issuers. If the chain has no issuer, the signature and the
/// hash of the issuer's key are not checked here; clients check both anyway.
pub(crate) fn end_of(response: &[u8], chain: &[CertificateDer<'_>], now: u64) -> Result<u64, String> {
    if response.starts_with(b"-----BEGIN") {
        return Err("it is PEM; convert it to DER".into());
    }
    let response = OcspResponse::from_der(response).map_err(|_| "it is not an OCSP response in DER")?;
    if response.response_status != OcspResponseStatus::Successful {
        return Err(format!("the responder has answered {:?} instead of Successful", response.response_status));
    }
    let basic = response.response_bytes.filter(|bytes| bytes.response_type == BASIC);
    let basic = basic.ok_or("it holds no basic response")?.response.into_bytes();
    let parsed = BasicOcspResponse::from_der(&basic).map_err(|error| format!("it is damaged: {error}"))?;

    let unreadable = |error| format!("the certificate cannot be read: {error}");
    let parse = |der: &CertificateDer<'_>| X509::from_der(der).map_err(unreadable);
    let leaf = parse(chain.first().ok_or("there is no certificate")?)?;
    let mut issuer = None;
    for der in chain {
        let candidate = parse(der)?;
        if candidate.tbs_certificate.subject == leaf.tbs_certificate.issuer {
            issuer = Some((der, candidate));
            break;
        }
    }
    let responses = &parsed.tbs_response_data.responses;
    let own = responses.iter().find(|each| is_of(&each.cert_id, &leaf, issuer.as_ref().map(|(_, issuer)| issuer)));
    let own = own.ok_or("it is about another certificate")?;
    match own.cert_status {
        CertStatus::Good(_) => {}
        CertStatus::Revoked(_) => return Err("it says that the certificate is revoked".into()),
        CertStatus::Unknown(_) => return Err("it says that the certificate is unknown".into()),
    }
    let begin = own.this_update.0.to_unix_duration().as_secs();
    let end = own.next_update.map_or(u64::MAX, |time| time.0.to_unix_duration().as_secs());
    if begin > now + SKEW {
        return Err("it is not valid yet; is the clock right?".into());
    }
    if end <= now {
        return Err("it has expired; a newer one must be fetched".into());
    }
    if let Some((issuer, _)) = issuer {
        check_signature(&basic, parsed.signature.raw_bytes(), issuer, now)?;
    }
    Ok(end)
}

/// Whether a response is about a certificate.
fn is_of(id: &CertId, leaf: &X509, issuer: Option<&X509>) -> bool {
    let Some(algorithm) = hash(&id.hash_algorithm.oid) else { return false };
    let has_hash = |expected: &[u8], bytes: &[u8]| digest::digest(algorithm, bytes).as_ref() == expected;
    let leaf = &leaf.tbs_certificate;
    id.serial_number == leaf.serial_number
        && leaf.issuer.to_der().is_ok_and(|name| has_hash(id.issuer_name_hash.as_bytes(), &name))
        && issuer.is_none_or(|issuer| {
            let key = &issuer.tbs_certificate.subject_public_key_info.subject_public_key;
            has_hash(id.issuer_key_hash.as_bytes(), key.raw_bytes())
        })
}

fn hash(oid: &ObjectIdentifier) -> Option<&'static digest::Algorithm> {
    const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
    const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
    const SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
    const SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");
    match *oid {
        SHA1 => Some(&digest::SHA1_FOR_LEGACY_USE_ONLY),
        SHA256 => Some(&digest::SHA256),
        SHA384 => Some(&digest::SHA384),
        SHA512 => Some(&digest::SHA512),
        _ => None,
    }
}

/// Checks that the issuer has signed a basic response, or somebody whose certificate the issuer has made for this.
fn check_signature(basic: &[u8], signature: &[u8], issuer: &CertificateDer<'_>, now: u64) -> Result<(), String> {
    let signed = Signed::read(basic).map_err(|error| format!("it is damaged: {error}"))?;
    let algorithms = provider().signature_verification_algorithms.all;
    if is_signed_by(issuer, &signed, signature, algorithms) {
        return Ok(());
    }
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
    let is_delegated = |responder: &CertificateDer<'_>| {
        let (Ok(anchor), Ok(parsed)) = (anchor_from_trusted_cert(issuer), EndEntityCert::try_from(responder)) else {
            return false;
        };
        let usage = KeyUsage::required(OCSP_SIGNING);
        parsed.verify_for_usage(algorithms, &[anchor], &[], now, usage, None, None).is_ok()
            && is_signed_by(responder, &signed, signature, algorithms)
    };
    match signed.certificates.iter().any(is_delegated) {
        true => Ok(()),
        false => Err("neither the issuer of the certificate has signed it, nor somebody whom it has named".into()),
    }
}

fn is_signed_by(
    signer: &CertificateDer<'_>,
    signed: &Signed<'_>,
    signature: &[u8],
    algorithms: &[&dyn SignatureVerificationAlgorithm],
) -> bool {
    // For a kind of signature there is one algorithm for each kind of key.
    EndEntityCert::try_from(signer).is_ok_and(|signer| {
        let mut fitting = algorithms.iter().filter(|each| each.signature_alg_id().as_ref() == signed.algorithm);
        fitting.any(|algorithm| signer.verify_signature(*algorithm, signed.content, signature).is_ok())
    })
}

/// What a signature is of, byte for byte, and who may have made it.
struct Signed<'a> {
    content: &'a [u8],
    /// What the AlgorithmIdentifier of the signature holds.
    algorithm: &'a [u8],
    certificates: Vec<CertificateDer<'a>>,
}

impl<'a> Signed<'a> {
    fn read(basic: &'a [u8]) -> x509_cert::der::Result<Self> {
        let mut reader = SliceReader::new(basic)?;
        Header::decode(&mut reader)?;
        let content = reader.tlv_bytes()?;
        let algorithm = AnyRef::decode(&mut reader)?.value();
        // The signature.
        reader.tlv_bytes()?;
        let mut certificates = Vec::new();
        if !reader.is_finished() {
            let list = AnyRef::from_der(AnyRef::decode(&mut reader)?.value())?;
            let mut each = SliceReader::new(list.value())?;
            while !each.is_finished() {
                certificates.push(CertificateDer::from(each.tlv_bytes()?));
            }
        }
        Ok(Signed { content, algorithm, certificates })
    }
}
