//! Checks and writes the header fields of an application's response.

use crate::grammar::{content_length, is_field_content, is_tchar, is_token, trim};
use crate::parser::body::check_trailer;
use crate::parser::version::Version;
use crate::protocol::Protocol;
use crate::reject::Invalid;
use crate::response::{Response, State};

impl Response {
    /// Checks one field and writes it.
    #[inline]
    pub fn field(&mut self, out: &mut Vec<u8>, name: &str, value: &str) -> Result<(), Invalid> {
        if self.state != State::Started {
            return Err(Invalid("a header field outside of the head".into()));
        }
        // Written before it is checked; a refused field is truncated from the buffer.
        let before = out.len();
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        let taken = match push_latin1(out, value) {
            Err(_) if !is_token(name.as_bytes()) => Err(bad_name(name)),
            Err(culprit) => Err(Invalid(format!("header {name}: {culprit}: {value:?}"))),
            Ok(()) => match name {
                // The usual spelling of common fields.
                "Content-Type" | "Location" | "Set-Cookie" | "Cache-Control" | "ETag" | "Vary" => Ok(true),
                "Content-Length" => self.take_length(value),
                _ => self.take_other(name, value),
            },
        };
        match taken {
            Ok(true) => out.extend_from_slice(b"\r\n"),
            Ok(false) | Err(_) => out.truncate(before),
        }
        taken.map(drop)
    }

    /// Checks one trailer field and adds its line.
    #[cold]
    pub fn trailer(lines: &mut Vec<u8>, name: &str, value: &str) -> Result<(), Invalid> {
        if !is_token(name.as_bytes()) {
            return Err(bad_name(name));
        }
        check_trailer(name.as_bytes()).map_err(|reject| Invalid(format!("trailer {name}: {}", reject.reason)))?;
        let before = lines.len();
        lines.extend([name, ": "].concat().bytes());
        if let Err(culprit) = push_latin1(lines, value) {
            lines.truncate(before);
            return Err(Invalid(format!("trailer {name}: {culprit}: {value:?}")));
        }
        lines.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Checks a Content-Length. `Ok(false)`: do not write it.
    fn take_length(&mut self, value: &str) -> Result<bool, Invalid> {
        let Some(length) = content_length(value.as_bytes()) else {
            return Err(Invalid(format!("Content-Length {value:?}: expected a decimal number")));
        };
        match self.length {
            Some(earlier) if earlier != length => {
                Err(Invalid(format!("two different Content-Lengths: {earlier} and {length}")))
            }
            Some(_) => Ok(false),
            None => {
                self.length = Some(length);
                // 204 never has a Content-Length (RFC 9110 section 8.6).
                Ok(self.status != 204)
            }
        }
    }

    /// Checks any other field. `Ok(false)`: do not write it.
    fn take_other(&mut self, name: &str, value: &str) -> Result<bool, Invalid> {
        if !is_token(name.as_bytes()) {
            return Err(bad_name(name));
        }
        match name.len() {
            2 | 7 | 10 | 16..=19 => return self.may_pass(name, value),
            4 => self.has_date |= name.eq_ignore_ascii_case("Date"),
            6 => self.has_server |= name.eq_ignore_ascii_case("Server"),
            12 => self.has_request_id |= name.eq_ignore_ascii_case("X-Request-ID"),
            14 if name.eq_ignore_ascii_case("Content-Length") => return self.take_length(value),
            _ => {}
        }
        Ok(true)
    }

    /// Refuses hop-by-hop fields, which only the server sets (PEP 3333, RFC 9110 section 7.6.1). `Connection: close`
    /// and `keep-alive` are applied but not written: `Ok(false)`. A response 426 must have `Upgrade`, and with it `Connection: upgrade`
    /// (RFC 9110 sections 7.8 and 15.5.22); HTTP/2 and gateways have neither.
    fn may_pass(&mut self, name: &str, value: &str) -> Result<bool, Invalid> {
        const HOP_BY_HOP: [&str; 8] = [
            "Keep-Alive",
            "Proxy-Authenticate",
            "Proxy-Authorization",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
        ];
        let asks_upgrade = self.status == 426;
        let has_upgrade = self.version == Version::Http11 && self.dialect.protocol == Protocol::Http;
        if name.eq_ignore_ascii_case("Connection") {
            let (mut persists, mut is_written) = (self.persists, false);
            for option in value.as_bytes().split(|&byte| byte == b',').map(trim) {
                if option.eq_ignore_ascii_case(b"close") {
                    persists = false;
                } else if asks_upgrade && option.eq_ignore_ascii_case(b"upgrade") {
                    is_written = has_upgrade;
                } else if !option.eq_ignore_ascii_case(b"keep-alive") {
                    return Err(hop_by_hop(name));
                }
            }
            self.persists = persists;
            return Ok(is_written);
        }
        if asks_upgrade && name.eq_ignore_ascii_case("Upgrade") {
            return Ok(has_upgrade);
        }
        match HOP_BY_HOP.iter().any(|hop| name.eq_ignore_ascii_case(hop)) {
            true => Err(hop_by_hop(name)),
            false => Ok(true),
        }
    }
}

/// Appends text as Latin-1, the encoding of a WSGI "native string", or returns the invalid character.
#[inline]
pub(super) fn push_latin1(out: &mut Vec<u8>, text: &str) -> Result<(), &'static str> {
    let bytes = text.as_bytes();
    // Branchless, so that the compiler can vectorize it: almost all values are ASCII.
    #[allow(clippy::manual_range_contains)]
    let plain = bytes.iter().fold(true, |plain, &byte| plain & (byte >= b' ') & (byte < 0x7f));
    if plain {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) if is_field_content(byte) => out.push(byte),
            Ok(_) => return Err("a control character would split the response"),
            Err(_) => return Err("a character outside of Latin-1"),
        }
    }
    Ok(())
}

#[cold]
fn bad_name(name: &str) -> Invalid {
    match name.chars().find(|&character| !character.is_ascii() || !is_tchar(character as u8)) {
        None => Invalid("a header with an empty name".into()),
        Some(culprit) => Invalid(format!("header name {name:?}: {culprit:?} is not allowed in a name")),
    }
}

#[cold]
fn hop_by_hop(name: &str) -> Invalid {
    Invalid(format!("header {name}: hop-by-hop fields belong to the server (PEP 3333)"))
}
