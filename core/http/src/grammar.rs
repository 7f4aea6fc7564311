//! Character classes and small productions of RFC 9110, RFC 9112 and RFC 3986.

use std::borrow::Cow;
use std::net::Ipv6Addr;

/// Classes of a byte as bits, in a table because it is faster than comparisons.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        let special = matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        );
        if byte.is_ascii_alphanumeric() || special {
            classes[at] |= TCHAR;
        }
        let sub_delims = matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b';' | b'=');
        if byte.is_ascii_alphanumeric() || sub_delims || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            classes[at] |= REG_NAME;
        }
        if byte == b'\t' || (byte >= b' ' && byte != 0x7f) {
            classes[at] |= FIELD;
        }
        // Visible ASCII except `#`. RFC 3986 wants some percent-encoded that browsers do not encode (`|`, `[`, `{`,
        // `"`).
        if byte > b' ' && byte < 0x7f && byte != b'#' {
            classes[at] |= TARGET;
        }
        if matches!(byte, b'%' | b'\\') {
            classes[at] |= NOTABLE;
        }
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            classes[at] |= VARIABLE;
        }
        at += 1;
    }
    classes
};
const TCHAR: u8 = 1;
const FIELD: u8 = 2;
const TARGET: u8 = 8;
/// `%` and `\`: the path needs further checks.
const NOTABLE: u8 = 16;
/// `reg-name` (RFC 3986 section 3.2.2) without percent-encoding, which is rare. A comma is legal but refused: it is
/// only seen where an intermediary joins two Host fields.
const REG_NAME: u8 = 4;
/// Of the name of a variable that a web server sends.
const VARIABLE: u8 = 32;

/// `tchar` (RFC 9110 section 5.6.2).
#[inline(always)]
pub(crate) const fn is_tchar(byte: u8) -> bool {
    CLASSES[byte as usize] & TCHAR != 0
}

/// `field-vchar`, SP or HTAB (RFC 9110 section 5.5): anything but control characters.
#[inline(always)]
pub(crate) const fn is_field_content(byte: u8) -> bool {
    CLASSES[byte as usize] & FIELD != 0
}

/// `field-value` (RFC 9110 section 5.5), perhaps with white space around it.
#[inline]
pub fn is_field_value(bytes: &[u8]) -> bool {
    // Branchless, so that the compiler can vectorize it: almost all values are valid.
    bytes.iter().fold(true, |valid, &byte| valid & ((byte >= b' ') & (byte != 0x7f) | (byte == b'\t')))
}

/// `token` (RFC 9110 section 5.6.2).
#[inline(always)]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

/// A name of a variable (RFC 3875 section 4.1) as shells accept it, but for a digit in front.
#[inline(always)]
pub(crate) fn is_variable_name(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| CLASSES[byte as usize] & VARIABLE != 0)
}

/// Whether a request target has valid characters only (RFC 9112 section 3.2); `Some(true)` if its path has `%` or a
/// backslash and needs further checks.
#[inline(always)]
pub(crate) fn scan_target(target: &[u8]) -> Option<bool> {
    let (mut all, mut any) = (TARGET, 0);
    for &byte in target {
        all &= CLASSES[byte as usize];
        any |= CLASSES[byte as usize];
    }
    (all != 0).then_some(any & NOTABLE != 0)
}

/// Removes optional white space (RFC 9110 section 5.6.3) from the front.
pub(crate) fn trim_start(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// Removes optional white space from both ends.
pub fn trim(bytes: &[u8]) -> &[u8] {
    let mut bytes = trim_start(bytes);
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The elements of a list except empty ones (RFC 9110 section 5.6.1.2).
pub fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim).filter(|element| !element.is_empty())
}

/// The value of a Content-Length (RFC 9110 section 8.6), up to 2^63 - 1. Leading zeros are refused although the grammar
/// allows them: some programs read them as octal.
pub(crate) fn content_length(bytes: &[u8]) -> Option<u64> {
    if matches!(bytes, [] | [b'0', _, ..]) {
        return None;
    }
    let mut value: u64 = 0;
    for &byte in bytes {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
    }
    (value <= i64::MAX as u64).then_some(value)
}

/// A port without leading zeros.
pub(crate) fn port(digits: &[u8]) -> Option<u16> {
    content_length(digits).and_then(|port| u16::try_from(port).ok())
}

/// `uri-host [ ":" port ]` (RFC 9110 section 7.2, RFC 3986 section 3.2.2), not empty, no user information.
pub(crate) fn is_authority(bytes: &[u8]) -> bool {
    let (host_is_good, port) = match bytes {
        [b'[', rest @ ..] => {
            let Some(end) = memchr::memchr(b']', rest) else { return false };
            (is_address(&rest[..end]), &rest[end + 1..])
        }
        _ => {
            let (host, port) = bytes.split_at(memchr::memchr(b':', bytes).unwrap_or(bytes.len()));
            let is_plain = |byte: &u8| CLASSES[usize::from(*byte)] & REG_NAME != 0;
            let is_escaped = || host.iter().all(|byte| is_plain(byte) || *byte == b'%') && has_whole_escapes(host);
            (!host.is_empty() && (host.iter().all(is_plain) || is_escaped()), port)
        }
    };
    let port_is_good = match port {
        [] => true,
        [b':', digits @ ..] => {
            digits.iter().all(u8::is_ascii_digit) && (digits.len() < 5 || digits.len() == 5 && digits <= b"65535")
        }
        _ => false,
    };
    host_is_good && port_is_good
}

/// The host of an authority, and the port if it has one.
pub fn split_authority(bytes: &[u8]) -> (&[u8], Option<u16>) {
    let start = memchr::memchr(b']', bytes).unwrap_or(0);
    match memchr::memchr(b':', &bytes[start..]) {
        Some(colon) => {
            let (host, port) = bytes.split_at(start + colon);
            (host, std::str::from_utf8(&port[1..]).ok().and_then(|digits| digits.parse().ok()))
        }
        None => (bytes, None),
    }
}

/// Whether `bytes` is an address in brackets. Versions above 6 are refused: they are not in use.
#[cold]
fn is_address(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// Whether two hexadecimal digits follow each `%` (RFC 3986 section 2.1).
#[cold]
pub(crate) fn has_whole_escapes(bytes: &[u8]) -> bool {
    let is_whole = |at: usize| matches!(bytes[at + 1..], [high, low, ..] if hex(high).is_some() && hex(low).is_some());
    memchr::memchr_iter(b'%', bytes).all(is_whole)
}

/// Bytes with their percent-encoding removed. A `%` that two hexadecimal digits do not follow stays, as in Python and in
/// browsers.
pub fn percent_decoded(encoded: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', encoded).is_none() {
        return Cow::Borrowed(encoded);
    }
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some(found) = memchr::memchr(b'%', rest) {
        decoded.extend_from_slice(&rest[..found]);
        let (byte, behind) = match &rest[found + 1..] {
            [high, low, behind @ ..] if let (Some(high), Some(low)) = (hex(*high), hex(*low)) => {
                (high << 4 | low, behind)
            }
            behind => (b'%', behind),
        };
        decoded.push(byte);
        rest = behind;
    }
    decoded.extend_from_slice(rest);
    Cow::Owned(decoded)
}

/// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )` (RFC 9112 section 7.1.1), no white space at the end.
pub(crate) fn is_chunk_extension(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let [b';', behind @ ..] = trim_start(rest) {
        let Some(behind) = skip_token(trim_start(behind)) else { return false };
        rest = behind;
        if let [b'=', value @ ..] = trim_start(behind) {
            let value = trim_start(value);
            let Some(behind) = skip_quoted(value).or_else(|| skip_token(value)) else { return false };
            rest = behind;
        }
    }
    rest.is_empty()
}

/// The bytes after a `token`.
fn skip_token(bytes: &[u8]) -> Option<&[u8]> {
    let length = bytes.iter().position(|&byte| !is_tchar(byte)).unwrap_or(bytes.len());
    (length > 0).then(|| &bytes[length..])
}

/// The bytes after a `quoted-string` (RFC 9110 section 5.6.4) without control characters, which a line never has.
fn skip_quoted(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.strip_prefix(b"\"")?;
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return Some(behind),
            [b'\\', _, behind @ ..] | [_, behind @ ..] => behind,
            [] => return None,
        }
    }
}

/// The bytes of a native string of WSGI (PEP 3333); `None` if it is not Latin-1.
pub fn encode_latin1(text: &str) -> Option<Cow<'_, [u8]>> {
    match text.is_ascii() {
        true => Some(Cow::Borrowed(text.as_bytes())),
        false => text.chars().map(|character| u8::try_from(character).ok()).collect(),
    }
}

/// The value of a hexadecimal digit.
pub(crate) const fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_besides_those_of_the_cases() {
        assert!(is_authority(b"[::ffff:1.2.3.4]") && is_authority(b"a:00080"));
        for bad in "[ [1.2.3.4] [v1.a] a:123456 a%4z a%z4 a%2db%".split(' ') {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn malformed_escapes_stay() {
        for (encoded, decoded) in
            [("", ""), ("%41%4a%4A", "AJJ"), ("%", "%"), ("a%4", "a%4"), ("%%41%4z%z4", "%A%4z%z4")]
        {
            assert_eq!(*percent_decoded(encoded.as_bytes()), *decoded.as_bytes(), "{encoded}");
        }
        assert_eq!(*percent_decoded(b"%e9+%00"), *b"\xe9+\0");
    }
}
