//! Range requests (RFC 9110 section 14).

use std::ops::Range;

use crate::grammar::elements;

/// Most ranges in one request. Apache: 200 (`MaxRanges`); nginx: limited only by the length of the response.
const MAX_RANGES: usize = 32;
/// Most ranges that overlap each other (RFC 9110 section 14.2).
const MAX_OVERLAPPING: usize = 2;

/// The byte ranges of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// The whole representation: Range is absent or ignored.
    Whole,
    /// 206 with one range.
    One(Range<u64>),
    /// 206 with a part for each range: at least two, none empty, in the requested order, none touching another.
    Several(Vec<Range<u64>>),
    /// 416: no range is satisfiable.
    Unsatisfiable,
}

impl Ranges {
    /// The ranges of a field for `length` bytes.
    ///
    /// A range from 0 of an empty file selects the whole file, as in nginx 1.22: clients that begin each transfer with
    /// `bytes=0-` would otherwise get a 416 (which RFC 9110 section 14.1.2 requires, strictly), and Content-Range
    /// cannot express an empty range.
    pub(crate) fn read(value: &[u8], length: u64) -> Self {
        let Some(asked) = parse(value) else { return Ranges::Whole };
        if length == 0 && asked.iter().any(|spec| spec.within(1).is_some()) {
            return Ranges::Whole;
        }
        let ranges: Vec<_> = asked.iter().filter_map(|spec| spec.within(length)).collect();
        if overlapping(&ranges) > MAX_OVERLAPPING {
            return Ranges::Whole;
        }
        let mut joined = join(ranges);
        match joined.len() {
            0 => Ranges::Unsatisfiable,
            1 => joined.pop().map_or(Ranges::Unsatisfiable, Ranges::One),
            _ => Ranges::Several(joined),
        }
    }
}

/// A `range-spec` (RFC 9110 section 14.1.1). Positions above 64 bits become the largest one: no file is that long.
#[derive(Clone, Copy)]
enum Spec {
    /// From one position to another, both included.
    Closed(u64, u64),
    /// The last bytes.
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

    /// The satisfiable part of this range in `length` bytes; `None` if it is empty.
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

/// Parses a Range field: `None` if it is malformed, has another unit than bytes, or too many ranges.
fn parse(value: &[u8]) -> Option<Vec<Spec>> {
    let (unit, set) = value.split_at_checked(b"bytes=".len())?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let mut specs = Vec::new();
    for member in elements(set) {
        if specs.len() == MAX_RANGES {
            return None;
        }
        specs.push(Spec::parse(member)?);
    }
    (!specs.is_empty()).then_some(specs)
}

/// Number of ranges that overlap another one.
fn overlapping(ranges: &[Range<u64>]) -> usize {
    let overlap = |one: &Range<u64>, other: &Range<u64>| one.start < other.end && other.start < one.end;
    let shares = |at: usize| ranges.iter().enumerate().any(|(other, range)| other != at && overlap(range, &ranges[at]));
    (0..ranges.len()).filter(|&at| shares(at)).count()
}

/// Joins ranges that overlap or touch, at the position of the first of them (RFC 9110 section 15.3.7.2).
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
