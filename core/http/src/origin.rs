//! Where a request comes from, as the proxies say through which it has come.

use std::net::IpAddr;

use crate::grammar::split_authority;

/// The client, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Client {
    /// Whoever has connected: nothing else is said.
    #[default]
    Peer,
    /// Somebody whose address is not said: `unknown`, a name that only its proxy understands, or a Unix socket. It is not
    /// the peer.
    Unknown,
    /// An address, and perhaps a port.
    Address(IpAddr, Option<u16>),
}

/// What the client speaks with the outermost proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// As it stands in a URI.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port that need not be said.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// What trusted proxies say of where a request comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Who has sent it.
    pub client: Client,
    /// By what it was sent; `None`: not said.
    pub scheme: Option<Scheme>,
    /// What it asks for instead of what Host says, a valid authority; empty: what Host says.
    pub authority: Vec<u8>,
    /// Proxies have said the host, and not only another port for it.
    pub(crate) is_renamed: bool,
    /// The port that it was sent to; `None`: not said.
    pub port: Option<u16>,
    /// The path below which the outermost proxy knows us, decoded; without a slash at its end.
    pub prefix: Vec<u8>,
}

impl Origin {
    /// The host without its port, if proxies have said it.
    pub fn host(&self) -> Option<&[u8]> {
        self.is_renamed.then(|| split_authority(&self.authority).0)
    }
}
