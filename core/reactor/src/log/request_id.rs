//! Names of requests in logs: the running number and, with `request_id`, an id that is unique over workers and restarts.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use poorhttp_http::{Head, TraceContext};

/// Bytes of the longest id that is taken from a proxy.
const LONGEST: usize = 128;
/// Bytes of an id that is made here.
const MADE: usize = 16;
/// Name of the field of responses, and what is between it and the id.
pub(crate) const FIELD_NAME: &[u8; 14] = b"X-Request-ID: ";

/// Makes the ids of a reactor's requests, or takes those of trusted proxies.
#[derive(Clone, Copy, Debug)]
pub struct RequestIds {
    start: u64,
}

impl Default for RequestIds {
    /// Starts at a random number, which must be made in the process that serves.
    fn default() -> Self {
        // Forked workers may have inherited the same random state.
        RequestIds { start: RandomState::new().hash_one((std::process::id(), SystemTime::now())) }
    }
}

/// The id of a request, of visible ASCII without quotes, backslashes, commas or brackets.
#[derive(Clone, Copy, Debug)]
pub struct RequestId<'a>(Text<'a>);

#[derive(Clone, Copy, Debug)]
enum Text<'a> {
    Made([u8; MADE]),
    Taken(&'a [u8]),
}

impl<'a> RequestId<'a> {
    /// The id in a name, which has one.
    pub(crate) fn of_name(name: &'a RequestName) -> Self {
        RequestId(Text::Taken(name.id.as_bytes()))
    }
    /// The id as text.
    #[inline]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The same as bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Made(bytes) => bytes,
            Text::Taken(bytes) => bytes,
        }
    }
}

impl RequestIds {
    /// The id of the request with this running number: from `X-Request-ID` in its head if a trusted proxy has sent that, else
    /// made from the number.
    #[inline(always)]
    pub fn of<'a>(&self, number: u64, head: Option<(&'a Head, &'a [u8])>, is_trusted: bool) -> RequestId<'a> {
        let taken = head.filter(|_| is_trusted).and_then(|(head, bytes)| single_field(head, bytes, b"x-request-id"));
        RequestId(match taken.filter(|id| is_valid(id)) {
            Some(id) => Text::Taken(id),
            None => Text::Made(self.make(number)),
        })
    }

    /// The line of response fields with an id that is made from the number.
    #[inline]
    pub(crate) fn make_field(self, number: u64) -> [u8; FIELD_NAME.len() + MADE + 2] {
        let mut line = *b"X-Request-ID: ________________\r\n";
        line[FIELD_NAME.len()..][..MADE].copy_from_slice(&self.make(number));
        line
    }

    /// 16 hexadecimal digits, different for each number.
    #[inline]
    fn make(self, number: u64) -> [u8; MADE] {
        // The finalizer of SplitMix64, which maps each number to another one: ids do not show how many requests there were.
        let mut mixed = self.start.wrapping_add(number);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        hexadecimal(mixed)
    }
}

/// The digits of a number. All at once, as two ids are made for each request.
#[inline]
fn hexadecimal(number: u64) -> [u8; MADE] {
    // Each byte of the result has a digit.
    let digits = |half: u64| {
        let pairs = (half | half << 16) & 0x0000_ffff_0000_ffff;
        let bytes = (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff;
        let values = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
        // 1 where the value is above 9.
        let letters = (values + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
        values + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10)
    };
    (u128::from(digits(number >> 32)) << 64 | u128::from(digits(number & 0xffff_ffff))).to_be_bytes()
}

fn is_valid(id: &[u8]) -> bool {
    let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~:=+/@".contains(byte);
    (1..=LONGEST).contains(&id.len()) && id.iter().all(is_known)
}

/// The value of a field that must not be repeated; `name` in lower case.
fn single_field<'a>(head: &Head, bytes: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut found = head.fields.iter().filter(|field| field.name.of(bytes).eq_ignore_ascii_case(name));
    let first = found.next()?;
    found.next().is_none().then(|| first.value.of(bytes))
}

/// The trace that a request belongs to: its valid `traceparent`.
#[inline]
pub(crate) fn trace_of(head: &Head, bytes: &[u8]) -> Option<TraceContext> {
    single_field(head, bytes, b"traceparent").and_then(TraceContext::parse)
}

/// A request as messages name it: `request 12 GET /path`, with `request_id` as `request 12 (ID) GET /path`.
#[derive(Clone, Debug, Default)]
pub struct RequestName {
    /// Running number in its worker.
    pub number: u64,
    /// Empty without `request_id`.
    pub id: String,
    /// None without `request_id`.
    pub trace: Option<TraceContext>,
    /// Method and target, escaped; or, if they are not known, its client (`of ADDRESS:PORT`). May be empty.
    pub line: String,
}

impl RequestName {
    /// The name of the request with this number and head. `ids`: with `request_id`.
    pub fn new(
        ids: Option<RequestIds>,
        number: u64,
        head: Option<(&Head, &[u8])>,
        is_trusted: bool,
        line: String,
    ) -> Self {
        let id = ids.map_or_else(String::new, |ids| ids.of(number, head, is_trusted).as_str().to_owned());
        let trace = ids.and(head).and_then(|(head, bytes)| trace_of(head, bytes));
        RequestName { number, id, trace, line }
    }
}

impl RequestName {
    /// Lines of response fields with `X-Request-ID` behind them, if the request has an id.
    pub(crate) fn with_response_field<'a>(&self, lines: &'a [u8]) -> Cow<'a, [u8]> {
        match &*self.id {
            "" => Cow::Borrowed(lines),
            id => Cow::Owned([lines, FIELD_NAME, id.as_bytes(), b"\r\n"].concat()),
        }
    }
}

impl Display for RequestName {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "request {}", self.number)?;
        if !self.id.is_empty() {
            write!(formatter, " ({})", self.id)?;
        }
        if !self.line.is_empty() {
            write!(formatter, " {}", self.line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ() {
        let (one, other) = (RequestIds::default(), RequestIds::default());
        let ids: HashSet<_> = (1..1_000).flat_map(|number| [one.make(number), other.make(number)]).collect();
        assert_eq!(ids.len(), 2 * 999);
        assert!(ids.iter().flatten().all(u8::is_ascii_hexdigit));
    }

    #[test]
    fn ids_are_hexadecimal() {
        for number in [0, 1, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 0x9999_aaaa_0f0f_f0f0, u64::MAX] {
            assert_eq!(hexadecimal(number), format!("{number:016x}").as_bytes(), "{number}");
        }
    }

    #[test]
    fn names() {
        let name = RequestName { number: 12, line: "GET /".into(), ..RequestName::default() };
        assert_eq!(name.to_string(), "request 12 GET /");
        assert_eq!(RequestName { id: "a-b".into(), ..name }.to_string(), "request 12 (a-b) GET /");
        assert_eq!(RequestName::default().to_string(), "request 0");
    }

    #[test]
    fn ids_of_proxies_are_checked() {
        for id in ["a", "0f-_.~:=+/@Z", &"x".repeat(LONGEST)] {
            assert!(is_valid(id.as_bytes()), "{id}");
        }
        for id in ["", "a b", "a,b", "a\"", "a\\", "a)", "a\n", "\u{e9}", "{}", "<b>", &"x".repeat(LONGEST + 1)] {
            assert!(!is_valid(id.as_bytes()), "{id}");
        }
    }
}
