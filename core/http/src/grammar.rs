//! Character classes and small productions of RFC 9110 and RFC 3986.

/// What an octet may be part of, looked up instead of compared: heads are full of them.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let octet = byte as u8;
        let special = matches!(
            octet,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        );
        if octet.is_ascii_alphanumeric() || special {
            classes[byte] |= TCHAR;
        }
        let sub_delims = matches!(octet, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b';' | b'=');
        if octet.is_ascii_alphanumeric() || sub_delims || matches!(octet, b'-' | b'.' | b'_' | b'~' | b'%') {
            classes[byte] |= REG_NAME;
        }
        if octet == b'\t' || (octet >= b' ' && octet != 0x7f) {
            classes[byte] |= FIELD;
        }
        byte += 1;
    }
    classes
};
const TCHAR: u8 = 1;
const FIELD: u8 = 2;
/// `reg-name` (RFC 3986 section 3.2.2). A comma is legal there, but only ever seen where an intermediary joined two
/// Host fields, so it is refused.
const REG_NAME: u8 = 4;

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

/// `token` (RFC 9110 section 5.6.2).
#[inline(always)]
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_tchar(byte))
}

/// A request target holds visible ASCII only (RFC 9112 section 3.2). Characters that RFC 3986 wants
/// percent-encoded but browsers send as they are (`|`, `[`, `{`, `"`) pass; a fragment never does.
pub(crate) const fn is_target(byte: u8) -> bool {
    byte > b' ' && byte < 0x7f && byte != b'#'
}

/// The optional white space of RFC 9110 section 5.6.3, removed from both ends.
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// `1*DIGIT` up to 2^63 - 1: the value of a Content-Length (RFC 9110 section 8.6).
pub(crate) fn content_length(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
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

/// `uri-host [ ":" port ]` (RFC 9110 section 7.2, RFC 3986 section 3.2.2), not empty, no user information.
pub(crate) fn is_authority(bytes: &[u8]) -> bool {
    let (host, port) = match bytes {
        [b'[', rest @ ..] => {
            let Some(end) = memchr::memchr(b']', rest) else { return false };
            let inside = &rest[..end];
            if inside.is_empty()
                || !inside.iter().all(|&byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.' | b'v'))
            {
                return false;
            }
            (inside, &rest[end + 1..])
        }
        _ => bytes.split_at(memchr::memchr(b':', bytes).unwrap_or(bytes.len())),
    };
    let host_is_good =
        !host.is_empty() && (bytes[0] == b'[' || host.iter().all(|&byte| CLASSES[usize::from(byte)] & REG_NAME != 0));
    let port_is_good = match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    host_is_good && port_is_good
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
    fn authorities() {
        for good in ["a", "a.b:80", "[::1]", "[::1]:8080", "127.0.0.1", "a_b", "a:"] {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in
            ["", ":80", "a/b", "u@a", "a,b", "a b", "[", "[]", "[::1", "[::1]x", "a:b", "a:123456", "a:1:2", "\u{e9}"]
        {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn lengths() {
        assert_eq!(content_length(b"9223372036854775807"), Some(i64::MAX as u64));
        for bad in ["", "9223372036854775808", "99999999999999999999999", "+1", "-1", "1 ", "0x1", "1_0", "1,1"] {
            assert_eq!(content_length(bad.as_bytes()), None, "{bad}");
        }
    }
}
