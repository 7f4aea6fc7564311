//! The head of a request of HTTP/2, from a list of fields (RFC 9113 section 8).
//!
//! The list becomes the text that the same request has in HTTP/1.1, `Host` and joined cookies included, and a [`Head`] with
//! positions in this text. So the checks and the limits are those of HTTP/1.1, and whoever reads a head reads this one too.

use crate::grammar::{is_authority, is_field_value, is_tchar, is_token};
use crate::limits::Limits;
use crate::parser::body::check_trailer;
use crate::parser::head::FieldChecks;
use crate::parser::target;
use crate::parser::types::{Field, Framing, Head, Span};
use crate::parser::version::Version;
use crate::reject::Reject;

/// The end of a request line: the version, as nginx and Apache write it in a log.
const LINE_END: &[u8] = b" HTTP/2.0\r\n";

/// Bytes and fields of a usual head, for which memory is taken at once.
const USUAL_TEXT: usize = 512;
const USUAL_FIELDS: usize = 12;
const USUAL_PSEUDO: usize = 64;

/// The pseudo-header fields of a request (RFC 9113 section 8.3.1).
const PSEUDO_FIELDS: [&[u8]; 4] = [b":method", b":scheme", b":authority", b":path"];
const METHOD: usize = 0;
const SCHEME: usize = 1;
const AUTHORITY: usize = 2;
const PATH: usize = 3;

/// The head of a request under construction from its fields, which come one by one.
///
/// After the first fault nothing more is kept, so the text never exceeds [`Limits::head`].
#[derive(Clone, Debug, Default)]
pub struct HeadBuilder {
    /// The request line and the header fields, each with its line end.
    text: Vec<u8>,
    /// Values of the pseudo-header fields, one after another.
    pseudo: Vec<u8>,
    /// Positions in `pseudo`.
    found: [Option<Span>; PSEUDO_FIELDS.len()],
    /// The values of all fields `Cookie`, joined.
    cookie: Option<Vec<u8>>,
    head: Head,
    /// The request line is written: pseudo-header fields must not follow.
    has_line: bool,
    /// A field `Host` was sent.
    has_host: bool,
    reject: Option<Reject>,
}

impl HeadBuilder {
    /// Takes the next field of the list.
    pub fn field(&mut self, name: &[u8], value: &[u8], limits: &Limits) {
        if self.reject.is_none() {
            self.reject = self.take(name, value, limits).err();
        }
    }

    /// Bytes that are kept.
    pub fn size(&self) -> usize {
        self.text.len() + self.pseudo.len() + self.cookie.as_ref().map_or(0, Vec::len)
    }

    fn take(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> Result<(), Reject> {
        if name.first() == Some(&b':') {
            return self.take_pseudo(name, value, limits);
        }
        self.write_line(limits)?;
        check_name(name)?;
        check_value(value)?;
        if name == b"cookie" {
            return self.take_cookie(value, limits);
        }
        if name == b"te" && !value.eq_ignore_ascii_case(b"trailers") {
            return Err(Reject::bad("a TE other than trailers"));
        }
        if name == b"host" {
            if std::mem::replace(&mut self.has_host, true) {
                return Err(Reject::bad("more than one Host"));
            }
            if self.found[AUTHORITY].is_some() {
                // The field is there already.
                return match self.pseudo(AUTHORITY).eq_ignore_ascii_case(value) {
                    true => Ok(()),
                    false => Err(Reject::bad("a Host that differs from :authority")),
                };
            }
        }
        self.push(name, value, limits)
    }

    fn take_pseudo(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> Result<(), Reject> {
        if self.has_line {
            return Err(Reject::bad("a pseudo-header field after a header field"));
        }
        if name == b":protocol" {
            // Extended CONNECT (RFC 8441), which no setting announces.
            return Err(Reject::with(501, "WebSocket over HTTP/2 (:protocol), which is served over HTTP/1.1 only"));
        }
        let Some(which) = PSEUDO_FIELDS.iter().position(|known| *known == name) else {
            return Err(Reject::bad("an unknown pseudo-header field"));
        };
        if self.found[which].is_some() {
            return Err(Reject::bad("a pseudo-header field more than once"));
        }
        match which {
            METHOD if value.len() > Limits::MAX_METHOD && value.iter().all(|&byte| is_tchar(byte)) => {
                return Err(Reject::METHOD_TOO_LONG);
            }
            METHOD if !is_token(value) => return Err(Reject::bad("a malformed :method")),
            PATH if value.len() > limits.request_line => {
                // As much as a log line may need.
                self.found[PATH] = Some(Span::new(self.pseudo.len(), limits.request_line));
                self.pseudo.extend_from_slice(&value[..limits.request_line]);
                return Err(Reject::LINE_TOO_LONG);
            }
            AUTHORITY if value.len() > limits.field_line => return Err(Reject::FIELD_TOO_LONG),
            SCHEME if !value.eq_ignore_ascii_case(b"http") && !value.eq_ignore_ascii_case(b"https") => {
                return Err(Reject::bad("a :scheme other than http and https"));
            }
            _ => {}
        }
        self.pseudo.reserve(USUAL_PSEUDO);
        self.found[which] = Some(Span::new(self.pseudo.len(), value.len()));
        self.pseudo.extend_from_slice(value);
        Ok(())
    }

    fn pseudo(&self, which: usize) -> &[u8] {
        self.found[which].map_or(b"", |span| span.of(&self.pseudo))
    }

    fn push_line(&mut self) {
        self.text.reserve(USUAL_TEXT.max(self.pseudo.len()));
        self.head.fields.reserve(USUAL_FIELDS);
        let part = |which: usize| self.found[which].map_or(&b""[..], |span| span.of(&self.pseudo));
        self.text.extend_from_slice(part(METHOD));
        self.text.push(b' ');
        self.text.extend_from_slice(part(PATH));
        self.text.extend_from_slice(LINE_END);
    }

    /// Writes the request line and `Host`, when no pseudo-header field can follow.
    fn write_line(&mut self, limits: &Limits) -> Result<(), Reject> {
        if std::mem::replace(&mut self.has_line, true) {
            return Ok(());
        }
        self.push_line();
        let (method, path) = (self.pseudo(METHOD).len(), self.pseudo(PATH).len());
        self.head.version = Version::Http2;
        self.head.method = Span::new(0, method);
        self.head.target = Span::new(method + 1, path);
        if self.text.len() - b"\r\n".len() > limits.request_line {
            return Err(Reject::LINE_TOO_LONG);
        }
        match self.pseudo(METHOD) {
            _ if self.found[METHOD].is_none() => return Err(Reject::bad("no :method")),
            // Its only pseudo-header fields are :method and :authority (RFC 9113 section 8.5).
            b"CONNECT" => return Err(Reject::with(501, "CONNECT: this server is not a tunnel")),
            b"TRACE" => return Err(Reject::with(501, "TRACE is refused")),
            _ => {}
        }
        if self.found[SCHEME].is_none() {
            return Err(Reject::bad("no :scheme"));
        }
        self.head.parts = match self.pseudo(PATH) {
            _ if self.found[PATH].is_none() => return Err(Reject::bad("no :path")),
            path @ ([b'/', ..] | b"*") => target::parse(self.pseudo(METHOD), path, self.head.target.start())?,
            _ => return Err(Reject::bad("a :path that does not begin with a slash")),
        };
        // A :scheme of https is not refused without TLS: only trusted gateways begin HTTP/2 there (the option http2), and HAProxy writes
        // https whatever its clients speak (RFC 9110 section 7.4). Nor is it believed: X-Forwarded-Proto and the like say who speaks TLS.
        if self.found[AUTHORITY].is_some() {
            let pseudo = std::mem::take(&mut self.pseudo);
            let authority = self.found[AUTHORITY].map_or(&b""[..], |span| span.of(&pseudo));
            let pushed = match is_authority(authority) {
                true => self.push(b"host", authority, limits),
                false => Err(Reject::bad("a malformed :authority")),
            };
            self.pseudo = pseudo;
            return pushed;
        }
        Ok(())
    }

    /// Writes one field.
    fn push(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> Result<(), Reject> {
        if self.head.fields.len() >= limits.fields {
            return Err(Reject::TOO_MANY_FIELDS);
        }
        if name.len() + value.len() > limits.field_line {
            return Err(Reject::FIELD_TOO_LONG);
        }
        // With `: ` and the line ends of this field and of the head.
        if self.text.len() + name.len() + value.len() + 6 > limits.head {
            return Err(Reject::HEAD_TOO_LONG);
        }
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(b": ");
        let value_at = self.text.len();
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(b"\r\n");
        self.head.fields.push(Field { name: Span::new(start, name.len()), value: Span::new(value_at, value.len()) });
        Ok(())
    }

    /// Joins the fields `Cookie`, which a client may send apart to compress them better (RFC 9113 section 8.2.3).
    fn take_cookie(&mut self, value: &[u8], limits: &Limits) -> Result<(), Reject> {
        let joined = self.cookie.get_or_insert_default();
        if b"cookie".len() + joined.len() + 2 + value.len() > limits.field_line {
            return Err(Reject::FIELD_TOO_LONG);
        }
        if !joined.is_empty() {
            joined.extend_from_slice(b"; ");
        }
        joined.extend_from_slice(value);
        Ok(())
    }

    /// Completes the head: returns it with its text. `has_content`: content follows, perhaps of length zero.
    ///
    /// If the request is refused, the text is the request line as far as it has come, for the log; it may hold any bytes.
    pub fn finish(mut self, has_content: bool, limits: &Limits) -> (Head, Vec<u8>, Result<(), Reject>) {
        let result = match self.reject {
            None => self.complete(has_content, limits),
            Some(reject) => Err(reject),
        };
        if result.is_err() {
            if !self.has_line {
                self.push_line();
                self.head.method = Span::new(0, self.pseudo(METHOD).len());
            }
            self.text.truncate(self.text.iter().position(|&byte| byte == b'\r').unwrap_or(self.text.len()));
            self.head.fields.clear();
        }
        self.head.length = self.text.len();
        (self.head, self.text, result)
    }

    fn complete(&mut self, has_content: bool, limits: &Limits) -> Result<(), Reject> {
        self.write_line(limits)?;
        if let Some(cookie) = self.cookie.take() {
            self.push(b"cookie", &cookie, limits)?;
        }
        self.text.extend_from_slice(b"\r\n");
        let fields = std::mem::take(&mut self.head.fields);
        let mut checks = FieldChecks::default();
        let checked = fields
            .iter()
            .try_for_each(|field| checks.take(field.name.of(&self.text), field.value.of(&self.text), &mut self.head));
        self.head.fields = fields;
        checked?;
        // Transfer-Encoding was refused by its name.
        checks.finish(limits, &mut self.head, |_| Ok(Framing::Chunked))?;
        match self.head.framing {
            Framing::Length(1..) if !has_content => return Err(Reject::OTHER_LENGTH),
            // The end of the stream ends the content.
            Framing::Absent if has_content => self.head.framing = Framing::Chunked,
            _ => {}
        }
        Ok(())
    }
}

/// The trailer fields behind the content of a request of HTTP/2, which are checked and dropped: WSGI has no place for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trailers {
    fields: usize,
    bytes: usize,
}

impl Trailers {
    /// Checks the next field (RFC 9113 section 8.1).
    pub fn field(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> Result<(), Reject> {
        if name.first() == Some(&b':') {
            return Err(Reject::bad("a pseudo-header field among trailers"));
        }
        self.fields += 1;
        self.bytes += name.len() + value.len() + b": ".len();
        if self.fields > limits.fields || self.bytes > limits.trailers {
            return Err(Reject::TRAILERS_TOO_LARGE);
        }
        check_name(name)?;
        check_trailer(name)?;
        check_value(value)
    }
}

/// Refuses names with capitals, and fields about a connection (RFC 9113 section 8.2).
fn check_name(name: &[u8]) -> Result<(), Reject> {
    let is_good = |byte: &u8| is_tchar(*byte) && !byte.is_ascii_uppercase();
    if name.is_empty() || !name.iter().all(is_good) {
        return Err(match name.iter().any(u8::is_ascii_uppercase) {
            true => Reject::bad("a capital letter in a header field name"),
            false => Reject::bad("a malformed header field name"),
        });
    }
    match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
            Err(Reject::bad("a header field about the connection, which HTTP/2 does not have"))
        }
        _ => Ok(()),
    }
}

/// Refuses control characters, and white space at an end (RFC 9113 section 8.2.1).
fn check_value(value: &[u8]) -> Result<(), Reject> {
    if !is_field_value(value) {
        return Err(Reject::bad("a control character in a header field value"));
    }
    match value {
        [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => Err(Reject::bad("white space around a header field value")),
        _ => Ok(()),
    }
}
