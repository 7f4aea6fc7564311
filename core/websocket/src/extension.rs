//! Negotiation of the extension permessage-deflate (RFC 7692 section 7.1).

use poorhttp_http::{elements, is_token, trim};

/// The largest window of a server, as a power of two: larger ones take more memory than they save bytes of small messages.
const WINDOW: u8 = 12;

/// What client and server have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The window of the server, as a power of two.
    pub server_window: u8,
    /// The window of the client; `None`: the largest, because the client has not offered to use a smaller one.
    pub client_window: Option<u8>,
    /// The server compresses each message by itself.
    pub server_forgets: bool,
    /// The client compresses each message by itself.
    pub client_forgets: bool,
}

impl Compression {
    /// The first acceptable offer in values of `Sec-WebSocket-Extensions`. `None`: messages are not compressed.
    pub fn negotiate<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<Compression> {
        values.flat_map(elements).find_map(Compression::accept)
    }

    /// Accepts an offer as it is: one with a parameter that is unknown, there twice or has a wrong value is declined.
    fn accept(offer: &[u8]) -> Option<Compression> {
        let mut parts = offer.split(|&byte| byte == b';').map(trim);
        if parts.next() != Some(b"permessage-deflate") {
            return None;
        }
        let mut agreed =
            Compression { server_window: WINDOW, client_window: None, server_forgets: false, client_forgets: false };
        let mut seen: Vec<&[u8]> = Vec::new();
        for part in parts {
            let mut halves = part.splitn(2, |&byte| byte == b'=').map(trim);
            let (name, value) = (halves.next()?, halves.next());
            if seen.contains(&name) || !is_token(name) {
                return None;
            }
            seen.push(name);
            match (name, value) {
                (b"server_no_context_takeover", None) => agreed.server_forgets = true,
                (b"client_no_context_takeover", None) => agreed.client_forgets = true,
                // zlib cannot compress with the smallest window.
                (b"server_max_window_bits", Some(value)) => agreed.server_window = window(value)?.min(WINDOW),
                (b"client_max_window_bits", Some(value)) => {
                    agreed.client_window = Some(window_or_less(value)?.min(WINDOW))
                }
                (b"client_max_window_bits", None) => agreed.client_window = Some(WINDOW),
                _ => return None,
            }
        }
        Some(agreed)
    }

    /// The value of `Sec-WebSocket-Extensions` in the answer.
    pub(crate) fn answer(&self) -> String {
        let mut text = format!("permessage-deflate; server_max_window_bits={}", self.server_window);
        if let Some(window) = self.client_window {
            text += &format!("; client_max_window_bits={window}");
        }
        if self.server_forgets {
            text += "; server_no_context_takeover";
        }
        if self.client_forgets {
            text += "; client_no_context_takeover";
        }
        text
    }
}

/// A window from 9 on.
fn window(value: &[u8]) -> Option<u8> {
    window_or_less(value).filter(|&window| window > 8)
}

/// A window as an integer from 8 to 15 without leading zeros, perhaps in quotes.
fn window_or_less(value: &[u8]) -> Option<u8> {
    let bare = value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value);
    match bare {
        [digit @ b'8'..=b'9'] => Some(digit - b'0'),
        [b'1', digit @ b'0'..=b'5'] => Some(10 + digit - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(offers: &str) -> Option<String> {
        Compression::negotiate([offers.as_bytes()].into_iter()).map(|agreed| agreed.answer())
    }

    #[test]
    fn offers() {
        for (offers, expected) in [
            ("permessage-deflate", "permessage-deflate; server_max_window_bits=12"),
            (
                "permessage-deflate; client_max_window_bits",
                "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12",
            ),
            (
                "permessage-deflate ; server_max_window_bits = 10; client_max_window_bits=\"8\"",
                "permessage-deflate; server_max_window_bits=10; client_max_window_bits=8",
            ),
            (
                "x-other, permessage-deflate; server_max_window_bits=15; server_no_context_takeover; client_no_context_takeover",
                "permessage-deflate; server_max_window_bits=12; server_no_context_takeover; client_no_context_takeover",
            ),
            (
                "permessage-deflate; server_max_window_bits=8, permessage-deflate",
                "permessage-deflate; server_max_window_bits=12",
            ),
        ] {
            assert_eq!(answer(offers).as_deref(), Some(expected), "{offers}");
        }
        for declined in [
            "",
            "x-webkit-deflate-frame",
            "permessage-deflate; unknown",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=8",
            "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=09",
            "permessage-deflate; client_max_window_bits=7",
            "permessage-deflate; client_max_window_bits=",
            "permessage-deflate; client_no_context_takeover=1",
            "permessage-deflate; client_max_window_bits; client_max_window_bits",
            "permessage-deflate;",
        ] {
            assert_eq!(answer(declined), None, "{declined}");
        }
    }
}
