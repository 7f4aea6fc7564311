//! Finds the request fields for conditions, ranges and content codings (RFC 9110 sections 12.5.3, 13 and 14).
//! `conditional.rs`, `ranges.rs` and `content_coding.rs` evaluate them.

use crate::parser::head::Head;

/// The name of a field.
#[derive(Clone, Copy)]
pub(crate) struct KnownField {
    name: &'static [u8],
    bit: u8,
}

impl KnownField {
    const fn new(name: &'static str, number: u8) -> Self {
        KnownField { name: name.as_bytes(), bit: 1 << number }
    }
}

pub(crate) const RANGE: KnownField = KnownField::new("Range", 0);
pub(crate) const IF_MATCH: KnownField = KnownField::new("If-Match", 1);
pub(crate) const IF_RANGE: KnownField = KnownField::new("If-Range", 2);
pub(crate) const IF_NONE_MATCH: KnownField = KnownField::new("If-None-Match", 3);
pub(crate) const ACCEPT_ENCODING: KnownField = KnownField::new("Accept-Encoding", 4);
pub(crate) const IF_MODIFIED_SINCE: KnownField = KnownField::new("If-Modified-Since", 5);
pub(crate) const IF_UNMODIFIED_SINCE: KnownField = KnownField::new("If-Unmodified-Since", 6);

/// The fields of a request that select or condition the response.
///
/// Only their presence is noted; their values are read on demand. A malformed field never grants more than its absence
/// would: at worst the client gets the whole file again.
#[derive(Clone, Copy, Debug)]
pub struct ConditionalFields<'a> {
    head: &'a Head,
    bytes: &'a [u8],
    /// A bit for each [`KnownField`] that was found.
    found: u8,
}

impl<'a> ConditionalFields<'a> {
    /// Finds the fields of a head in `bytes`.
    #[inline]
    pub fn of(head: &'a Head, bytes: &'a [u8]) -> Self {
        let mut found = 0;
        for field in &head.fields {
            // The length rules out most names before any byte is compared.
            let candidates: &[KnownField] = match field.name.length() {
                5 => &[RANGE],
                8 => &[IF_MATCH, IF_RANGE],
                13 => &[IF_NONE_MATCH],
                15 => &[ACCEPT_ENCODING],
                17 => &[IF_MODIFIED_SINCE],
                19 => &[IF_UNMODIFIED_SINCE],
                _ => continue,
            };
            let name = field.name.of(bytes);
            // The usual spelling is compared before the one without case.
            let is_named = |known: &&KnownField| name == known.name || name.eq_ignore_ascii_case(known.name);
            for known in candidates.iter().filter(is_named) {
                found |= known.bit;
            }
        }
        ConditionalFields { head, bytes, found }
    }

    /// Whether the request has no precondition and no Range; it may have Accept-Encoding.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.found & !ACCEPT_ENCODING.bit == 0
    }

    /// Whether the request has Range.
    pub fn has_range(&self) -> bool {
        self.has(RANGE)
    }

    pub(crate) fn method(&self) -> &'a [u8] {
        self.head.method.of(self.bytes)
    }

    /// Whether the field is present.
    #[inline]
    pub(crate) fn has(&self, known: KnownField) -> bool {
        self.found & known.bit != 0
    }

    /// The values of all fields with this name, in order.
    pub(crate) fn values(&self, known: KnownField) -> impl Iterator<Item = &'a [u8]> {
        let (fields, bytes) = (if self.has(known) { &self.head.fields[..] } else { &[] }, self.bytes);
        let named = move |name: &[u8]| name.eq_ignore_ascii_case(known.name);
        fields.iter().filter(move |field| named(field.name.of(bytes))).map(move |field| field.value.of(bytes))
    }

    /// The value of a field that is not a list: `None` if it is absent or repeated.
    pub(crate) fn value(&self, known: KnownField) -> Option<&'a [u8]> {
        let mut values = self.values(known);
        values.next().filter(|_| values.next().is_none())
    }
}
