//! Fuzz target `response`: calls the methods of a response in any order.

use poorhttp_http::{Ending, Head, Response, ServerFields};

use crate::receiver::receive;

const AMBIENT: ServerFields<'_> = ServerFields { date: b"Date: now\r\n", server: b"Server: us\r\n", closing: false };
/// A response to an earlier, pipelined request.
const EARLIER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
/// Fields that the server sets or drops.
const OURS: [&str; 5] = ["connection", "content-length", "date", "server", "transfer-encoding"];

/// The accepted calls of an application.
#[derive(Default)]
struct Accepted {
    /// The response, to ask for its end.
    to_head: bool,
    status: String,
    fields: Vec<(String, String)>,
    content: Vec<u8>,
    ending: Option<Ending>,
}

/// Performs calls of an application in any order, each after a byte 0xff; the request line comes first.
///
/// `s200 OK` starts, `fName:value` adds a field, `r` restarts, `k` closes, `c` or `c5` completes the head for a body of
/// unknown or this length, `wtext` sends, `e` ends.
pub fn response(script: &[u8]) {
    let text: Vec<_> = script.split(|&byte| byte == 0xff).map(String::from_utf8_lossy).collect();
    let mut out = EARLIER.to_vec();
    let accepted = play(&text[0], &text[1..], &mut out);
    // The size of a response is bounded by the input and a constant.
    assert!(out.len() <= 8 * script.len() + 300, "{} bytes of {}", out.len(), script.len());
    // Bytes before the response are not changed.
    let wire = out.strip_prefix(EARLIER).expect("the earlier answer is whole");
    let Some(ending) = accepted.ending else { return };
    let seen = Seen::read(wire, accepted.to_head);
    // A client reads the status and the fields that were given, and no other.
    let reason = if accepted.status.len() == 3 { format!("{} ", accepted.status) } else { accepted.status };
    assert_eq!(seen.status, reason);
    assert_eq!(seen.not_ours(), of_application(&accepted.fields));
    for name in ["connection", "content-length", "transfer-encoding"] {
        assert!(seen.all(name).len() <= 1, "{name} twice");
    }
    assert!(["date", "server"].iter().all(|name| !seen.all(name).is_empty()));
    // It reads the content up to the declared length; none with HEAD, 204 and 304.
    assert_eq!(seen.content, if seen.has_body { &accepted.content[..] } else { b"" });
    // It finds the end of the response, or the connection closes; this is announced unless the content is too short.
    assert!(seen.is_whole || !ending.persists);
    assert!(seen.is_whole || seen.closes || ending.missing > 0);
    assert!(!seen.closes || !ending.persists);
}

/// Makes the calls; if the response has ended, `out` must hold it.
fn play(line: &str, calls: &[std::borrow::Cow<'_, str>], out: &mut Vec<u8>) -> Accepted {
    let request = receive([format!("{line}\r\nHost: a\r\n\r\n").as_bytes()]);
    let (head, bytes) = match request.messages.into_iter().next() {
        Some(message) => (message.head, message.bytes),
        None => (Head::default(), Vec::new()),
    };
    let mut response = Response::new(&head, &bytes, out.len());
    let mut accepted = Accepted { to_head: head.method.of(&bytes) == b"HEAD", ..Accepted::default() };
    for call in calls {
        let mut characters = call.chars();
        let (what, rest) = (characters.next(), characters.as_str());
        let (state, length) = ((response.is_started(), response.is_committed()), out.len());
        let result = match what {
            Some('s') => response.start(out, rest).map(|()| accepted.status = rest.to_owned()),
            Some('f') => {
                let (name, value) = rest.split_once(':').unwrap_or((rest, ""));
                response.field(out, name, value).map(|()| accepted.fields.push((name.to_owned(), value.to_owned())))
            }
            Some('c') => response.commit(out, rest.parse().ok(), &AMBIENT),
            Some('w') if response.is_committed() => {
                let admitted = response.admit(rest.len());
                response.open_chunk(out, admitted);
                out.extend_from_slice(&rest.as_bytes()[..admitted]);
                out.extend_from_slice(response.end_of_chunk(admitted));
                accepted.content.extend_from_slice(&rest.as_bytes()[..admitted]);
                Ok(())
            }
            Some('r') => {
                if !response.is_committed() {
                    response.restart(out);
                    (accepted.status, accepted.fields) = Default::default();
                    // A restart removes everything.
                    assert_eq!(out, EARLIER);
                }
                Ok(())
            }
            Some('k') => {
                response.close();
                Ok(())
            }
            Some('e') if response.is_committed() => {
                accepted.ending = Some(response.end(out));
                break;
            }
            _ => Ok(()),
        };
        // A refused call changes nothing.
        if result.is_err() {
            assert_eq!((response.is_started(), response.is_committed(), out.len()), (state.0, state.1, length));
        }
    }
    accepted
}

/// The fields of the application, as a client must read them.
fn of_application(fields: &[(String, String)]) -> Vec<(String, String)> {
    let ours = |name: &str| OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours));
    fields.iter().filter(|(name, _)| !ours(name)).cloned().collect()
}

/// A response as an independent, strict client reads it.
struct Seen {
    status: String,
    fields: Vec<(String, String)>,
    content: Vec<u8>,
    has_body: bool,
    /// Its end was found, and no bytes follow it.
    is_whole: bool,
    closes: bool,
}

impl Seen {
    fn read(wire: &[u8], to_head: bool) -> Self {
        let end = wire.windows(4).position(|window| window == b"\r\n\r\n").expect("a head has an end");
        let (head, rest) = (latin1(&wire[..end]), &wire[end + 4..]);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).expect("a status line").to_owned();
        let fields: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").expect("a field has a name"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        // No control character splits or ends a line.
        assert!(head.chars().all(|character| "\r\n\t".contains(character) || character >= ' ' && character != '\x7f'));
        let code: u16 = status[..3].parse().expect("a status code");
        let has_body = !to_head && !matches!(code, 204 | 304);
        let mut seen = Seen { status, fields, content: Vec::new(), has_body, is_whole: true, closes: false };
        seen.closes = seen.all("connection") == ["close"];
        let length = seen.all("content-length").first().map(|length| length.parse());
        let chunked = !seen.all("transfer-encoding").is_empty();
        assert!(length.is_none() || !chunked, "two framings");
        if !has_body {
            seen.is_whole = rest.is_empty();
        } else if chunked {
            assert_eq!(seen.all("transfer-encoding"), ["chunked"]);
            (seen.content, seen.is_whole) = unchunked(rest);
        } else {
            seen.content = rest.to_vec();
            seen.is_whole = length == Some(Ok(rest.len()));
        }
        seen
    }

    fn all(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|field| field.0.eq_ignore_ascii_case(name)).map(|field| &field.1[..]).collect()
    }

    fn not_ours(&self) -> Vec<(String, String)> {
        of_application(&self.fields)
    }
}

/// The content of chunks as a server sends them, and whether the last chunk is present.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut content = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n").expect("a chunk has a size");
        let size = usize::from_str_radix(&latin1(&rest[..line]), 16).expect("a size is a number");
        let (chunk, behind) = rest[line + 2..].split_at(size);
        content.extend_from_slice(chunk);
        rest = behind.strip_prefix(b"\r\n").expect("a chunk has an end");
        if size == 0 {
            return (content, rest.is_empty());
        }
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}
