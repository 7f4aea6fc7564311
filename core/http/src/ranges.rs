//! Range requests (RFC 9110 section 14).

use std::ops::Range;

use crate::conditional::{Comparison, Tag, Validators, date};
use crate::conditional_fields::{ConditionalFields, IF_RANGE, RANGE};
use crate::grammar::elements;

/// Ranges in one request; nobody needs as many. Apache 200 (`MaxRanges`), nginx no limit but the length of what is sent.
const MOST: usize = 32;
/// Ranges that may overlap each other (RFC 9110 section 14.2).
const MOST_OVERLAPPING: usize = 2;

/// Which octets of something are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// All of them: no range is asked for, or in a way that is to be ignored.
    Whole,
    /// 206: these. There is at least one.
    One(Range<u64>),
    /// 206, in as many parts: at least two, none of them empty, in the order in which they were asked for. Between two
    /// of them is at least one octet that was not.
    Several(Vec<Range<u64>>),
    /// 416: none that there are.
    Unsatisfiable,
}

impl ConditionalFields<'_> {
    /// The ranges that are asked for of something `length` octets long, once its preconditions hold. `now` is in seconds
    /// since 1970.
    ///
    /// Of an empty file everything is asked for that begins at its beginning, as nginx 1.22 has it: clients that begin
    /// each transfer with `bytes=0-` would otherwise be told that there is no such range (which RFC 9110 section 14.1.2,
    /// to the letter, wants), and no Content-Range can say that nothing was sent.
    pub fn ranges(&self, length: u64, validators: &Validators<'_>, now: u64) -> Ranges {
        if !self.has(RANGE) || self.method() != b"GET" || !self.is_current(validators, now) {
            return Ranges::Whole;
        }
        let Some(asked) = self.value(RANGE).and_then(parse) else { return Ranges::Whole };
        if length == 0 && asked.iter().any(|spec| spec.within(1).is_some()) {
            return Ranges::Whole;
        }
        let ranges: Vec<_> = asked.iter().filter_map(|spec| spec.within(length)).collect();
        if overlapping(&ranges) > MOST_OVERLAPPING {
            return Ranges::Whole;
        }
        let mut joined = join(ranges);
        match joined.len() {
            0 => Ranges::Unsatisfiable,
            1 => joined.pop().map_or(Ranges::Unsatisfiable, Ranges::One),
            _ => Ranges::Several(joined),
        }
    }

    /// Whether the client has a part of the same thing (RFC 9110 section 13.1.5), as far as it says what it has a part of.
    fn is_current(&self, validators: &Validators<'_>, now: u64) -> bool {
        if !self.has(IF_RANGE) {
            return true;
        }
        let Some(value) = self.value(IF_RANGE) else { return false };
        if let Some(tag) = Tag::parse(value) {
            return tag.is(validators.etag, Comparison::Strong);
        }
        // In the present second it may be modified once more (RFC 9110 section 8.8.2.2).
        date(value) == Some(validators.modified) && validators.modified < now
    }
}

/// A `range-spec` (RFC 9110 section 14.1.1). Positions beyond 64 bits are the last one of these: they are beyond every file
/// as well.
#[derive(Clone, Copy)]
enum Spec {
    /// From one position to another, both included.
    Closed(u64, u64),
    /// So many octets at the end.
    Suffix(u64),
}

impl Spec {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let dash = bytes.iter().position(|&byte| byte == b'-')?;
        match (&bytes[..dash], &bytes[dash + 1..]) {
            ([], length) => Some(Spec::Suffix(number(length)?)),
            (first, []) => Some(Spec::Closed(number(first)?, u64::MAX)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Spec::Closed(first, last))
            }
        }
    }

    /// What there is of it in something of this length, unless that is nothing.
    fn within(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Spec::Closed(first, last) => first..last.saturating_add(1).min(length),
            Spec::Suffix(suffix) => length.saturating_sub(suffix)..length,
        };
        (!range.is_empty()).then_some(range)
    }
}

/// `1*DIGIT`.
fn number(digits: &[u8]) -> Option<u64> {
    let value = |value: u64, digit: &u8| value.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then(|| digits.iter().fold(0, value))
}

/// The value of a Range field: `None` if it is malformed, of another unit than octets, or of too many parts.
fn parse(value: &[u8]) -> Option<Vec<Spec>> {
    let (unit, set) = value.split_at_checked(b"bytes=".len())?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let mut specs = Vec::new();
    for member in elements(set) {
        if specs.len() == MOST {
            return None;
        }
        specs.push(Spec::parse(member)?);
    }
    (!specs.is_empty()).then_some(specs)
}

/// How many of these share octets with another one.
fn overlapping(ranges: &[Range<u64>]) -> usize {
    let overlap = |one: &Range<u64>, other: &Range<u64>| one.start < other.end && other.start < one.end;
    let shares = |at: usize| ranges.iter().enumerate().any(|(other, range)| other != at && overlap(range, &ranges[at]));
    (0..ranges.len()).filter(|&at| shares(at)).count()
}

/// Makes one of those between which there is nothing, where the first of them was (RFC 9110 section 15.3.7.2).
fn join(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for mut range in ranges {
        let mut at = joined.len();
        while let Some(touched) = joined.iter().position(|other| range.start <= other.end && other.start <= range.end) {
            let other = joined.remove(touched);
            range = range.start.min(other.start)..range.end.max(other.end);
            at = at.min(touched);
        }
        joined.insert(at, range);
    }
    joined
}
