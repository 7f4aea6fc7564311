//! What trusted proxies say of connections and of the requests on them, and from when to when it holds.

use std::borrow::Cow;
use std::net::IpAddr;

use poorhttp_http::{Client, Intake, Origin, Protocol, Reject, Source, Trust};

use crate::connection::Connection;

/// What we think of whoever has connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody is trusted, and what proxies say are fields like any others.
    #[default]
    Unasked,
    /// A proxy that we believe.
    Trusted,
    /// Somebody else: what only a proxy can know may be made up.
    Stranger,
}

/// What proxies have said of a request.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Nothing, if they have said nothing.
    origin: Option<Origin>,
    /// That is the request in hand, and not one that was answered.
    is_current: bool,
    /// Its head is the one that is remembered.
    is_remembered: bool,
}

impl Standing {
    fn of(trusted: bool) -> Self {
        if trusted { Standing::Trusted } else { Standing::Stranger }
    }
}

impl Connection {
    /// Finds out about whoever has connected.
    #[inline]
    pub(crate) fn introduce(&mut self, trust: Option<&Trust>, proxied: bool) {
        if let Some(trust) = trust {
            self.standing = Standing::of(trust.contains_peer(self.peer));
            self.awaits_preamble = proxied && self.standing == Standing::Trusted;
        }
    }

    /// Whether heads may say where they come from, or the whole connection does.
    #[inline]
    pub(crate) fn is_spoken_for(&self) -> bool {
        self.standing == Standing::Trusted || self.is_secure
    }

    /// What proxies say of the request in hand.
    #[inline]
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.said.as_ref().filter(|said| said.is_current)?.origin.as_ref()
    }

    /// Whom to name as the client of the request in hand.
    #[inline]
    pub(crate) fn client(&self) -> Option<(IpAddr, Option<u16>)> {
        if self.awaits_name() { None } else { self.client_by(self.origin()) }
    }

    /// Whether the peer is the client of an earlier request: a web server names another with each.
    #[inline]
    fn awaits_name(&self) -> bool {
        let head = || Some(&self.work.as_ref()?.intake.head);
        self.served > 0
            && self.inbound.dialect().protocol != Protocol::Http
            && !head().is_some_and(|head| head.length > 0 && head.gateway.is_some())
    }

    /// The same of the last request, even if it has been answered.
    pub(crate) fn last_client(&self) -> Option<(IpAddr, Option<u16>)> {
        self.client_by(self.said.as_ref().and_then(|said| said.origin.as_ref()))
    }

    /// The same as said by an origin, if any.
    #[inline]
    fn client_by(&self, origin: Option<&Origin>) -> Option<(IpAddr, Option<u16>)> {
        match origin.map_or(Client::Peer, |origin| origin.client) {
            // Nobody has port 0: a gateway or a preamble has said none.
            Client::Peer => self.peer.map(|peer| (peer.ip(), Some(peer.port()).filter(|&port| port != 0))),
            Client::Unknown => None,
            Client::Address(address, port) => Some((address, port)),
        }
    }

    /// What the request in hand asks for, host and perhaps port.
    pub(crate) fn asked_for(&self) -> &[u8] {
        match (self.origin(), &self.work) {
            (Some(origin), _) if !origin.authority.is_empty() => &origin.authority,
            (_, Some(work)) => work.intake.head.asked_for(work.intake.head_bytes()),
            (_, None) => &[],
        }
    }

    /// The path below which the client of the request in hand knows us.
    pub(crate) fn script(&self) -> Cow<'_, [u8]> {
        let prefix = self.origin().map_or(&[][..], |origin| &origin.prefix);
        let intake = self.work.as_ref().map(|work| &work.intake);
        match intake.map_or(&[][..], |intake| intake.head.script(intake.head_bytes())) {
            [] => Cow::Borrowed(prefix),
            // A web server has said one as well, which stands below theirs.
            ours => Cow::Owned([prefix, ours].concat()),
        }
    }

    /// Nobody speaks for the request behind the one that was answered, before its own head has come.
    #[inline]
    pub(crate) fn forget_origin(&mut self) {
        if let Some(said) = &mut self.said {
            said.is_current = false;
        }
    }

    /// The head in hand is remembered now.
    #[inline]
    pub(crate) fn remember_origin(&mut self) {
        if let Some(said) = &mut self.said {
            said.is_remembered = true;
        }
    }

    /// Notes what is said of the request whose head has come.
    pub(crate) fn learn(&mut self, trust: Option<&Trust>) -> Result<(), Reject> {
        let Connection { work: Some(work), said, standing, is_secure, .. } = self else { return Ok(()) };
        let Some(trust) = trust else { return Ok(()) };
        let Intake { head, repeated, .. } = &work.intake;
        match said {
            // Nobody has ever said anything.
            None if *repeated => return Ok(()),
            Some(said) if *repeated && said.is_remembered => {
                said.is_current = true;
                return Ok(());
            }
            _ => {}
        }
        let trusted = *standing == Standing::Trusted;
        let origin = trust.origin(head, work.intake.head_bytes(), trusted, *is_secure)?;
        if origin.is_some() || said.is_some() {
            **said.get_or_insert_default() = Said { origin, is_current: true, is_remembered: *repeated };
        }
        Ok(())
    }

    /// A web server has named its client in a gateway protocol, who is the peer from now on.
    #[cold]
    pub(crate) fn learn_from_gateway(&mut self, trust: Option<&Trust>) {
        let gateway = self.work.as_ref().and_then(|work| work.intake.head.gateway.as_ref());
        if let (Some(gateway), Some(trust)) = (gateway, trust) {
            self.peer = gateway.client;
            // One without an address may be anybody.
            self.standing = Standing::of(gateway.client.is_some_and(|client| trust.contains(client.ip())));
        }
    }

    pub(crate) fn learn_from_preamble(&mut self, trust: Option<&Trust>, source: Source) {
        self.awaits_preamble = false;
        // The head has its own time.
        self.until = 0;
        let Some(trust) = trust else { return };
        let (peer, trusted) = match source {
            Source::Proxy => return,
            // It could be taken for the proxy, to be believed whatever it says.
            Source::Unknown => (None, false),
            Source::Unix => (None, trust.contains_unix()),
            Source::Address(address) => (Some(address), trust.contains(address.ip())),
        };
        (self.peer, self.standing) = (peer, Standing::of(trusted));
    }
}

/// Whose a request is, for people.
pub(crate) fn named(client: Option<(IpAddr, Option<u16>)>) -> String {
    match client {
        Some((IpAddr::V6(address), Some(port))) => format!(" of [{address}]:{port}"),
        Some((address, Some(port))) => format!(" of {address}:{port}"),
        Some((address, None)) => format!(" of {address}"),
        None => String::new(),
    }
}
