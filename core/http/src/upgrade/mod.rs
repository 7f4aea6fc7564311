//! Protocol upgrade (RFC 9110 section 7.8): which requests may change the protocol of their connection.
//!
//! ```text
//! mod.rs    which requests may have a protocol upgrade
//! sent.rs   parser of the bytes that an application sends after an upgrade: status, and the frames of a WebSocket
//! ```

pub(crate) mod sent;

use crate::grammar::{elements, is_token};
use crate::parser::types::{Framing, Head};
use crate::parser::version::Version;

impl Head {
    /// Whether the application may have the connection: a GET without a body asks for another protocol than HTTP. Everything
    /// else is answered as if the field `Upgrade` were not there (RFC 9110 section 7.8 lets a server ignore it). That the
    /// connection is to close behind the response does not matter, as it closes behind the other protocol: lighttpd sends
    /// `close, upgrade`.
    #[cold]
    pub fn may_upgrade(&self, bytes: &[u8]) -> bool {
        let protocols = || self.protocols(bytes);
        self.asks_upgrade
            && self.version == Version::Http11
            && self.gateway.is_none()
            && self.method.of(bytes) == b"GET"
            && matches!(self.framing, Framing::Absent | Framing::Length(0))
            && !self.expects_continue
            && protocols().all(is_protocol)
            && protocols().any(|protocol| !is_http(protocol))
    }

    /// Whether WebSocket is the only protocol that is asked for (RFC 6455 section 4.2.1).
    pub fn asks_websocket(&self, bytes: &[u8]) -> bool {
        let mut protocols = self.protocols(bytes);
        protocols.next().is_some_and(|first| first.eq_ignore_ascii_case(b"websocket")) && protocols.next().is_none()
    }

    /// The protocols of all fields `Upgrade`.
    fn protocols<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let is_upgrade = |name: &[u8]| name.eq_ignore_ascii_case(b"upgrade");
        let fields = self.fields.iter().filter(move |field| is_upgrade(field.name.of(bytes)));
        fields.flat_map(move |field| elements(field.value.of(bytes)))
    }
}

/// `protocol-name ["/" protocol-version]`
fn is_protocol(protocol: &[u8]) -> bool {
    let mut parts = protocol.splitn(2, |&byte| byte == b'/');
    parts.all(is_token)
}

/// Other versions of HTTP, and TLS, are matters of the server: they are not spoken.
fn is_http(protocol: &[u8]) -> bool {
    let name = protocol.split(|&byte| byte == b'/').next().unwrap_or_default();
    [&b"http"[..], b"h2c", b"h2", b"h3", b"tls"].iter().any(|ours| name.eq_ignore_ascii_case(ours))
}
