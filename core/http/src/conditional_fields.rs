//! Which of the fields of a request select or condition what is sent (RFC 9110 sections 12.5.3, 13 and 14).
//!
//! What is made of them stands in `preconditions`, `ranges` and `codings`.

use crate::parser::head::Head;

/// A field that is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Wish {
    name: &'static [u8],
    bit: u8,
}

impl Wish {
    const fn new(name: &'static str, number: u8) -> Self {
        Wish { name: name.as_bytes(), bit: 1 << number }
    }
}

pub(crate) const RANGE: Wish = Wish::new("Range", 0);
pub(crate) const IF_MATCH: Wish = Wish::new("If-Match", 1);
pub(crate) const IF_RANGE: Wish = Wish::new("If-Range", 2);
pub(crate) const IF_NONE_MATCH: Wish = Wish::new("If-None-Match", 3);
pub(crate) const ACCEPT_ENCODING: Wish = Wish::new("Accept-Encoding", 4);
pub(crate) const IF_MODIFIED_SINCE: Wish = Wish::new("If-Modified-Since", 5);
pub(crate) const IF_UNMODIFIED_SINCE: Wish = Wish::new("If-Unmodified-Since", 6);

/// The fields of a request that select or condition what is sent.
///
/// Only which of them are there is noted; their values are read when they are asked for. Of what is malformed, nothing is
/// ever granted that would not be granted without it: at worst somebody gets a whole file once more.
#[derive(Clone, Copy, Debug)]
pub struct Wishes<'a> {
    head: &'a Head,
    bytes: &'a [u8],
    /// A bit for each [`Wish`] that was found.
    found: u8,
}

impl<'a> Wishes<'a> {
    /// Finds the fields of a head that stands in `bytes`.
    #[inline]
    pub fn of(head: &'a Head, bytes: &'a [u8]) -> Self {
        let mut found = 0;
        for field in &head.fields {
            // The length tells most names apart before any octet of them is looked at.
            let candidates: &[Wish] = match field.name.length() {
                5 => &[RANGE],
                8 => &[IF_MATCH, IF_RANGE],
                13 => &[IF_NONE_MATCH],
                15 => &[ACCEPT_ENCODING],
                17 => &[IF_MODIFIED_SINCE],
                19 => &[IF_UNMODIFIED_SINCE],
                _ => continue,
            };
            let name = field.name.of(bytes);
            // As almost everybody writes them, before anything is folded to lower case.
            let is_named = |wish: &&Wish| name == wish.name || name.eq_ignore_ascii_case(wish.name);
            for wish in candidates.iter().filter(is_named) {
                found |= wish.bit;
            }
        }
        Wishes { head, bytes, found }
    }

    /// Whether nothing but the choice of a coding depends on fields: none is conditional, and no range is asked for.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.found & !ACCEPT_ENCODING.bit == 0
    }

    pub(crate) fn method(&self) -> &'a [u8] {
        self.head.method.of(self.bytes)
    }

    /// Whether there is such a field.
    #[inline]
    pub(crate) fn has(&self, wish: Wish) -> bool {
        self.found & wish.bit != 0
    }

    /// The values of all such fields, in order.
    pub(crate) fn values(&self, wish: Wish) -> impl Iterator<Item = &'a [u8]> {
        let (fields, bytes) = (if self.has(wish) { &self.head.fields[..] } else { &[] }, self.bytes);
        let named = move |name: &[u8]| name.eq_ignore_ascii_case(wish.name);
        fields.iter().filter(move |field| named(field.name.of(bytes))).map(move |field| field.value.of(bytes))
    }

    /// The value of a field that is no list: `None` if there is none, or more than one.
    pub(crate) fn value(&self, wish: Wish) -> Option<&'a [u8]> {
        let mut values = self.values(wish);
        values.next().filter(|_| values.next().is_none())
    }
}
