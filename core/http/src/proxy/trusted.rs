//! Which peers are trusted proxies, and which headers they may use: a bit for each of the enum in `forwarded.rs`.

use std::net::{IpAddr, SocketAddr};

use crate::proxy::forwarded::Header;
use crate::reject::Invalid;

/// The trusted proxies, and the headers that are used from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// Networks and their masks. An IPv4-mapped IPv6 address (`::ffff:1.2.3.4`) counts as IPv4.
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
    unix: bool,
    /// A bit for each trusted [`Header`].
    headers: u8,
}

impl TrustedProxies {
    /// Trusts addresses, networks (`10.0.0.0/8`) and, for the word `unix`, peers on a Unix socket, each with the given
    /// `headers`, whose names are in lower case.
    pub fn new<'a>(
        networks: impl IntoIterator<Item = &'a str>,
        headers: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Invalid> {
        let mut trust = TrustedProxies::default();
        for text in networks {
            match text {
                "unix" => trust.unix = true,
                _ => trust.add(text).ok_or_else(|| Invalid(format!("\"{text}\" is no network")))?,
            }
        }
        for name in headers {
            let header = Header::of(name.as_bytes());
            trust.headers |= header.ok_or_else(|| Invalid(format!("\"{name}\" is no forwarded header")))?.bit();
        }
        Ok(trust)
    }

    fn add(&mut self, text: &str) -> Option<()> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address.parse().ok()?, Some(prefix.parse::<u32>().ok()?)),
            None => (text.parse().ok()?, None),
        };
        match address {
            IpAddr::V4(address) => self.add_v4(address.to_bits(), prefix.unwrap_or(32))?,
            IpAddr::V6(address) => match (address.to_ipv4_mapped(), prefix.unwrap_or(128)) {
                (Some(mapped), prefix @ 96..=128) => self.add_v4(mapped.to_bits(), prefix - 96)?,
                (_, prefix) => {
                    let mask = u128::MAX.checked_shl(128_u32.checked_sub(prefix)?).unwrap_or(0);
                    self.v6.push((address.to_bits() & mask, mask));
                }
            },
        }
        Some(())
    }

    fn add_v4(&mut self, address: u32, prefix: u32) -> Option<()> {
        let mask = u32::MAX.checked_shl(32_u32.checked_sub(prefix)?).unwrap_or(0);
        self.v4.push((address & mask, mask));
        Some(())
    }

    /// Whether an address is one of a proxy.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => self.v4.iter().any(|&(network, mask)| address.to_bits() & mask == network),
            IpAddr::V6(address) => self.v6.iter().any(|&(network, mask)| address.to_bits() & mask == network),
        }
    }

    /// Whether peers on a Unix socket are proxies.
    pub fn contains_unix(&self) -> bool {
        self.unix
    }

    /// Whether a peer is a proxy; one without an address is on a Unix socket.
    pub fn contains_peer(&self, peer: Option<SocketAddr>) -> bool {
        peer.map_or(self.unix, |peer| self.contains(peer.ip()))
    }

    #[inline]
    pub(crate) fn trusts_header(&self, header: Header) -> bool {
        self.headers & header.bit() != 0
    }

    /// Whether [`TrustedProxies::withholds`] can be true for a field of such a sender.
    #[inline]
    pub fn is_selective(&self, trusted: bool) -> bool {
        !trusted || self.headers != Header::ALL
    }

    /// Whether a field is hidden from the application: a proxy header whose sender is no proxy (not `trusted`), or that
    /// is not in the trusted headers, so that anybody may have written it.
    #[inline]
    pub fn withholds(&self, name: &[u8], trusted: bool) -> bool {
        match Header::of(name) {
            Some(header) => !(trusted && self.trusts_header(header)),
            // Other proxies use further names for the same: -Ssl, -Protocol, -Scheme, -Server.
            None => !trusted && name.get(..12).is_some_and(|start| start.eq_ignore_ascii_case(b"x-forwarded-")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trust(networks: &str) -> TrustedProxies {
        TrustedProxies::new(networks.split(' '), []).unwrap()
    }

    #[test]
    fn networks_contain_their_addresses() {
        for (networks, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1 ::ffff:10.0.0.1", "11.0.0.1 9.255.255.255 ::a00:1 ::1"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.0 192.0.2.2"),
            ("192.0.2.128/25", "192.0.2.128 192.0.2.255", "192.0.2.127"),
            ("0.0.0.0/0", "1.2.3.4 255.255.255.255 ::ffff:1.2.3.4", ":: 2001:db8::1"),
            ("::/0", ":: 2001:db8::1", "1.2.3.4 ::ffff:1.2.3.4"),
            ("fd00::/8", "fd00::1 fdff::1", "fe00::1 fc00::"),
            ("2001:db8::1", "2001:db8::1", "2001:db8::2 2001:db8::"),
            ("2001:db8::/127 ::1", "2001:db8::1 ::1", "2001:db8::2"),
            ("::ffff:10.0.0.0/104", "10.1.1.1", "11.0.0.0 ::a00:1"),
            ("::ffff:192.0.2.1", "192.0.2.1 ::ffff:192.0.2.1", "192.0.2.2"),
            ("unix", "", "127.0.0.1 ::1"),
        ] {
            let trust = trust(networks);
            for address in inside.split_whitespace() {
                assert!(trust.contains(address.parse().unwrap()), "{networks}: {address}");
            }
            for address in outside.split_whitespace() {
                assert!(!trust.contains(address.parse().unwrap()), "{networks}: {address}");
            }
        }
    }

    #[test]
    fn a_unix_socket_is_trusted_only_by_name() {
        assert!(trust("unix").contains_peer(None) && trust("10.0.0.1 unix").contains_unix());
        assert!(!trust("0.0.0.0/0 ::/0").contains_peer(None));
        assert!(!trust("unix").contains_peer(Some(SocketAddr::from(([127, 0, 0, 1], 1)))));
    }

    #[test]
    fn invalid_networks_are_refused() {
        for word in ["", "/", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "a", "10.0.0.0/", "10.0.0.1:80", "[::1]", "Unix"]
        {
            let error = TrustedProxies::new([word], []).unwrap_err().to_string();
            assert_eq!(error, format!("\"{word}\" is no network"));
        }
        let error = TrustedProxies::new([], ["x-forwarded-by"]).unwrap_err().to_string();
        assert!(error.contains("\"x-forwarded-by\""), "{error}");
    }

    #[test]
    fn untrusted_headers_are_withheld() {
        let trust = TrustedProxies::new(["10.0.0.0/8"], ["forwarded", "x-forwarded-for"]).unwrap();
        for (name, from_proxy, from_others) in [
            ("Forwarded", false, true),
            ("x-FORWARDED-for", false, true),
            ("X-Forwarded-Proto", true, true),
            ("X-Forwarded-Prefix", true, true),
            ("X-Forwarded-Ssl", false, true),
            ("X-Forwarded-", false, true),
            ("X-Forwarded", false, false),
            ("Forwarded-For", false, false),
            ("Host", false, false),
        ] {
            assert_eq!(trust.withholds(name.as_bytes(), true), from_proxy, "{name}");
            assert_eq!(trust.withholds(name.as_bytes(), false), from_others, "{name}");
        }
    }

    #[test]
    fn all_headers_of_a_fully_trusted_proxy_are_passed() {
        let all = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"];
        let one_less = TrustedProxies::new(["unix"], all).unwrap();
        let trust = TrustedProxies::new(["unix"], all.into_iter().chain(["x-forwarded-prefix"])).unwrap();
        assert!(!trust.is_selective(true) && trust.is_selective(false));
        assert!(one_less.is_selective(true) && one_less.is_selective(false));
    }
}
