//! Decides conditional requests: whether `If-Match`, `If-None-Match` and the like hold (RFC 9110 section 13).

use std::time::UNIX_EPOCH;

use crate::grammar::{is_field_content, trim_start};

/// The validators of the selected representation (RFC 9110 section 8.8).
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// The entity tag as it is sent, with its quotes, after `W/` if it is weak; empty: none.
    pub etag: &'a str,
    /// Last modification, in seconds since 1970. `None`: not known.
    pub modified: Option<u64>,
}

impl Validators<'_> {
    /// The date sent as Last-Modified: never later than `now` (RFC 9110 section 8.8.2.1).
    pub fn last_modified(&self, now: u64) -> Option<u64> {
        self.modified.map(|modified| modified.min(now))
    }
}

/// The result of the preconditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Perform the request.
    Holds,
    /// 304: the client has the current representation.
    NotModified,
    /// 412: the representation is not the one the client expects.
    Failed,
}

/// Whether the values of a field, `"*" / #entity-tag`, are `*` or have a tag for which `is_ours` holds. A malformed tag ends
/// the list: the next one cannot be found.
pub(crate) fn lists<'a>(values: impl Iterator<Item = &'a [u8]> + Clone, is_ours: impl Fn(Tag<'_>) -> bool) -> bool {
    let mut single = values.clone();
    if single.next() == Some(b"*") && single.next().is_none() {
        return true;
    }
    for value in values {
        let mut rest = value;
        loop {
            rest = match trim_start(rest) {
                [] => break,
                [b',', behind @ ..] => behind,
                member => match Tag::split(member) {
                    Some((tag, _)) if is_ours(tag) => return true,
                    Some((_, behind)) => behind,
                    None => return false,
                },
            }
        }
    }
    false
}

/// Whether the value of If-Range matches the current representation (RFC 9110 section 13.1.5).
pub(crate) fn is_current(value: &[u8], validators: &Validators<'_>, now: u64) -> bool {
    if let Some(tag) = Tag::parse(value) {
        return tag.is(validators.etag, Comparison::Strong);
    }
    // A file modified in the current second may change again within it (RFC 9110 section 8.8.2.2).
    validators.modified.is_some_and(|modified| http_date(value) == Some(modified) && modified < now)
}

/// The comparison of two entity tags (RFC 9110 section 8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// A weak tag matches no tag.
    Strong,
    Weak,
}

/// An entity tag (RFC 9110 section 8.8.3).
#[derive(Clone, Copy)]
pub(crate) struct Tag<'a> {
    weak: bool,
    /// The tag with its quotes.
    opaque: &'a [u8],
}

impl<'a> Tag<'a> {
    /// The tag at the start of `bytes`, and the rest: empty, or beginning with a comma.
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (weak, opaque) = bytes.strip_prefix(b"W/").map_or((false, bytes), |opaque| (true, opaque));
        let inner = opaque.strip_prefix(b"\"")?;
        let end = inner.iter().position(|&byte| byte == b'"' || byte == b' ' || !is_field_content(byte))?;
        let (opaque, behind) = opaque.split_at_checked(end + 2)?;
        let behind = trim_start(behind);
        let whole = opaque.ends_with(b"\"") && matches!(behind, [] | [b',', ..]);
        whole.then_some((Tag { weak, opaque }, behind))
    }

    /// Parses all of `bytes` as a tag.
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        Self::split(bytes).filter(|(_, behind)| behind.is_empty()).map(|(tag, _)| tag)
    }

    /// Whether this tag matches `etag`.
    pub(crate) fn is(self, etag: &str, comparison: Comparison) -> bool {
        let (weak, opaque) = etag.strip_prefix("W/").map_or((false, etag), |opaque| (true, opaque));
        self.opaque == opaque.as_bytes() && (comparison == Comparison::Weak || !(weak || self.weak))
    }
}

/// Seconds since 1970 of a date in any of the three forms (RFC 9110 section 5.6.7).
///
/// A two-digit year is one from 1970 to 2069. A wrong day of the week is refused: it would be a date of another
/// century.
pub fn http_date(value: &[u8]) -> Option<u64> {
    let date = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    date.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}
