//! Formats the access-log line of a request, directive by directive.

use std::cell::RefCell;
use std::net::IpAddr;

use poorhttp_http::{AddressText, Head, TraceContext, Version, split_authority};

use crate::log::entry::Collected;
use crate::log::format::{Directive, Format};
use crate::log::json::{Object, are_plain};
use crate::log::request_id::{RequestId, RequestIds, RequestName, trace_of};
use crate::sys::clock;

/// State of a response and its connection at the end, as in Apache's `%X`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Incomplete,
    Persists,
    Closed,
}

/// Log data of an answered request.
#[derive(Debug)]
pub(crate) struct LoggedRequest<'a> {
    /// Its address, if it is known.
    pub(crate) client: Option<IpAddr>,
    /// Nothing if the head could not be understood.
    pub(crate) head: Option<(&'a Head, &'a [u8])>,
    pub(crate) status: u16,
    /// Bytes of content that were sent, and of all.
    pub(crate) size: u64,
    pub(crate) sent: u64,
    pub(crate) state: State,
    pub(crate) microseconds: u64,
    pub(crate) number: u64,
    pub(crate) kept: u32,
    /// Bytes of the request: head and content.
    pub(crate) received: u64,
    /// A trusted proxy has sent the request.
    pub(crate) is_trusted: bool,
    pub(crate) collected: Option<&'a Collected>,
}

/// What the lines of a process have in common.
#[derive(Debug, Default)]
pub(crate) struct Common {
    /// Name of the process.
    pub(crate) worker: String,
    /// Requests have ids.
    pub(crate) ids: Option<RequestIds>,
}

impl Format {
    /// Appends a line, with its end.
    #[inline]
    pub(crate) fn write(&self, line: &mut Vec<u8>, entry: &LoggedRequest<'_>, common: &Common) {
        match self {
            Format::Json => json(line, entry, common),
            Format::Line(directives, _) => directives.iter().for_each(|directive| directive.write(line, entry, common)),
        }
        line.push(b'\n');
    }
}

impl Directive {
    fn write(&self, line: &mut Vec<u8>, entry: &LoggedRequest<'_>, common: &Common) {
        match self {
            Directive::Text(text) => line.extend_from_slice(text.as_bytes()),
            Directive::Client => push_client(line, entry.client),
            Directive::User => push_or_hyphen(line, entry.user().as_deref()),
            Directive::Time => clock::with_time_of_day(|time| line.extend_from_slice(time.common.as_bytes())),
            Directive::IsoTime => clock::push_iso_ms(line),
            Directive::UnixTime => push_number(line, clock::unix_time()),
            Directive::UnixMilliseconds => push_number(line, clock::unix_time_ms()),
            Directive::RequestLine => match entry.head {
                Some((head, bytes)) => escape(line, &head.request_line(bytes)),
                None => line.push(b'-'),
            },
            Directive::Status if entry.is_plain() => line.push(b'-'),
            Directive::Status => push_number(line, entry.status.into()),
            Directive::Size { hyphen: true } if entry.size == 0 => line.push(b'-'),
            Directive::Size { .. } => push_number(line, entry.size),
            Directive::Received => push_number(line, entry.received),
            Directive::Sent => push_number(line, entry.sent),
            Directive::Transferred => push_number(line, entry.received + entry.sent),
            Directive::State => line.push(match entry.state {
                State::Incomplete => b'X',
                State::Persists => b'+',
                State::Closed => b'-',
            }),
            Directive::Field(name) => push_or_hyphen(line, entry.field(name.as_bytes())),
            Directive::ResponseField(at) => {
                push_or_hyphen(line, entry.collected.and_then(|values| values.fields.get(*at)).map(|value| &value[..]));
            }
            Directive::Variable(at) => {
                let value = entry.collected.and_then(|values| values.variables.get(*at));
                push_or_hyphen(line, value.map(|value| &value[..]));
            }
            Directive::Cookie(name) => push_or_hyphen(line, entry.cookie(name.as_bytes())),
            Directive::Duration => push_number(line, entry.microseconds),
            Directive::Milliseconds => push_number(line, entry.microseconds / 1_000),
            Directive::Seconds => push_number(line, entry.microseconds / 1_000_000),
            Directive::Uncoded => match entry.uncoded() {
                Some(uncoded) => push_number(line, uncoded),
                None => line.push(b'-'),
            },
            Directive::Ratio => match entry.uncoded() {
                Some(uncoded) => push_number(line, (u128::from(entry.size) * 100 / u128::from(uncoded)) as u64),
                None => line.push(b'-'),
            },
            Directive::Method => push_or_hyphen(line, entry.part(|head, bytes| head.method.of(bytes))),
            Directive::Path => push_or_hyphen(line, entry.part(|head, bytes| head.path().of(bytes))),
            Directive::Query => {
                let query = entry.part(|head, bytes| head.query().of(bytes)).unwrap_or_default();
                if !query.is_empty() {
                    line.push(b'?');
                    escape(line, query);
                }
            }
            Directive::Protocol => line.extend_from_slice(entry.head.map_or(b"-", |(head, _)| protocol(head))),
            Directive::ServerName => push_or_hyphen(line, entry.collected.map(|values| &values.server.0[..])),
            Directive::Host => push_or_hyphen(line, entry.host()),
            Directive::ServerPort => push_or_hyphen(line, entry.collected.map(|values| &values.server.1[..])),
            Directive::Process => push_number(line, std::process::id().into()),
            Directive::Number => push_number(line, entry.number),
            Directive::Id => push_or_hyphen(line, entry.id(common).as_ref().map(RequestId::as_bytes)),
            Directive::TraceId => {
                push_or_hyphen(line, entry.trace(common).as_ref().map(|trace| trace.trace_id().as_bytes()));
            }
            Directive::SpanId => {
                push_or_hyphen(line, entry.trace(common).as_ref().map(|trace| trace.span_id().as_bytes()));
            }
            Directive::Kept => push_number(line, entry.kept.into()),
        }
    }
}

impl<'a> LoggedRequest<'a> {
    /// Whether it was a raw TCP connection, not a request.
    fn is_plain(&self) -> bool {
        self.head.is_none() && self.status == 0
    }

    /// Whether the request was refused or has failed, or the response is not complete.
    pub(crate) fn has_failed(&self) -> bool {
        self.status >= 400 || self.state == State::Incomplete
    }

    fn part(&self, of: impl FnOnce(&'a Head, &'a [u8]) -> &'a [u8]) -> Option<&'a [u8]> {
        self.head.map(|(head, bytes)| of(head, bytes))
    }

    #[inline]
    fn field(&self, name: &[u8]) -> Option<&'a [u8]> {
        let (head, bytes) = self.head?;
        let found = head.fields.iter().find(|field| field.name.of(bytes).eq_ignore_ascii_case(name))?;
        Some(found.value.of(bytes))
    }

    /// The value of a cookie (RFC 6265 section 4.2.1).
    fn cookie(&self, name: &[u8]) -> Option<&'a [u8]> {
        let (head, bytes) = self.head?;
        let cookies = head.fields.iter().filter(|field| field.name.of(bytes).eq_ignore_ascii_case(b"cookie"));
        cookies.flat_map(|field| field.value.of(bytes).split(|&byte| byte == b';')).find_map(|pair| {
            let value = pair.trim_ascii().strip_prefix(name)?.trim_ascii_start().strip_prefix(b"=")?;
            Some(value.trim_ascii_start())
        })
    }

    /// The user that the client names (Basic; RFC 7617), which nobody has checked here, or that a web server has checked.
    fn user(&self) -> Option<Vec<u8>> {
        let (head, bytes) = self.head?;
        if let Some(gateway) = &head.gateway {
            let named = gateway.variables.iter().find(|variable| variable.name.of(bytes) == b"REMOTE_USER");
            if let Some(user) = named.map(|variable| variable.value.of(bytes)).filter(|user| !user.is_empty()) {
                return Some(user.to_vec());
            }
        }
        let (scheme, credentials) = self.field(b"authorization")?.split_at_checked(6)?;
        scheme.eq_ignore_ascii_case(b"basic ").then(|| basic_user(credentials.trim_ascii()))?
    }

    /// The host that the client has asked for, without its port.
    fn host(&self) -> Option<&'a [u8]> {
        self.part(Head::requested_authority).map(|authority| split_authority(authority).0)
    }

    /// Bytes of content before it was compressed, if it was.
    #[inline]
    fn uncoded(&self) -> Option<u64> {
        self.collected.map(|collected| collected.uncoded).filter(|&uncoded| uncoded > 0)
    }

    /// Its name, if its head was refused.
    fn name(&self) -> Option<&'a RequestName> {
        self.collected?.name.as_ref()
    }

    #[inline]
    fn id(&self, common: &Common) -> Option<RequestId<'a>> {
        let ids = common.ids?;
        Some(match self.name() {
            Some(name) => RequestId::of_name(name),
            None => ids.of(self.number, self.head, self.is_trusted),
        })
    }

    #[inline]
    fn trace(&self, common: &Common) -> Option<TraceContext> {
        common.ids?;
        if let Some(name) = self.name() {
            return name.trace;
        }
        self.head.and_then(|(head, bytes)| trace_of(head, bytes))
    }
}

/// The user of Basic credentials: what is before the first colon. The password is not decoded. None: they are not valid.
fn basic_user(credentials: &[u8]) -> Option<Vec<u8>> {
    let (mut user, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for &letter in credentials {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            match (bits >> count) as u8 {
                b':' => return Some(user),
                byte => user.push(byte),
            }
        }
    }
    None
}

fn protocol(head: &Head) -> &'static [u8] {
    match head.version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

fn push_number(line: &mut Vec<u8>, number: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn push_client(line: &mut Vec<u8>, client: Option<IpAddr>) {
    thread_local! {
        /// Behind a proxy, and in every load test, the address is the same each time.
        static LAST: RefCell<(Option<IpAddr>, Vec<u8>)> = const { RefCell::new((None, Vec::new())) };
    }
    let Some(address) = client else { return line.push(b'-') };
    LAST.with_borrow_mut(|(last, text)| {
        if *last != Some(address) {
            *last = Some(address);
            text.clear();
            text.extend_from_slice(&AddressText::of(address));
        }
        line.extend_from_slice(text);
    });
}

fn push_or_hyphen(line: &mut Vec<u8>, text: Option<&[u8]>) {
    match text {
        Some(text) if !text.is_empty() => escape(line, text),
        _ => line.push(b'-'),
    }
}

/// Appends text of a client, escaped as by Apache: `\"`, `\\` and `\xhh`. It can neither end a quoted part nor move a terminal's
/// cursor.
fn escape(line: &mut Vec<u8>, text: &[u8]) {
    if are_plain(text) {
        return line.extend_from_slice(text);
    }
    for &byte in text {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => line.push(byte),
            _ => {
                line.extend_from_slice(b"\\x");
                line.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
            }
        }
    }
}

fn json(line: &mut Vec<u8>, entry: &LoggedRequest<'_>, common: &Common) {
    let status = (!entry.is_plain()).then_some(u64::from(entry.status));
    let mut object = Object::begin(line);
    object.plain("time", clock::push_iso_ms);
    object.plain("remote_addr", |line| push_client(line, entry.client));
    object.bytes("method", entry.part(|head, bytes| head.method.of(bytes)));
    object.bytes("target", entry.part(|head, bytes| head.target.of(bytes)));
    object.bytes("protocol", entry.head.map(|(head, _)| protocol(head)));
    object.bytes("host", entry.host().filter(|host| !host.is_empty()));
    object.bytes("referer", entry.field(b"referer"));
    object.bytes("user_agent", entry.field(b"user-agent"));
    object.bytes("user", entry.user().as_deref().filter(|user| !user.is_empty()));
    object.text("worker", Some(&*common.worker).filter(|worker| !worker.is_empty()));
    object.number("status", status);
    object.number("size", status.map(|_| entry.size));
    object.number("uncoded_size", entry.uncoded());
    object.boolean("complete", entry.state != State::Incomplete);
    object.number("sent", Some(entry.sent));
    object.number("received", Some(entry.received));
    object.number("duration_us", Some(entry.microseconds));
    object.number("request", Some(entry.number));
    object.text("request_id", entry.id(common).as_ref().map(RequestId::as_str));
    let trace = entry.trace(common);
    object.text("trace_id", trace.as_ref().map(|trace| trace.trace_id()));
    object.text("span_id", trace.as_ref().map(|trace| trace.span_id()));
    object.number("kept", Some(entry.kept.into()));
    object.number("pid", Some(std::process::id().into()));
    object.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_clients_stays_inside_its_quotes() {
        let mut line = Vec::new();
        escape(&mut line, b"a\"b\\c\r\n\x1b[2J\xe9");
        assert_eq!(line, br#"a\"b\\c\x0d\x0a\x1b[2J\xe9"#);
    }

    #[test]
    fn users_of_basic_credentials() {
        for (credentials, user) in [
            ("YW5uYTpzZWNyZXQ=", Some(&b"anna"[..])),
            // Without its padding, and without a password.
            ("YW5uYTpzZWNyZXQ", Some(b"anna")),
            ("YW5uYTo=", Some(b"anna")),
            ("OnNlY3JldA==", Some(b"")),
            ("w6k6", Some(b"\xc3\xa9")),
            ("YW5uYQ==", None),
            ("YW5_YTo=", None),
            ("", None),
        ] {
            assert_eq!(basic_user(credentials.as_bytes()).as_deref(), user, "{credentials}");
        }
    }
}
