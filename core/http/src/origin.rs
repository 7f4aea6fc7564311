//! The type `Origin`: client, scheme, host and path prefix of a request; `proxy/forwarded.rs` fills it.

use std::net::IpAddr;

use crate::grammar::split_authority;

/// The client of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Client {
    /// The peer: no proxy reports another client.
    #[default]
    Peer,
    /// A client without a known address: `unknown`, an obfuscated name, or a Unix socket. It is not the peer.
    Unknown,
    /// An address, and perhaps a port.
    Address(IpAddr, Option<u16>),
}

/// The scheme between the client and the outermost proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain text.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// The scheme in a URI.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The default port.
    pub(crate) fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Origin of a request, from trusted proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The client.
    pub client: Client,
    /// The scheme; `None`: not reported.
    pub scheme: Option<Scheme>,
    /// The authority that replaces the Host field, valid; empty: not reported.
    pub authority: Vec<u8>,
    /// `authority` has another host, not only another port.
    pub(crate) is_renamed: bool,
    /// The port of the request; `None`: not reported.
    pub port: Option<u16>,
    /// The path prefix that the outermost proxy strips, decoded, without a trailing slash.
    pub prefix: Vec<u8>,
}

impl Origin {
    /// The host without its port, if proxies report it.
    pub fn host(&self) -> Option<&[u8]> {
        self.is_renamed.then(|| split_authority(&self.authority).0)
    }
}
