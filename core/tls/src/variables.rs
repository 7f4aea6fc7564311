//! Environ variables that describe a TLS session, named as in mod_ssl (`SSL_PROTOCOL`, `SSL_CLIENT_S_DN`).

use std::borrow::Cow;
use std::fmt::Write;

use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, ProtocolVersion, SupportedCipherSuite};
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Tag, Tagged};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;
use x509_cert::time::Time;

use crate::certificates::parse;

/// A session after its handshake.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionInfo<'a> {
    /// Version of the protocol.
    pub protocol: Option<ProtocolVersion>,
    /// Cipher suite.
    pub cipher: Option<SupportedCipherSuite>,
    /// Host that the client has named.
    pub server_name: Option<&'a str>,
    /// Certificates of the client, its own first.
    pub certificates: Option<&'a [CertificateDer<'static>]>,
    /// The client has resumed an earlier session.
    pub resumed: bool,
}

/// Names and values; a value is UTF-8 without control characters, except line ends in `SSL_CLIENT_CERT`.
pub fn variables(info: &SessionInfo<'_>) -> Vec<(Cow<'static, str>, String)> {
    let mut out = Variables(Vec::new());
    out.add("SSL_PROTOCOL", protocol_name(info.protocol));
    if let Some(suite) = info.cipher {
        let (name, bits) = cipher_name(suite.suite());
        out.add("SSL_CIPHER", name);
        out.add("SSL_CIPHER_USEKEYSIZE", bits);
        out.add("SSL_CIPHER_ALGKEYSIZE", bits);
    }
    if let Some(host) = info.server_name {
        out.add("SSL_TLS_SNI", host);
    }
    out.add("SSL_SESSION_RESUMED", if info.resumed { "Resumed" } else { "Initial" });
    let chain = info.certificates.unwrap_or_default();
    // A client whose certificate is refused has no session.
    out.add("SSL_CLIENT_VERIFY", if chain.is_empty() { "NONE" } else { "SUCCESS" });
    if let Some(own) = chain.first() {
        out.certificate(own);
        for (number, issuer) in chain.iter().skip(1).enumerate() {
            out.add(format!("SSL_CLIENT_CERT_CHAIN_{number}"), pem(issuer));
        }
    }
    out.0
}

struct Variables(Vec<(Cow<'static, str>, String)>);

impl Variables {
    fn add(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    fn certificate(&mut self, der: &CertificateDer<'_>) {
        self.add("SSL_CLIENT_CERT", pem(der));
        // It was verified, so webpki has read it.
        let Ok(parsed) = parse(der) else { return };
        let certificate = &parsed.tbs_certificate;
        let serial = certificate.serial_number.as_bytes();
        // An integer whose first bit is set begins with a zero byte.
        let serial = serial.strip_prefix(&[0]).filter(|rest| !rest.is_empty()).unwrap_or(serial);
        let issuer = certificate.issuer.to_string();
        self.add("SSL_CLIENT_M_VERSION", (certificate.version as u8 + 1).to_string());
        self.add("SSL_CLIENT_M_SERIAL", hexadecimal(serial));
        self.add(
            "SSL_CLIENT_CERT_RFC4523_CEA",
            format!("{{ serialNumber {}, issuer rdnSequence:\"{}\" }}", decimal(serial), issuer.replace('"', "\"\"")),
        );
        let validity = &certificate.validity;
        self.add("SSL_CLIENT_V_START", time_text(&validity.not_before));
        self.add("SSL_CLIENT_V_END", time_text(&validity.not_after));
        self.add("SSL_CLIENT_V_REMAIN", days_left(&validity.not_after).to_string());
        self.name("SSL_CLIENT_S_DN", &certificate.subject);
        self.name("SSL_CLIENT_I_DN", &certificate.issuer);
        self.alternative_names(&parsed);
    }

    /// A distinguished name as a whole (RFC 4514), and each of its parts.
    fn name(&mut self, prefix: &'static str, name: &Name) {
        self.add(prefix, plain(&name.to_string()));
        let mut counts = [0_usize; PARTS.len()];
        for part in name.0.iter().flat_map(|set| set.0.iter()) {
            let Some(kind) = PARTS.iter().position(|(oid, _)| *oid == part.oid) else { continue };
            let Some(value) = text(part) else { continue };
            let (count, short) = (counts[kind], PARTS[kind].1);
            counts[kind] += 1;
            let suffix = if count == 0 { String::new() } else { format!("_{count}") };
            self.add(format!("{prefix}_{short}{suffix}"), plain(value));
        }
    }

    fn alternative_names(&mut self, parsed: &x509_cert::Certificate) {
        let Ok(Some((_, names))) = parsed.tbs_certificate.get::<SubjectAltName>() else { return };
        let (mut hosts, mut mails) = (0, 0);
        for name in &names.0 {
            match name {
                GeneralName::DnsName(host) => {
                    self.add(format!("SSL_CLIENT_SAN_DNS_{hosts}"), plain(host.as_str()));
                    hosts += 1;
                }
                GeneralName::Rfc822Name(mail) => {
                    self.add(format!("SSL_CLIENT_SAN_Email_{mails}"), plain(mail.as_str()));
                    mails += 1;
                }
                _ => {}
            }
        }
    }
}

const fn oid(text: &str) -> ObjectIdentifier {
    ObjectIdentifier::new_unwrap(text)
}

/// Parts of a name that have a variable.
const PARTS: [(ObjectIdentifier, &str); 13] = [
    (oid("2.5.4.6"), "C"),
    (oid("2.5.4.8"), "ST"),
    (oid("2.5.4.7"), "L"),
    (oid("2.5.4.10"), "O"),
    (oid("2.5.4.11"), "OU"),
    (oid("2.5.4.3"), "CN"),
    (oid("2.5.4.12"), "T"),
    (oid("2.5.4.43"), "I"),
    (oid("2.5.4.42"), "G"),
    (oid("2.5.4.4"), "S"),
    (oid("2.5.4.13"), "D"),
    (oid("0.9.2342.19200300.100.1.1"), "UID"),
    (oid("1.2.840.113549.1.9.1"), "Email"),
];

/// The text of a part of a name; `None`: it is of a rare kind.
fn text(part: &AttributeTypeAndValue) -> Option<&str> {
    let value = &part.value;
    match value.tag() {
        Tag::Utf8String => Utf8StringRef::try_from(value).ok().map(|text| text.as_str()),
        Tag::PrintableString => PrintableStringRef::try_from(value).ok().map(|text| text.as_str()),
        Tag::Ia5String => Ia5StringRef::try_from(value).ok().map(|text| text.as_str()),
        Tag::TeletexString => TeletexStringRef::try_from(value).ok().map(|text| text.as_str()),
        _ => None,
    }
}

/// The text without control characters: an issuer may sign any, and a program may pass it on in a header.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn protocol_name(version: Option<ProtocolVersion>) -> &'static str {
    match version {
        Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        _ => "",
    }
}

/// The name that OpenSSL has for a cipher suite, and the bits of its key.
fn cipher_name(suite: CipherSuite) -> (&'static str, &'static str) {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => ("TLS_AES_128_GCM_SHA256", "128"),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => ("TLS_AES_256_GCM_SHA384", "256"),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => ("TLS_CHACHA20_POLY1305_SHA256", "256"),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-ECDSA-AES128-GCM-SHA256", "128"),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-ECDSA-AES256-GCM-SHA384", "256"),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => ("ECDHE-ECDSA-CHACHA20-POLY1305", "256"),
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-RSA-AES128-GCM-SHA256", "128"),
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-RSA-AES256-GCM-SHA384", "256"),
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => ("ECDHE-RSA-CHACHA20-POLY1305", "256"),
        other => (other.as_str().unwrap_or_default(), ""),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02X}");
        out
    })
}

/// A number of any length.
fn decimal(bytes: &[u8]) -> String {
    let mut digits = vec![0_u8];
    for &byte in bytes {
        let mut carry = u32::from(byte);
        for digit in &mut digits {
            carry += u32::from(*digit) * 256;
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}

/// As OpenSSL prints a time: `Nov 23 13:00:00 2026 GMT`.
fn time_text(time: &Time) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let at = time.to_date_time();
    let month = MONTHS.get(usize::from(at.month()).wrapping_sub(1)).copied().unwrap_or_default();
    format!("{month} {:2} {:02}:{:02}:{:02} {} GMT", at.day(), at.hour(), at.minutes(), at.seconds(), at.year())
}

fn days_left(end: &Time) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    end.to_unix_duration().saturating_sub(now).as_secs() / 86_400
}

/// A certificate in PEM.
fn pem(der: &[u8]) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", base64_lines(der))
}

fn base64_lines(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + bytes.len() / 48 + 5);
    for line in bytes.chunks(48) {
        for group in line.chunks(3) {
            let number =
                group.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
            for place in 0..4 {
                let letter = ALPHABET[(number >> (18 - 6 * place) & 63) as usize];
                out.push(if place > group.len() { '=' } else { char::from(letter) });
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_are_decimal() {
        assert_eq!(decimal(&[0]), "0");
        assert_eq!(decimal(&[1, 0]), "256");
        assert_eq!(decimal(&[255; 16]), u128::MAX.to_string());
    }

    #[test]
    fn base64_has_lines_of_64_letters() {
        assert_eq!(base64_lines(b"Man"), "TWFu\n");
        assert_eq!(base64_lines(b"Ma"), "TWE=\n");
        assert_eq!(base64_lines(b"M"), "TQ==\n");
        assert_eq!(base64_lines(&[0; 49]).lines().map(str::len).collect::<Vec<_>>(), [64, 4]);
    }

    #[test]
    fn parts_of_names_are_numbered_and_have_no_control_characters() {
        let mut params = rcgen::CertificateParams::new(vec!["a.example".into(), "b.example".into()]).unwrap();
        params.subject_alt_names.push(rcgen::SanType::Rfc822Name("a@b.example".try_into().unwrap()));
        let name = &mut params.distinguished_name;
        name.push(rcgen::DnType::CommonName, "A\r\nX: ü, \"y\"");
        name.push(rcgen::DnType::OrganizationName, "O");
        params.serial_number = Some(rcgen::SerialNumber::from(vec![0x80, 1]));
        let key = rcgen::KeyPair::generate().unwrap();
        let der = CertificateDer::from(params.self_signed(&key).unwrap());
        let chain = [der.clone(), der];
        let found = variables(&SessionInfo { certificates: Some(&chain), ..SessionInfo::default() });
        let value = |name: &str| found.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_str()).unwrap();
        assert_eq!(value("SSL_CLIENT_VERIFY"), "SUCCESS");
        assert_eq!(value("SSL_CLIENT_S_DN_CN"), "A  X: ü, \"y\"");
        assert_eq!(value("SSL_CLIENT_I_DN_O"), "O");
        assert_eq!(value("SSL_CLIENT_M_SERIAL"), "8001");
        assert_eq!(value("SSL_CLIENT_M_VERSION"), "3");
        assert_eq!((value("SSL_CLIENT_SAN_DNS_1"), value("SSL_CLIENT_SAN_Email_0")), ("b.example", "a@b.example"));
        assert_eq!(value("SSL_CLIENT_CERT"), value("SSL_CLIENT_CERT_CHAIN_0"));
        assert!(value("SSL_CLIENT_CERT_RFC4523_CEA").starts_with("{ serialNumber 32769, issuer rdnSequence:\""));
        for (name, value) in &found {
            let lines = name.starts_with("SSL_CLIENT_CERT") && !name.ends_with("CEA");
            assert!(lines || !value.chars().any(char::is_control), "{name}: {value}");
        }
    }

    #[test]
    fn a_session_without_certificate_has_none_of_its_variables() {
        let found = variables(&SessionInfo { server_name: Some("a.example"), ..SessionInfo::default() });
        let value = |name: &str| found.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_str());
        assert_eq!(value("SSL_CLIENT_VERIFY"), Some("NONE"));
        assert_eq!(value("SSL_TLS_SNI"), Some("a.example"));
        assert_eq!(value("SSL_CLIENT_S_DN"), None);
    }
}
