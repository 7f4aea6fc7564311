//! The request fields for conditions, ranges and content codings (RFC 9110 sections 12.5.3, 13 and 14), and what they ask for.

use crate::conditional::{Comparison, Precondition, Validators, http_date, is_current, lists};
use crate::content_coding::{self, ContentCoding};
use crate::parser::types::Head;
use crate::ranges::Ranges;

/// The name of a field.
#[derive(Clone, Copy)]
struct KnownField {
    name: &'static [u8],
    bit: u8,
}

impl KnownField {
    const fn new(name: &'static str, number: u8) -> Self {
        KnownField { name: name.as_bytes(), bit: 1 << number }
    }
}

const RANGE: KnownField = KnownField::new("Range", 0);
const IF_MATCH: KnownField = KnownField::new("If-Match", 1);
const IF_RANGE: KnownField = KnownField::new("If-Range", 2);
const IF_NONE_MATCH: KnownField = KnownField::new("If-None-Match", 3);
const ACCEPT_ENCODING: KnownField = KnownField::new("Accept-Encoding", 4);
const IF_MODIFIED_SINCE: KnownField = KnownField::new("If-Modified-Since", 5);
const IF_UNMODIFIED_SINCE: KnownField = KnownField::new("If-Unmodified-Since", 6);

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

    /// Evaluates the preconditions in the order of RFC 9110 section 13.2.2. `now` is in seconds since 1970.
    pub fn precondition(&self, validators: &Validators<'_>, now: u64) -> Precondition {
        if self.is_plain() {
            return Precondition::Holds;
        }
        // Without a date, fields that compare with one are ignored (RFC 9110 sections 13.1.3 and 13.1.4).
        let is_after = |date: u64| validators.last_modified(now).map(|modified| modified > date);
        if self.has(IF_MATCH) {
            if !lists(self.values(IF_MATCH), |tag| tag.is(validators.etag, Comparison::Strong)) {
                return Precondition::Failed;
            }
        } else if self.value(IF_UNMODIFIED_SINCE).and_then(http_date).and_then(is_after) == Some(true) {
            return Precondition::Failed;
        }
        let is_read = matches!(self.method(), b"GET" | b"HEAD");
        if self.has(IF_NONE_MATCH) {
            if lists(self.values(IF_NONE_MATCH), |tag| tag.is(validators.etag, Comparison::Weak)) {
                return if is_read { Precondition::NotModified } else { Precondition::Failed };
            }
        } else if is_read && self.value(IF_MODIFIED_SINCE).and_then(http_date).and_then(is_after) == Some(false) {
            return Precondition::NotModified;
        }
        Precondition::Holds
    }

    /// The ranges of a request for `length` bytes whose preconditions hold. `now` is in seconds since 1970.
    pub fn ranges(&self, length: u64, validators: &Validators<'_>, now: u64) -> Ranges {
        if !self.has(RANGE) || self.method() != b"GET" {
            return Ranges::Whole;
        }
        // If-Range that is repeated matches nothing.
        let is_meant =
            !self.has(IF_RANGE) || self.value(IF_RANGE).is_some_and(|value| is_current(value, validators, now));
        let asked = self.value(RANGE).filter(|_| is_meant);
        asked.map_or(Ranges::Whole, |value| Ranges::read(value, length))
    }

    /// Chooses among the `available` codings; `None`: identity. Without Accept-Encoding the result is identity: the RFC allows any
    /// coding, but such clients are often scripts that decode none.
    pub fn coding(&self, available: &[ContentCoding]) -> Option<ContentCoding> {
        if available.is_empty() || !self.has(ACCEPT_ENCODING) {
            return None;
        }
        content_coding::choose(self.values(ACCEPT_ENCODING), available)
    }

    fn method(&self) -> &'a [u8] {
        self.head.method.of(self.bytes)
    }

    /// Whether the field is present.
    #[inline]
    fn has(&self, known: KnownField) -> bool {
        self.found & known.bit != 0
    }

    /// The values of all fields with this name, in order.
    fn values(&self, known: KnownField) -> impl Iterator<Item = &'a [u8]> + Clone {
        let (fields, bytes) = (if self.has(known) { &self.head.fields[..] } else { &[] }, self.bytes);
        let named = move |name: &[u8]| name.eq_ignore_ascii_case(known.name);
        fields.iter().filter(move |field| named(field.name.of(bytes))).map(move |field| field.value.of(bytes))
    }

    /// The value of a field that is not a list: `None` if it is absent or repeated.
    fn value(&self, known: KnownField) -> Option<&'a [u8]> {
        let mut values = self.values(known);
        values.next().filter(|_| values.next().is_none())
    }
}
