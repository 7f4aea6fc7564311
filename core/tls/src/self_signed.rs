//! A certificate for this machine alone, for the development server.

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, date_time_ymd};
use zeroize::Zeroizing;

/// A certificate that is its own issuer, and its key, in PEM.
pub struct SelfSigned {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: Zeroizing<String>,
}

/// Makes a certificate for `names`: hosts and addresses. It is valid from a year before `year` until a year after it.
pub fn self_signed(names: Vec<String>, year: i32) -> Result<SelfSigned, String> {
    let make = || {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "poorhttp dev");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.not_before = date_time_ymd(year - 1, 12, 31);
        // Browsers refuse more than 825 days.
        params.not_after = date_time_ymd(year + 1, 12, 31);
        let certificate = params.self_signed(&key)?;
        Ok(SelfSigned { certificate: certificate.pem(), key: Zeroizing::new(key.serialize_pem()) })
    };
    make().map_err(|error: rcgen::Error| error.to_string())
}
