//! Check of an opening handshake, and its answer (RFC 6455 section 4.2).

use crate::extension::Compression;
use crate::sha1::sha1;
use poorhttp_http::{elements, is_field_value, is_token};

/// What is hashed behind the key (RFC 6455 section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Fields of the answer that are set here, or belong to no answer 101.
const RESERVED: [&str; 7] = [
    "connection",
    "content-length",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-version",
    "transfer-encoding",
    "upgrade",
];

/// Why a handshake is refused: status and reason. The answer has the field `Sec-WebSocket-Version: 13`, and with 426 also
/// `Upgrade: websocket`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the answer.
    pub status: u16,
    /// What is wrong.
    pub reason: &'static str,
}

/// A valid handshake of a client.
#[derive(Clone, Debug)]
pub struct Handshake {
    accept: String,
    /// The subprotocols that the client speaks, those that it prefers first.
    pub subprotocols: Vec<String>,
    /// How messages are compressed.
    pub compression: Option<Compression>,
}

impl Handshake {
    /// Checks the header fields of a request for a WebSocket, whose names are in lower case.
    pub fn of<'a>(
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        may_compress: bool,
    ) -> Result<Handshake, Refusal> {
        let malformed = |reason| Err(Refusal { status: 400, reason });
        let values = |name: &'static [u8]| fields.clone().filter(move |field| field.0 == name).map(|field| field.1);
        let only = |name| {
            let mut found = values(name);
            found.next().filter(|_| found.next().is_none())
        };
        if only(b"sec-websocket-version") != Some(b"13") {
            return Err(Refusal { status: 426, reason: "the version of WebSocket is not 13" });
        }
        let Some(key) = only(b"sec-websocket-key").filter(|key| is_key(key)) else {
            return malformed("Sec-WebSocket-Key is missing or malformed");
        };
        let subprotocols: Vec<&[u8]> = values(b"sec-websocket-protocol").flat_map(elements).collect();
        if !subprotocols.iter().all(|name| is_token(name)) {
            return malformed("Sec-WebSocket-Protocol is malformed");
        }
        Ok(Handshake {
            accept: base64(&sha1(&[key, GUID].concat())),
            subprotocols: subprotocols.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
            compression: may_compress.then(|| Compression::negotiate(values(b"sec-websocket-extensions"))).flatten(),
        })
    }

    /// The head of the answer that accepts, with the subprotocol and fields of the application. `Err`: what is wrong with them.
    pub fn head<'a>(
        &self,
        subprotocol: Option<&str>,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Vec<u8>, String> {
        let mut head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n".to_vec();
        let mut add = |name: &[u8], value: &[u8]| {
            head.extend([name, b": ", value, b"\r\n"].iter().flat_map(|part| part.iter()));
        };
        add(b"Sec-WebSocket-Accept", self.accept.as_bytes());
        if let Some(compression) = &self.compression {
            add(b"Sec-WebSocket-Extensions", compression.answer().as_bytes());
        }
        if let Some(subprotocol) = subprotocol {
            if !is_token(subprotocol.as_bytes()) {
                return Err(format!("{subprotocol:?} is no subprotocol"));
            }
            add(b"Sec-WebSocket-Protocol", subprotocol.as_bytes());
        }
        for (name, value) in fields {
            let shown = String::from_utf8_lossy(name);
            if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(&shown)) {
                return Err(format!("the server itself sends the header {shown}"));
            }
            if subprotocol.is_some() && shown.eq_ignore_ascii_case("sec-websocket-protocol") {
                return Err("the subprotocol is given twice".to_owned());
            }
            if !is_token(name) || !is_field_value(value) {
                return Err(format!("the header {shown:?} is malformed"));
            }
            add(name, value);
        }
        head.extend_from_slice(b"\r\n");
        Ok(head)
    }
}

/// Whether a key is 16 bytes in Base64.
fn is_key(key: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.len() == 24 && key.strip_suffix(b"==").is_some_and(|digits| digits.iter().all(is_digit))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let bits = part.iter().chain(&[0; 2]).take(3).fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        let digit = |at: usize| char::from(DIGITS[bits >> (18 - 6 * at) & 63]);
        text.extend((0..4).map(|at| if at <= part.len() { digit(at) } else { '=' }));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = &'static [(&'static str, &'static str)];

    const KEY: (&str, &str) = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    const VERSION: (&str, &str) = ("sec-websocket-version", "13");

    fn bytes(fields: Fields) -> impl Iterator<Item = (&'static [u8], &'static [u8])> + Clone {
        fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }

    fn refusal(fields: Fields) -> &'static str {
        Handshake::of(bytes(fields), true).err().map_or("", |refusal| refusal.reason)
    }

    #[test]
    fn the_example_of_the_specification() {
        let fields: Fields = &[KEY, VERSION, ("sec-websocket-protocol", "chat, superchat")];
        let handshake = Handshake::of(bytes(fields), true).unwrap();
        assert_eq!(handshake.subprotocols, ["chat", "superchat"]);
        let head = handshake.head(Some("chat"), bytes(&[("x-a", "b")])).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&head),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: chat\r\nx-a: b\r\n\r\n"
        );
    }

    #[test]
    fn who_is_refused() {
        assert_eq!(refusal(&[KEY, VERSION]), "");
        assert!(refusal(&[KEY]).contains("version"));
        assert!(refusal(&[KEY, ("sec-websocket-version", "8")]).contains("version"));
        assert!(refusal(&[VERSION]).contains("Key"));
        assert!(refusal(&[VERSION, KEY, KEY]).contains("Key"));
        assert!(refusal(&[VERSION, ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=")]).contains("Key"));
        assert!(refusal(&[VERSION, KEY, ("sec-websocket-protocol", "a b")]).contains("Protocol"));
    }

    #[test]
    fn what_applications_may_not_send() {
        let handshake = Handshake::of(bytes(&[KEY, VERSION]), true).unwrap();
        let with = |fields| handshake.head(Some("chat"), bytes(fields));
        assert!(with(&[("x", "a\r\nb: c")]).is_err());
        assert!(with(&[("x y", "a")]).is_err());
        assert!(with(&[("Upgrade", "a")]).is_err());
        assert!(with(&[("Sec-WebSocket-Protocol", "a")]).is_err());
        assert!(handshake.head(None, bytes(&[("Sec-WebSocket-Protocol", "a")])).is_ok());
        assert!(handshake.head(Some("a\r\nb"), bytes(&[])).is_err());
    }
}
