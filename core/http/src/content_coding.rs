//! The choice of a content coding (RFC 9110 section 12.5.3).

use crate::grammar::{elements, is_token, trim};

/// A content coding, the densest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentCoding {
    /// RFC 7932
    Brotli,
    /// RFC 8878
    Zstd,
    /// RFC 1952
    Gzip,
}

impl ContentCoding {
    /// All of them, in order of preference.
    pub const ALL: [ContentCoding; 3] = [ContentCoding::Brotli, ContentCoding::Zstd, ContentCoding::Gzip];

    /// The coding of this name in Content-Encoding.
    pub fn named(token: &str) -> Option<Self> {
        ContentCoding::ALL.into_iter().find(|coding| coding.token() == token)
    }

    /// Its name in Content-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            ContentCoding::Brotli => "br",
            ContentCoding::Zstd => "zstd",
            ContentCoding::Gzip => "gzip",
        }
    }

    /// File name extension, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            ContentCoding::Brotli => "br",
            ContentCoding::Zstd => "zst",
            ContentCoding::Gzip => "gz",
        }
    }

    fn is_named(self, name: &[u8]) -> bool {
        // `x-gzip` is the older name of gzip (RFC 9110 section 8.4.1.3).
        name.eq_ignore_ascii_case(self.token().as_bytes())
            || self == ContentCoding::Gzip && name.eq_ignore_ascii_case(b"x-gzip")
    }
}

/// Chooses among the `available` codings by the values of all Accept-Encoding fields; `None`: identity.
///
/// Of the codings with the highest quality value, the first in the order of `available` is chosen. It is identity if the client
/// refuses everything, because a readable response may be worth more to it than a 406.
pub(crate) fn choose<'a>(
    accepted: impl Iterator<Item = &'a [u8]>,
    available: &[ContentCoding],
) -> Option<ContentCoding> {
    let qualities = Qualities::read(accepted);
    let mut best = (None, qualities.identity());
    for &coding in available {
        let quality = qualities.of(coding);
        // At equal quality, a coding is better than identity, and an earlier coding better than a later one.
        if quality > best.1 || quality == best.1 && quality > 0 && best.0.is_none() {
            best = (Some(coding), quality);
        }
    }
    best.0
}

/// Quality values in thousandths; `None`: not listed.
#[derive(Default)]
struct Qualities {
    /// In the order of [`ContentCoding::ALL`].
    codings: [Option<u16>; 3],
    identity: Option<u16>,
    /// The value of `*`.
    others: Option<u16>,
}

impl Qualities {
    /// Reads the values of all Accept-Encoding fields; malformed members are ignored.
    fn read<'a>(accepted: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut qualities = Qualities::default();
        for member in accepted.flat_map(elements) {
            let Some((name, quality)) = weighed(member) else { continue };
            let named = ContentCoding::ALL.iter().zip(&mut qualities.codings).find(|(coding, _)| coding.is_named(name));
            let known = match named {
                Some((_, known)) => known,
                None if name == b"*" => &mut qualities.others,
                None if name.eq_ignore_ascii_case(b"identity") => &mut qualities.identity,
                None => continue,
            };
            // Of a repeated coding the lower value counts, because identity can always be read.
            *known = Some(known.map_or(quality, |known| known.min(quality)));
        }
        qualities
    }

    fn of(&self, coding: ContentCoding) -> u16 {
        self.codings[coding as usize].or(self.others).unwrap_or(0)
    }

    /// Quality of identity: its own, that of `*`, or 0, which is acceptable but below every listed coding.
    fn identity(&self) -> u16 {
        self.identity.or(self.others).unwrap_or(0)
    }
}

/// `codings [ weight ]`
fn weighed(member: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = member.split(|&byte| byte == b';').map(trim);
    let name = parts.next().filter(|name| is_token(name))?;
    let quality = match parts.next() {
        None => 1000,
        Some([b'q' | b'Q', b'=', value @ ..]) => quality(value)?,
        Some(_) => return None,
    };
    parts.next().is_none().then_some((name, quality))
}

/// `qvalue` (RFC 9110 section 12.4.2) in thousandths.
fn quality(value: &[u8]) -> Option<u16> {
    let (whole, digits) = match value {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', digits @ ..] if digits.len() <= 3 => (whole, digits),
        _ => return None,
    };
    let mut thousandths = u16::from(whole - b'0') * 1000;
    for (digit, unit) in digits.iter().zip([100, 10, 1]) {
        thousandths += digit.is_ascii_digit().then(|| u16::from(digit - b'0') * unit)?;
    }
    (thousandths <= 1000).then_some(thousandths)
}
