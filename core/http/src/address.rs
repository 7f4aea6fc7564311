//! Socket addresses as text.

use std::fmt::Write;
use std::net::IpAddr;
use std::ops::Deref;

/// An address as text; an IPv4-mapped IPv6 address is written as IPv4.
///
/// Formatted here because behind a proxy each request has another address, and the standard library takes as long for
/// it as all other work on proxy headers.
#[derive(Clone, Copy, Debug)]
pub struct AddressText {
    bytes: [u8; Self::LONGEST],
    length: usize,
}

impl AddressText {
    /// Longest text: six groups of four digits and an IPv4 address.
    const LONGEST: usize = 45;

    /// The text of an address.
    #[inline]
    pub fn of(address: IpAddr) -> Self {
        let mut text = AddressText { bytes: [0; Self::LONGEST], length: 0 };
        match address.to_canonical() {
            IpAddr::V4(address) => {
                for (at, octet) in address.octets().into_iter().enumerate() {
                    if at > 0 {
                        text.push(b'.');
                    }
                    if octet >= 100 {
                        text.push(b'0' + octet / 100);
                    }
                    if octet >= 10 {
                        text.push(b'0' + octet / 10 % 10);
                    }
                    text.push(b'0' + octet % 10);
                }
            }
            // The buffer holds the longest text.
            IpAddr::V6(address) => _ = write!(text, "{address}"),
        }
        text
    }

    #[inline(always)]
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

impl Write for AddressText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        text.bytes().for_each(|byte| self.push(byte));
        Ok(())
    }
}

impl Deref for AddressText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_formatted_as_by_the_standard_library() {
        for text in ["0.0.0.0", "1.20.103.255", "255.255.255.255", "10.0.0.9", "99.100.199.200", "::1", "2001:db8::1"] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(*AddressText::of(address), *text.as_bytes());
        }
        for octet in 0..=255 {
            let address = IpAddr::from([octet, 1, octet, 2]);
            assert_eq!(*AddressText::of(address), *address.to_string().as_bytes());
        }
        let longest: IpAddr = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap();
        assert_eq!(*AddressText::of(longest), *longest.to_string().as_bytes());
        assert_eq!(*AddressText::of("::ffff:1.2.3.4".parse().unwrap()), *b"1.2.3.4");
    }
}
