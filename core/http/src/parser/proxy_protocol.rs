//! The PROXY protocol, versions 1 and 2: what a proxy that does not understand HTTP puts before the first request, to say
//! whose connection it passes on.
//!
//! Whether it is there is agreed beforehand, and never guessed (section 2 of its text): it is either expected and must be
//! there, or it is a malformed request.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::reject::Reject;

/// Whose connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The proxy's own, for a health check.
    Proxy,
    /// That of somebody whose address is not said.
    Unknown,
    /// That of somebody who has connected to a Unix socket of the proxy.
    Unix,
    /// That of whoever has this address.
    Address(SocketAddr),
}

/// What a proxy says of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// Whose it is.
    pub source: Source,
    /// Its client speaks TLS with the proxy.
    pub secure: bool,
}

const ABSENT: Reject = Reject::bad("no PROXY protocol header, which is expected here");
const MALFORMED: Reject = Reject::bad("a malformed PROXY protocol header");
const TOO_LONG: Reject = Reject::bad("a line of the PROXY protocol over 107 octets");

/// Reads what stands at the start of `bytes`, and says how long it is. `None`: it is not complete.
///
/// The outcome does not depend on how the bytes arrived: faults are looked for in the order of the octets.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, Reject> {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(one, other)| one == other);
    match bytes.first() {
        None => Ok(None),
        Some(b'P') if begins(b"PROXY ") => parse_line(bytes),
        Some(b'\r') if begins(SIGNATURE) => parse_binary(bytes),
        Some(_) => Err(ABSENT),
    }
}

/// Octets of a line of version 1 with its CRLF (section 2.1).
const LONGEST_LINE: usize = 107;

fn parse_line(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, Reject> {
    let within = &bytes[..bytes.len().min(LONGEST_LINE)];
    let is_short = within.len() < LONGEST_LINE;
    match memchr::memchr2(b'\r', b'\n', within) {
        Some(end) => match within[end..] {
            [b'\r', b'\n', ..] => Ok(Some((understand(&within[..end]).ok_or(MALFORMED)?, end + 2))),
            [b'\r'] if is_short => Ok(None),
            [b'\r'] => Err(TOO_LONG),
            _ => Err(MALFORMED),
        },
        None if is_short => Ok(None),
        None => Err(TOO_LONG),
    }
}

/// A line without its end.
fn understand(line: &[u8]) -> Option<ProxyHeader> {
    // What follows that word is to be ignored.
    if let Some([] | [b' ', ..]) = line.strip_prefix(b"PROXY UNKNOWN") {
        return Some(ProxyHeader { source: Source::Unknown, secure: false });
    }
    let mut words = std::str::from_utf8(line).ok()?.split(' ').skip(1);
    let mut next = || words.next();
    let source = match next()? {
        "TCP4" => {
            let (source, _): (Ipv4Addr, Ipv4Addr) = (next()?.parse().ok()?, next()?.parse().ok()?);
            IpAddr::V4(source)
        }
        "TCP6" => {
            let (source, _): (Ipv6Addr, Ipv6Addr) = (next()?.parse().ok()?, next()?.parse().ok()?);
            IpAddr::V6(source)
        }
        _ => return None,
    };
    let (port, _) = (port(next()?)?, port(next()?)?);
    next().is_none().then(|| ProxyHeader { source: Source::Address(SocketAddr::new(source, port)), secure: false })
}

/// 0 to 65535, without zeros in front.
fn port(digits: &str) -> Option<u16> {
    let is_plain = digits.bytes().all(|octet| octet.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if is_plain { digits.parse().ok() } else { None }
}

/// What version 2 begins with (section 2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Octets before the addresses.
const FIXED: usize = 16;
/// Families, in the higher half of an octet.
const INET: u8 = 0x10;
const INET6: u8 = 0x20;
const UNIX: u8 = 0x30;
/// Transports, in its lower half.
const STREAM: u8 = 0x01;
const DATAGRAM: u8 = 0x02;
/// Octets of two addresses and their ports.
const V4_ADDRESSES: usize = 12;
const V6_ADDRESSES: usize = 36;
const UNIX_ADDRESSES: usize = 216;

fn parse_binary(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, Reject> {
    let Some(&command) = bytes.get(12) else { return Ok(None) };
    let is_local = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(Reject::bad("an unknown version or command of the PROXY protocol")),
    };
    let Some(&family) = bytes.get(13) else { return Ok(None) };
    // Of a health check everything else is to be ignored.
    if !is_local && (family & 0xf0 > UNIX || family & 0x0f > DATAGRAM) {
        return Err(MALFORMED);
    }
    let Some(&[high, low]) = bytes.get(14..FIXED) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let addresses = match family {
        _ if is_local => 0,
        family if family == INET | STREAM => V4_ADDRESSES,
        family if family == INET6 | STREAM => V6_ADDRESSES,
        family if family == UNIX | STREAM => UNIX_ADDRESSES,
        _ => 0,
    };
    if length < addresses {
        return Err(MALFORMED);
    }
    let Some(whole) = bytes.get(..FIXED + length) else { return Ok(None) };
    let source = match (&whole[FIXED..], addresses) {
        _ if is_local => Source::Proxy,
        // Datagrams carry no HTTP. Where their addresses end, or those of what is unspecified, need not be known.
        (_, 0) => Source::Unknown,
        (&[a, b, c, d, _, _, _, _, high, low, ..], V4_ADDRESSES) => {
            Source::Address(SocketAddr::from(([a, b, c, d], u16::from_be_bytes([high, low]))))
        }
        (inside, V6_ADDRESSES) => match (inside.first_chunk::<16>(), inside.get(32..34)) {
            (Some(address), Some(&[high, low])) => {
                Source::Address(SocketAddr::from((*address, u16::from_be_bytes([high, low]))))
            }
            _ => return Err(MALFORMED),
        },
        _ => Source::Unix,
    };
    let secure = if addresses == 0 { false } else { read_additions(whole, FIXED + addresses)? };
    Ok(Some((ProxyHeader { source, secure }, whole.len())))
}

/// Types of what may stand behind the addresses, each with its length (section 2.2).
const CRC32C: u8 = 0x03;
const SSL: u8 = 0x20;

/// Walks over what stands behind the addresses. Says whether the client speaks TLS.
fn read_additions(whole: &[u8], start: usize) -> Result<bool, Reject> {
    let mut secure = false;
    let mut rest = &whole[start..];
    while !rest.is_empty() {
        let (kind, value, behind) = addition(rest).ok_or(MALFORMED)?;
        match kind {
            SSL => secure |= speaks_tls(value).ok_or(MALFORMED)?,
            CRC32C => {
                let at = whole.len() - behind.len() - value.len();
                let said: &[u8; 4] = value.try_into().map_err(|_| MALFORMED)?;
                if u32::from_be_bytes(*said) != checksum(whole, at) {
                    return Err(Reject::bad("a PROXY protocol header whose checksum is wrong"));
                }
            }
            _ => {}
        }
        rest = behind;
    }
    Ok(secure)
}

/// Type, value, and what stands behind them.
fn addition(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [kind, high, low, behind @ ..] = bytes else { return None };
    let (value, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
    Some((*kind, value, behind))
}

/// The first of the bits says so; behind them and what became of the client's certificate stand further additions
/// (section 2.2.6).
fn speaks_tls(value: &[u8]) -> Option<bool> {
    let [bits, _, _, _, _, rest @ ..] = value else { return None };
    let mut rest = rest;
    while !rest.is_empty() {
        (_, _, rest) = addition(rest)?;
    }
    Some(bits & 1 != 0)
}

/// CRC32c (RFC 9260 appendix A) of a header whose checksum, four octets at `at`, counts as zeros.
fn checksum(whole: &[u8], at: usize) -> u32 {
    let octet = |(position, &octet): (usize, &u8)| if (at..at + 4).contains(&position) { 0 } else { octet };
    !whole.iter().enumerate().map(octet).fold(u32::MAX, |sum, octet| {
        (0..8).fold(sum ^ u32::from(octet), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        // RFC 3720 appendix B.4: 32 octets of zeros, of ones, and ascending.
        assert_eq!(checksum(&[0; 32], 100), 0x8a91_36aa);
        assert_eq!(checksum(&[0xff; 32], 100), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(checksum(&ascending, 100), 0x46dd_794e);
        assert_ne!(checksum(&ascending, 4), checksum(&ascending, 100));
    }
}
