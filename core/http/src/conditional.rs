//! Conditional requests (RFC 9110 section 13).

use std::time::UNIX_EPOCH;

use crate::conditional_fields::{ConditionalFields, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use crate::grammar::{is_field_content, trim_start};

/// What the selected representation is told from others by (RFC 9110 section 8.8).
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// The entity tag as it is sent: with its quotes, behind `W/` if it is weak; empty: there is none.
    pub etag: &'a str,
    /// Last modification, in seconds since 1970.
    pub modified: u64,
}

impl Validators<'_> {
    /// The date that is sent as Last-Modified. A file that comes from the future is said to be of now (RFC 9110 section
    /// 8.8.2.1).
    pub fn last_modified(&self, now: u64) -> u64 {
        self.modified.min(now)
    }
}

/// What the preconditions of a request come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The request is to be performed.
    Holds,
    /// 304: the client has it.
    NotModified,
    /// 412: it is not what the client takes it for.
    Failed,
}

impl ConditionalFields<'_> {
    /// Evaluates the preconditions for something that exists, in the order of RFC 9110 section 13.2.2. `now` is in
    /// seconds since 1970.
    pub fn precondition(&self, validators: &Validators<'_>, now: u64) -> Precondition {
        if self.is_plain() {
            return Precondition::Holds;
        }
        let modified = validators.last_modified(now);
        if self.has(IF_MATCH) {
            if !self.matches(IF_MATCH, |tag| tag.is(validators.etag, Comparison::Strong)) {
                return Precondition::Failed;
            }
        } else if self.value(IF_UNMODIFIED_SINCE).and_then(date).is_some_and(|date| modified > date) {
            return Precondition::Failed;
        }
        let is_read = matches!(self.method(), b"GET" | b"HEAD");
        if self.has(IF_NONE_MATCH) {
            if self.matches(IF_NONE_MATCH, |tag| tag.is(validators.etag, Comparison::Weak)) {
                return if is_read { Precondition::NotModified } else { Precondition::Failed };
            }
        } else if is_read && self.value(IF_MODIFIED_SINCE).and_then(date).is_some_and(|date| modified <= date) {
            return Precondition::NotModified;
        }
        Precondition::Holds
    }

    /// Whether a field, `"*" / #entity-tag`, is `*` or has a tag for which `is_ours` holds. The first thing that is no
    /// tag ends the list: of what is behind it nobody knows where it begins.
    fn matches(&self, known: crate::conditional_fields::KnownField, is_ours: impl Fn(Tag<'_>) -> bool) -> bool {
        if self.value(known) == Some(b"*") {
            return true;
        }
        for value in self.values(known) {
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
}

/// How two entity tags are compared (RFC 9110 section 8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// A weak tag is equal to none.
    Strong,
    Weak,
}

/// An entity tag (RFC 9110 section 8.8.3).
#[derive(Clone, Copy)]
pub(crate) struct Tag<'a> {
    weak: bool,
    /// With its quotes.
    opaque: &'a [u8],
}

impl<'a> Tag<'a> {
    /// The tag at the start of `bytes`, and what stands behind it: nothing, or what begins with a comma.
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (weak, opaque) = bytes.strip_prefix(b"W/").map_or((false, bytes), |opaque| (true, opaque));
        let inner = opaque.strip_prefix(b"\"")?;
        let end = inner.iter().position(|&byte| byte == b'"' || byte == b' ' || !is_field_content(byte))?;
        let (opaque, behind) = opaque.split_at_checked(end + 2)?;
        let behind = trim_start(behind);
        let whole = opaque.ends_with(b"\"") && matches!(behind, [] | [b',', ..]);
        whole.then_some((Tag { weak, opaque }, behind))
    }

    /// The tag that is all of `bytes`.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        Self::split(bytes).filter(|(_, behind)| behind.is_empty()).map(|(tag, _)| tag)
    }

    /// Whether this is `etag`.
    pub(crate) fn is(self, etag: &str, comparison: Comparison) -> bool {
        let (weak, opaque) = etag.strip_prefix("W/").map_or((false, etag), |opaque| (true, opaque));
        self.opaque == opaque.as_bytes() && (comparison == Comparison::Weak || !(weak || self.weak))
    }
}

/// Seconds since 1970 of a date in any of the three forms (RFC 9110 section 5.6.7).
///
/// Two digits are of the years 1970 to 2069, and the day of the week must be right: a date that is meant to be in another
/// century is malformed instead of misunderstood.
pub(crate) fn date(value: &[u8]) -> Option<u64> {
    let date = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    date.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}
