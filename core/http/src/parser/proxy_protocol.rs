//! PROXY protocol header, versions 1 and 2: the address of the client, sent by a proxy before the first request.
//!
//! The header is never guessed (section 2 of the specification): if it is configured, a connection without it is
//! refused; if not, the header is a malformed request.

use std::net::{IpAddr, SocketAddr};

use crate::grammar::port;
use crate::reject::Reject;

/// The client of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The proxy itself, for a health check.
    Proxy,
    /// A client whose address is not given.
    Unknown,
    /// A client of a Unix socket of the proxy.
    Unix,
    /// A client with this address.
    Address(SocketAddr),
}

/// A parsed PROXY protocol header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The client of the connection.
    pub source: Source,
    /// The client speaks TLS with the proxy.
    pub secure: bool,
}

const ABSENT: Reject = Reject::bad("no PROXY protocol header, which is expected here");
const MALFORMED: Reject = Reject::bad("a malformed PROXY protocol header");
const TOO_LONG: Reject = Reject::bad("a line of the PROXY protocol over 107 bytes");

/// Parses the header at the start of `bytes` and returns its length. `None`: it is incomplete.
///
/// Faults are looked for in the order of the bytes, so the result does not depend on how they arrive.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, Reject> {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(one, other)| one == other);
    match bytes.first() {
        None => Ok(None),
        Some(b'P') if begins(b"PROXY ") => parse_line(bytes),
        Some(b'\r') if begins(SIGNATURE) => parse_binary(bytes),
        Some(_) => Err(ABSENT),
    }
}

/// Length limit of a version 1 line with its CRLF (section 2.1).
const LONGEST_LINE: usize = 107;

fn parse_line(bytes: &[u8]) -> Result<Option<(ProxyHeader, usize)>, Reject> {
    let within = &bytes[..bytes.len().min(LONGEST_LINE)];
    let is_short = within.len() < LONGEST_LINE;
    match memchr::memchr2(b'\r', b'\n', within) {
        Some(end) => match within[end..] {
            [b'\r', b'\n', ..] => Ok(Some((parse_version_1(&within[..end]).ok_or(MALFORMED)?, end + 2))),
            [b'\r'] if is_short => Ok(None),
            [b'\r'] => Err(TOO_LONG),
            _ => Err(MALFORMED),
        },
        None if is_short => Ok(None),
        None => Err(TOO_LONG),
    }
}

/// Parses a version 1 line without its CRLF.
fn parse_version_1(line: &[u8]) -> Option<ProxyHeader> {
    // The specification says to ignore the rest of the line after UNKNOWN.
    if let Some([] | [b' ', ..]) = line.strip_prefix(b"PROXY UNKNOWN") {
        return Some(ProxyHeader { source: Source::Unknown, secure: false });
    }
    let mut words = std::str::from_utf8(line).ok()?.split(' ').skip(1);
    let mut next = || words.next();
    let is_v4 = match next()? {
        "TCP4" => true,
        "TCP6" => false,
        _ => return None,
    };
    let mut address = || next()?.parse::<IpAddr>().ok().filter(|address| address.is_ipv4() == is_v4);
    let (source, _) = (address()?, address()?);
    let (port, _) = (port(next()?.as_bytes())?, port(next()?.as_bytes())?);
    next().is_none().then(|| ProxyHeader { source: Source::Address(SocketAddr::new(source, port)), secure: false })
}

/// The first bytes of version 2 (section 2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Length of the fixed part before the addresses.
const FIXED: usize = 16;
/// Address families, in the upper four bits of a byte.
const INET: u8 = 0x10;
const INET6: u8 = 0x20;
const UNIX: u8 = 0x30;
/// Transports, in the lower four bits.
const STREAM: u8 = 0x01;
const DATAGRAM: u8 = 0x02;
/// Length of two addresses with their ports.
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
    // The address family of a health check is to be ignored.
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
        // Datagrams carry no HTTP, so the length of their addresses does not matter; nor for an unspecified family.
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
    let secure = if addresses == 0 { false } else { check_tlvs(whole, FIXED + addresses)? };
    Ok(Some((ProxyHeader { source, secure }, whole.len())))
}

/// Types of the TLV fields after the addresses (section 2.2).
const CRC32C: u8 = 0x03;
const SSL: u8 = 0x20;

/// Checks the TLV fields after the addresses. Returns whether the client speaks TLS.
fn check_tlvs(whole: &[u8], start: usize) -> Result<bool, Reject> {
    let mut secure = false;
    let mut rest = &whole[start..];
    while !rest.is_empty() {
        let (kind, value, behind) = next_tlv(rest).ok_or(MALFORMED)?;
        match kind {
            SSL => secure |= speaks_tls(value).ok_or(MALFORMED)?,
            CRC32C => {
                let at = whole.len() - behind.len() - value.len();
                let checksum_field: &[u8; 4] = value.try_into().map_err(|_| MALFORMED)?;
                if u32::from_be_bytes(*checksum_field) != checksum(whole, at) {
                    return Err(Reject::bad("a PROXY protocol header whose checksum is wrong"));
                }
            }
            _ => {}
        }
        rest = behind;
    }
    Ok(secure)
}

/// Type and value of the first TLV field, and the bytes after it.
fn next_tlv(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [kind, high, low, behind @ ..] = bytes else { return None };
    let (value, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
    Some((*kind, value, behind))
}

/// The first bit of a PP2_TYPE_SSL value means TLS; TLVs about the client's certificate follow (section 2.2.6).
fn speaks_tls(value: &[u8]) -> Option<bool> {
    let [bits, _, _, _, _, rest @ ..] = value else { return None };
    let mut rest = rest;
    while !rest.is_empty() {
        (_, _, rest) = next_tlv(rest)?;
    }
    Some(bits & 1 != 0)
}

/// CRC32c (RFC 9260 appendix A) of a header; its four checksum bytes at `at` count as zeros.
fn checksum(whole: &[u8], at: usize) -> u32 {
    let counted = |(position, &byte): (usize, &u8)| if (at..at + 4).contains(&position) { 0 } else { byte };
    !whole.iter().enumerate().map(counted).fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        // RFC 3720 appendix B.4: 32 bytes of zeros, of ones, and ascending.
        assert_eq!(checksum(&[0; 32], 100), 0x8a91_36aa);
        assert_eq!(checksum(&[0xff; 32], 100), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(checksum(&ascending, 100), 0x46dd_794e);
        assert_ne!(checksum(&ascending, 4), checksum(&ascending, 100));
    }
}
