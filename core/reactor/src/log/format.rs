//! Access log formats, and the line of one request.

use std::cell::RefCell;
use std::net::IpAddr;

use poorhttp_http::{AddressText, Head, Version};

use crate::sys::clock;

/// Apache's common log format.
const COMMON: &str = r#"%h %l %u %t "%r" %>s %b"#;
/// The same with referrer and user agent.
const COMBINED: &str = r#"%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i""#;

/// A piece of a line. The letters are those of Apache's mod_log_config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// `%h` and `%a`
    Client,
    /// `%t`, without its brackets
    Time,
    /// `%r`
    RequestLine,
    /// `%s`
    Status,
    /// `%b` (a hyphen for nothing) and `%B`
    Size {
        hyphen: bool,
    },
    /// `%O`
    Sent,
    /// `%X`
    State,
    /// `%{NAME}i`
    Field(String),
    /// `%D`, in microseconds
    Duration,
    /// `%T`, in seconds
    Seconds,
    /// `%m`
    Method,
    /// `%U`
    Path,
    /// `%q`
    Query,
    /// `%H`
    Protocol,
    /// `%P`
    Process,
    /// `%L`: the running number of the request, in its worker
    Number,
    /// `%k`: requests on this connection before this one
    Kept,
}

/// A format that was understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Line(Vec<Piece>),
    Json,
}

/// State of a response and its connection at the end, as in Apache's `%X`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Incomplete,
    Persists,
    Closed,
}

/// Log data of an answered request.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
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
}

impl Format {
    /// Reads the name of a format, or a format string. The error is worded for the person who wrote it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        match text {
            "common" => parse(COMMON).map(Format::Line),
            "combined" => parse(COMBINED).map(Format::Line),
            "json" => Ok(Format::Json),
            line => parse(line).map(Format::Line),
        }
    }

    /// Whether it asks how long requests took.
    pub(crate) fn times(&self) -> bool {
        match self {
            Format::Json => true,
            Format::Line(pieces) => pieces.iter().any(|piece| matches!(piece, Piece::Duration | Piece::Seconds)),
        }
    }

    /// Appends a line, with its end.
    #[inline]
    pub(crate) fn write(&self, line: &mut Vec<u8>, entry: &Entry<'_>, worker: &str) {
        match self {
            Format::Json => json(line, entry, worker),
            Format::Line(pieces) => pieces.iter().for_each(|piece| piece.write(line, entry)),
        }
        line.push(b'\n');
    }
}

fn parse(format: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        // Apache's `%>s` asks for the last status of several; there is only one here.
        let after = after.strip_prefix('>').unwrap_or(after);
        let (argument, after) = match after.strip_prefix('{') {
            Some(inner) => inner.split_once('}').ok_or_else(|| format!("'%{after}': no closing brace"))?,
            None => ("", after),
        };
        let mut letters = after.chars();
        let letter = letters.next().ok_or("a % at the end; write %% for a percent sign")?;
        rest = letters.as_str();
        let piece = match (letter, argument) {
            ('i', name) if !name.is_empty() => Piece::Field(name.to_owned()),
            (letter, argument) if !argument.is_empty() => {
                return Err(format!("%{{{argument}}}{letter}: only %{{NAME}}i takes a name"));
            }
            ('%', _) => {
                text.push('%');
                continue;
            }
            ('h' | 'a', _) => Piece::Client,
            // This server never knows the user.
            ('l' | 'u', _) => {
                text.push('-');
                continue;
            }
            ('t', _) => {
                pieces.push(Piece::Text(std::mem::take(&mut text) + "["));
                pieces.push(Piece::Time);
                text.push(']');
                continue;
            }
            ('r', _) => Piece::RequestLine,
            ('s', _) => Piece::Status,
            ('b', _) => Piece::Size { hyphen: true },
            ('B', _) => Piece::Size { hyphen: false },
            ('O', _) => Piece::Sent,
            ('X', _) => Piece::State,
            ('D', _) => Piece::Duration,
            ('T', _) => Piece::Seconds,
            ('m', _) => Piece::Method,
            ('U', _) => Piece::Path,
            ('q', _) => Piece::Query,
            ('H', _) => Piece::Protocol,
            ('P', _) => Piece::Process,
            ('L', _) => Piece::Number,
            ('k', _) => Piece::Kept,
            (letter, _) => {
                return Err(format!(
                    "%{letter} is not known; known are %h %a %l %u %t %r %s %b %B %O %X %D %T %m %U %q %H %P %L %k %{{NAME}}i %%"
                ));
            }
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(piece);
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

impl Piece {
    fn write(&self, line: &mut Vec<u8>, entry: &Entry<'_>) {
        match self {
            Piece::Text(text) => line.extend_from_slice(text.as_bytes()),
            Piece::Client => push_client(line, entry.client),
            Piece::Time => clock::with_time_of_day(|time| line.extend_from_slice(time.common.as_bytes())),
            Piece::RequestLine => match entry.head {
                Some((head, bytes)) => escape(line, &head.request_line(bytes)),
                None => line.push(b'-'),
            },
            Piece::Status if entry.is_plain() => line.push(b'-'),
            Piece::Status => push_number(line, entry.status.into()),
            Piece::Size { hyphen: true } if entry.size == 0 => line.push(b'-'),
            Piece::Size { .. } => push_number(line, entry.size),
            Piece::Sent => push_number(line, entry.sent),
            Piece::State => line.push(match entry.state {
                State::Incomplete => b'X',
                State::Persists => b'+',
                State::Closed => b'-',
            }),
            Piece::Field(name) => push_or_hyphen(line, entry.field(name)),
            Piece::Duration => push_number(line, entry.microseconds),
            Piece::Seconds => push_number(line, entry.microseconds / 1_000_000),
            Piece::Method => push_or_hyphen(line, entry.part(|head, bytes| head.method.of(bytes))),
            Piece::Path => push_or_hyphen(line, entry.part(|head, bytes| head.path().of(bytes))),
            Piece::Query => {
                let query = entry.part(|head, bytes| head.query().of(bytes)).unwrap_or_default();
                if !query.is_empty() {
                    line.push(b'?');
                    escape(line, query);
                }
            }
            Piece::Protocol => line.extend_from_slice(entry.head.map_or(b"-", |(head, _)| protocol(head))),
            Piece::Process => push_number(line, std::process::id().into()),
            Piece::Number => push_number(line, entry.number),
            Piece::Kept => push_number(line, entry.kept.into()),
        }
    }
}

impl<'a> Entry<'a> {
    /// Whether it was a raw TCP connection, not a request.
    fn is_plain(&self) -> bool {
        self.head.is_none() && self.status == 0
    }

    fn part(&self, of: impl FnOnce(&'a Head, &'a [u8]) -> &'a [u8]) -> Option<&'a [u8]> {
        self.head.map(|(head, bytes)| of(head, bytes))
    }

    fn field(&self, name: &str) -> Option<&'a [u8]> {
        let (head, bytes) = self.head?;
        let found = head.fields.iter().find(|field| field.name.of(bytes).eq_ignore_ascii_case(name.as_bytes()))?;
        Some(found.value.of(bytes))
    }
}

fn protocol(head: &Head) -> &'static [u8] {
    match head.version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
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

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Whether a byte can stand in a line as it is: it can neither end a quoted part nor move a terminal's cursor.
#[inline(always)]
const fn is_plain(byte: u8) -> bool {
    (byte >= b' ') & (byte < 0x7f) & (byte != b'"') & (byte != b'\\')
}

/// Appends text of a client, escaped as by Apache: `\"`, `\\` and `\xhh`.
fn escape(line: &mut Vec<u8>, text: &[u8]) {
    // Branchless, so that the compiler may take many at once.
    match text.iter().fold(true, |plain, &byte| plain & is_plain(byte)) {
        true => line.extend_from_slice(text),
        false => push_escaped(line, text, b"\\x"),
    }
}

/// Appends text of a client as a JSON string (RFC 8259 section 7); bytes are taken for Latin-1, as WSGI does.
fn json_string(line: &mut Vec<u8>, text: &[u8]) {
    line.push(b'"');
    push_escaped(line, text, b"\\u00");
    line.push(b'"');
}

/// Appends text with its special bytes escaped: quote and backslash by a backslash, others by `prefix` and two hexadecimal
/// digits.
fn push_escaped(line: &mut Vec<u8>, text: &[u8], prefix: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            _ if is_plain(byte) => line.push(byte),
            _ => {
                line.extend_from_slice(prefix);
                line.extend([byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]));
            }
        }
    }
}

fn json(line: &mut Vec<u8>, entry: &Entry<'_>, worker: &str) {
    line.extend_from_slice(b"{\"time\":\"");
    clock::with_time_of_day(|time| line.extend_from_slice(time.iso.as_bytes()));
    line.extend_from_slice(b"\",\"remote_addr\":\"");
    push_client(line, entry.client);
    line.push(b'"');
    let texts: [(&str, Option<&[u8]>); 5] = [
        ("method", entry.part(|head, bytes| head.method.of(bytes))),
        ("target", entry.part(|head, bytes| head.target.of(bytes))),
        ("protocol", entry.head.map(|(head, _)| protocol(head))),
        ("referer", entry.field("referer")),
        ("user_agent", entry.field("user-agent")),
    ];
    for (key, text) in texts {
        line.extend_from_slice(format!(",\"{key}\":").as_bytes());
        match text {
            Some(text) => json_string(line, text),
            None => line.extend_from_slice(b"null"),
        }
    }
    line.extend_from_slice(b",\"worker\":");
    match worker {
        "" => line.extend_from_slice(b"null"),
        worker => json_string(line, worker.as_bytes()),
    }
    if entry.is_plain() {
        line.extend_from_slice(b",\"status\":null,\"size\":null");
    } else {
        push_json_numbers(line, [("status", u64::from(entry.status)), ("size", entry.size)]);
    }
    line.extend_from_slice(match entry.state {
        State::Incomplete => b",\"complete\":false",
        State::Persists | State::Closed => b",\"complete\":true",
    });
    let numbers = [
        ("sent", entry.sent),
        ("duration_us", entry.microseconds),
        ("request", entry.number),
        ("kept", u64::from(entry.kept)),
        ("pid", u64::from(std::process::id())),
    ];
    push_json_numbers(line, numbers);
    line.push(b'}');
}

fn push_json_numbers<const N: usize>(line: &mut Vec<u8>, numbers: [(&str, u64); N]) {
    for (key, number) in numbers {
        line.extend_from_slice(format!(",\"{key}\":{number}").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_parsed_or_the_error_explains_why_not() {
        assert_eq!(
            parse("a%%b %{X}i%D").unwrap(),
            [Piece::Text("a%b ".into()), Piece::Field("X".into()), Piece::Duration]
        );
        assert_eq!(parse("%l %t").unwrap()[..2], [Piece::Text("- [".into()), Piece::Time]);
        for (format, complaint) in [("%y", "%y is not known"), ("%", "at the end"), ("%{X", "brace"), ("%{X}s", "NAME")]
        {
            let error = parse(format).unwrap_err();
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn text_of_clients_stays_inside_its_quotes() {
        let mut line = Vec::new();
        escape(&mut line, b"a\"b\\c\r\n\x1b[2J\xe9");
        assert_eq!(line, br#"a\"b\\c\x0d\x0a\x1b[2J\xe9"#);
        line.clear();
        json_string(&mut line, b"a\"b\\\n\xe9");
        assert_eq!(line, br#""a\"b\\\u000a\u00e9""#);
    }
}
