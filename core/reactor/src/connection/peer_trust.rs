//! What trusted proxies say of connections and of the requests on them, and from when to when it holds.

use std::borrow::Cow;
use std::net::IpAddr;

use poorhttp_http::{Client, Origin, Protocol, ReadBuffer, Reject, Source, TrustedProxies};

use crate::connection::Connection;

/// What we think of whoever has connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PeerTrust {
    /// Nobody is trusted, and what proxies say are fields like any others.
    #[default]
    NotConfigured,
    /// A proxy that we believe.
    Trusted,
    /// Somebody else: what only a proxy can know may be made up.
    Untrusted,
}

/// What proxies have said of a request.
#[derive(Debug, Default)]
pub(crate) struct ForwardedInfo {
    /// Nothing, if they have said nothing.
    origin: Option<Origin>,
    /// That is the request in hand, and not one that was answered.
    is_current: bool,
    /// Its head is the one that is remembered.
    is_cached: bool,
}

impl PeerTrust {
    fn of(trusted: bool) -> Self {
        if trusted { PeerTrust::Trusted } else { PeerTrust::Untrusted }
    }
}

impl Connection {
    /// Finds out about whoever has connected.
    #[inline]
    pub(crate) fn set_peer_trust(&mut self, trust: Option<&TrustedProxies>, proxied: bool) {
        if let Some(trust) = trust {
            self.peer_trust = PeerTrust::of(trust.contains_peer(self.peer));
            self.awaits_proxy_header = proxied && self.peer_trust == PeerTrust::Trusted;
        }
    }

    /// Whether heads may say where they come from, or the whole connection does.
    #[inline]
    pub(crate) fn may_be_forwarded(&self) -> bool {
        self.peer_trust == PeerTrust::Trusted || self.is_secure
    }

    /// What proxies say of the request in hand.
    #[inline]
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.forwarded.as_ref().filter(|forwarded| forwarded.is_current)?.origin.as_ref()
    }

    /// Whom to name as the client of the request in hand.
    #[inline]
    pub(crate) fn client(&self) -> Option<(IpAddr, Option<u16>)> {
        if self.has_stale_peer() { None } else { self.client_of(self.origin()) }
    }

    /// Whether the peer is the client of an earlier request: a web server names another with each.
    #[inline]
    fn has_stale_peer(&self) -> bool {
        let head = || Some(&self.buffers.as_ref()?.read_buffer.head);
        self.served > 0
            && self.parser.dialect().protocol != Protocol::Http
            && !head().is_some_and(|head| head.length > 0 && head.gateway.is_some())
    }

    /// The same of the last request, even if it has been answered.
    pub(crate) fn last_client(&self) -> Option<(IpAddr, Option<u16>)> {
        self.client_of(self.forwarded.as_ref().and_then(|forwarded| forwarded.origin.as_ref()))
    }

    /// The same as said by an origin, if any.
    #[inline]
    fn client_of(&self, origin: Option<&Origin>) -> Option<(IpAddr, Option<u16>)> {
        match origin.map_or(Client::Peer, |origin| origin.client) {
            // Nobody has port 0: neither the gateway nor the PROXY protocol header has named one.
            Client::Peer => self.peer.map(|peer| (peer.ip(), Some(peer.port()).filter(|&port| port != 0))),
            Client::Unknown => None,
            Client::Address(address, port) => Some((address, port)),
        }
    }

    /// What the request in hand asks for, host and perhaps port.
    pub(crate) fn requested_authority(&self) -> &[u8] {
        match (self.origin(), &self.buffers) {
            (Some(origin), _) if !origin.authority.is_empty() => &origin.authority,
            (_, Some(buffers)) => buffers.read_buffer.head.requested_authority(buffers.read_buffer.head_bytes()),
            (_, None) => &[],
        }
    }

    /// The path below which the client of the request in hand knows us.
    pub(crate) fn script(&self) -> Cow<'_, [u8]> {
        let prefix = self.origin().map_or(&[][..], |origin| &origin.prefix);
        let buffer = self.buffers.as_ref().map(|buffers| &buffers.read_buffer);
        match buffer.map_or(&[][..], |buffer| buffer.head.script(buffer.head_bytes())) {
            [] => Cow::Borrowed(prefix),
            // A web server has said one as well, which stands below theirs.
            ours => Cow::Owned([prefix, ours].concat()),
        }
    }

    /// Nobody speaks for the request behind the one that was answered, before its own head has come.
    #[inline]
    pub(crate) fn clear_origin(&mut self) {
        if let Some(forwarded) = &mut self.forwarded {
            forwarded.is_current = false;
        }
    }

    /// The head in hand is remembered now.
    #[inline]
    pub(crate) fn cache_origin(&mut self) {
        if let Some(forwarded) = &mut self.forwarded {
            forwarded.is_cached = true;
        }
    }

    /// Notes what is said of the request whose head has come.
    pub(crate) fn read_forwarded_info(&mut self, trust: Option<&TrustedProxies>) -> Result<(), Reject> {
        let Connection { buffers: Some(buffers), forwarded, peer_trust, is_secure, .. } = self else { return Ok(()) };
        let Some(trust) = trust else { return Ok(()) };
        let ReadBuffer { head, repeated, .. } = &buffers.read_buffer;
        match forwarded {
            // Nobody has ever said anything.
            None if *repeated => return Ok(()),
            Some(forwarded) if *repeated && forwarded.is_cached => {
                forwarded.is_current = true;
                return Ok(());
            }
            _ => {}
        }
        let trusted = *peer_trust == PeerTrust::Trusted;
        let origin = trust.origin(head, buffers.read_buffer.head_bytes(), trusted, *is_secure)?;
        if origin.is_some() || forwarded.is_some() {
            **forwarded.get_or_insert_default() = ForwardedInfo { origin, is_current: true, is_cached: *repeated };
        }
        Ok(())
    }

    /// A web server has named its client in a gateway protocol, who is the peer from now on.
    #[cold]
    pub(crate) fn set_gateway_peer(&mut self, trust: Option<&TrustedProxies>) {
        let gateway = self.buffers.as_ref().and_then(|buffers| buffers.read_buffer.head.gateway.as_ref());
        if let (Some(gateway), Some(trust)) = (gateway, trust) {
            self.peer = gateway.client;
            // One without an address may be anybody.
            self.peer_trust = PeerTrust::of(gateway.client.is_some_and(|client| trust.contains(client.ip())));
        }
    }

    pub(crate) fn apply_proxy_header(&mut self, trust: Option<&TrustedProxies>, source: Source) {
        self.awaits_proxy_header = false;
        // The head has its own time.
        self.time_limit = 0;
        let Some(trust) = trust else { return };
        let (peer, trusted) = match source {
            Source::Proxy => return,
            // It could be taken for the proxy, to be believed whatever it says.
            Source::Unknown => (None, false),
            Source::Unix => (None, trust.contains_unix()),
            Source::Address(address) => (Some(address), trust.contains(address.ip())),
        };
        (self.peer, self.peer_trust) = (peer, PeerTrust::of(trusted));
    }
}

/// Whose a request is, for people.
pub(crate) fn client_suffix(client: Option<(IpAddr, Option<u16>)>) -> String {
    match client {
        Some((IpAddr::V6(address), Some(port))) => format!(" of [{address}]:{port}"),
        Some((address, Some(port))) => format!(" of {address}:{port}"),
        Some((address, None)) => format!(" of {address}"),
        None => String::new(),
    }
}
