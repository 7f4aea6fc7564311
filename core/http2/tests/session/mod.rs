//! Runs the steps of a session: frames of a client, calls of a server, and what comes of them.
//!
//! Tests of other crates include it by `#[path = "…/http2/tests/session/mod.rs"] mod session;`.

// Each test uses a part.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;

use poorhttp_http2::{Connection, Decoder, ErrorCode, Event, Options, PREFACE};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

/// Kinds of frames by number.
const KINDS: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];

const GET: &str = ":method: GET ; :scheme: http ; :path: / ; :authority: a";
const POST: &str = ":method: POST ; :scheme: http ; :path: / ; :authority: a";

/// A frame of the other side.
#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// The bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The frames in some bytes, which must be whole.
pub fn frames(bytes: &[u8]) -> Vec<Frame> {
    let (frames, rest) = split(bytes);
    assert!(rest.is_empty(), "half a frame");
    frames
}

/// The whole frames at the front of some bytes, and the rest.
pub fn split(mut bytes: &[u8]) -> (Vec<Frame>, &[u8]) {
    let mut frames = Vec::new();
    while let [a, b, c, kind, flags, d, e, f, g, rest @ ..] = bytes {
        let Some((payload, rest)) = rest.split_at_checked(u32::from_be_bytes([0, *a, *b, *c]) as usize) else { break };
        let stream = u32::from_be_bytes([*d, *e, *f, *g]);
        frames.push(Frame { kind: *kind, flags: *flags, stream, payload: payload.to_vec() });
        bytes = rest;
    }
    (frames, bytes)
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    if text.len() < 127 {
        out.push(text.len() as u8);
    } else {
        let mut rest = text.len() - 127;
        out.push(127);
        while rest >= 128 {
            out.push(rest as u8 | 128);
            rest >>= 7;
        }
        out.push(rest as u8);
    }
    out.extend_from_slice(text);
}

/// Fields as literals without a table.
pub fn literals<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        string(&mut out, name);
        string(&mut out, value);
    }
    out
}

/// The bytes of a text whose characters are Latin-1.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|character| u8::try_from(character).unwrap()).collect()
}

/// The bytes of hexadecimal digits.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Replaces `{9000*a}` by so many times `a`.
fn repeated(text: &str) -> String {
    let Some((before, rest)) = text.split_once('{') else { return text.into() };
    let (inner, behind) = rest.split_once('}').unwrap();
    match inner.split_once('*') {
        Some((count, what)) => before.to_owned() + &what.repeat(count.parse().unwrap()) + &repeated(behind),
        None => format!("{before}{{{inner}}}{}", repeated(behind)),
    }
}

fn code(name: &str) -> u32 {
    (0..14).find(|number| ErrorCode::of(*number).name() == name).unwrap_or_else(|| panic!("{name}: no code"))
}

/// Words of a step: its arguments, flags, `name=value`, and what stands behind `--`.
struct Words<'a> {
    words: Vec<&'a str>,
    behind: &'a str,
}

impl<'a> Words<'a> {
    fn of(step: &'a str) -> Self {
        let (words, behind) = step.split_once(" -- ").unwrap_or((step, ""));
        Words { words: words.split_whitespace().collect(), behind }
    }

    fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
    }

    fn number(&self, at: usize) -> u32 {
        self.words[at].parse().unwrap_or_else(|_| panic!("{:?}: no number", self.words))
    }

    fn named(&self, name: &str) -> Option<u32> {
        self.words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }

    /// Fields: `name: value ; name: value`; `get` and `post` stand for a request.
    fn fields(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let text = repeated(self.behind);
        let text = text.split(" ; ").map(|part| match part {
            "get" => GET,
            "post" => POST,
            other => other,
        });
        let text = text.collect::<Vec<_>>().join(" ; ");
        text.split(" ; ")
            .filter(|part| !part.is_empty())
            .map(|part| {
                let (name, value) =
                    part.split_at(1 + part[1..].find(':').unwrap_or_else(|| panic!("{part}: no field")));
                (latin1(name), latin1(value[1..].strip_prefix(' ').unwrap_or(&value[1..])))
            })
            .collect()
    }
}

/// The bytes that a client sends by a step.
pub fn client(step: &str) -> Vec<u8> {
    if let Some(rest) = step.strip_prefix("loop ") {
        // `loop COUNT FROM: STEP && STEP`: {} is a stream number from FROM on.
        let (counts, steps) = rest.split_once(": ").unwrap();
        let (count, from) = counts.split_once(' ').unwrap();
        let (count, from): (u32, u32) = (count.parse().unwrap(), from.parse().unwrap());
        let ids = (0..count).map(|number| (from + 2 * number).to_string());
        return ids
            .flat_map(|id| steps.replace("{}", &id).split(" && ").flat_map(client).collect::<Vec<_>>())
            .collect();
    }
    let words = Words::of(step);
    let flag = |name: &str, bit: u8| if words.has(name) { bit } else { 0 };
    let padding = words.named("pad");
    let padded = |content: Vec<u8>| match padding {
        Some(length) => [&[length as u8][..], &content, &vec![0; length as usize]].concat(),
        None => content,
    };
    let pad_flag = if padding.is_some() { 8 } else { 0 };
    let block = || {
        let fields = words.fields();
        literals(fields.iter().map(|(name, value)| (&name[..], &value[..])))
    };
    match words.words[0] {
        "HEADERS" => {
            let dependency = words.named("dep").map(|stream| [&stream.to_be_bytes()[..], &[15]].concat());
            let priority = if dependency.is_some() { 0x20 } else { 0 };
            let flags = flag("end", 1) | if words.has("open") { 0 } else { 4 } | pad_flag | priority;
            let content = [dependency.unwrap_or_default(), block()].concat();
            frame(HEADERS, flags, words.number(1), &padded(content))
        }
        "CONTINUATION" => frame(CONTINUATION, if words.has("open") { 0 } else { 4 }, words.number(1), &block()),
        "DATA" => {
            let content = vec![b'x'; words.number(2) as usize];
            frame(DATA, flag("end", 1) | pad_flag, words.number(1), &padded(content))
        }
        "PRIORITY" => frame(2, 0, words.number(1), &[&words.number(2).to_be_bytes()[..], &[15]].concat()),
        "RST_STREAM" => frame(RST_STREAM, 0, words.number(1), &code(words.words[2]).to_be_bytes()),
        "SETTINGS" => {
            let settings = words.words[1..].iter().filter_map(|word| word.split_once('='));
            let settings = settings.map(|(name, value)| (name.parse::<u16>().unwrap(), value.parse::<u32>().unwrap()));
            let payload = settings.flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat());
            frame(SETTINGS, flag("ack", 1), 0, &payload.collect::<Vec<_>>())
        }
        "PING" => frame(PING, flag("ack", 1), 0, &hex(words.words[1])),
        "GOAWAY" => frame(GOAWAY, 0, 0, &[0; 8]),
        "WINDOW_UPDATE" => frame(WINDOW_UPDATE, 0, words.number(1), &words.number(2).to_be_bytes()),
        "PRIORITY_UPDATE" => frame(16, 0, 0, &[&words.number(1).to_be_bytes()[..], words.behind.as_bytes()].concat()),
        // FRAME kind flags stream [-- payload in digits]
        "FRAME" => frame(words.number(1) as u8, words.number(2) as u8, words.number(3), &hex(&repeated(words.behind))),
        "RAW" => hex(&repeated(words.behind)),
        "TEXT" => latin1(words.behind),
        other => panic!("{other}: no step of a client"),
    }
}

/// A connection, with what has come of the steps so far.
pub struct Session {
    pub connection: Connection,
    /// Most bytes that it receives at once.
    pub piece: usize,
    decoder: Decoder,
    block: Vec<u8>,
    pub events: VecDeque<String>,
    pub sent: VecDeque<String>,
}

impl Session {
    pub fn new(options: Options, piece: usize) -> Self {
        Session {
            connection: Connection::new(Arc::new(options)),
            piece,
            decoder: Decoder::new(4096),
            block: Vec::new(),
            events: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    /// The client begins as usual; what the server says to that is forgotten.
    pub fn begin(&mut self) {
        self.receive(&[&PREFACE[..], &client("SETTINGS")].concat());
        self.sent.clear();
        assert_eq!(self.events.len(), 0);
    }

    pub fn receive(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.piece) {
            let mut rest = piece;
            loop {
                let event = match self.connection.receive(&mut rest) {
                    Event::NeedMore => break,
                    event => described(&event),
                };
                if event.starts_with("failed") {
                    if self.events.back() != Some(&event) {
                        self.events.push_back(event);
                    }
                    break;
                }
                // Content may come in several pieces.
                let before = self.events.back().and_then(|last| last.strip_prefix("content "));
                let joined = before.zip(event.strip_prefix("content ")).and_then(|(last, next)| {
                    let ((stream, many), (other, more)) = (last.split_once(' ')?, next.split_once(' ')?);
                    let sum = many.parse::<u32>().ok()? + more.parse::<u32>().ok()?;
                    (stream == other).then(|| format!("content {stream} {sum}"))
                });
                if joined.is_some() {
                    self.events.pop_back();
                }
                self.events.push_back(joined.unwrap_or(event));
            }
            assert!(rest.is_empty());
            self.collect();
        }
    }

    /// Takes the output apart.
    fn collect(&mut self) {
        let output = self.connection.take_output();
        for frame in frames(&output) {
            if let Some(text) = self.described(&frame) {
                self.sent.push_back(text);
            }
        }
    }

    fn described(&mut self, frame: &Frame) -> Option<String> {
        let Frame { kind, flags, stream, payload } = frame;
        let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        let mut text = KINDS[usize::from(*kind)].to_string();
        let end = if *kind <= HEADERS && flags & 1 != 0 { " end" } else { "" };
        match *kind {
            DATA => write!(text, " {stream} {}{end}", payload.len()),
            HEADERS | CONTINUATION => {
                self.block.extend_from_slice(payload);
                if flags & 4 == 0 {
                    return Some(format!("{text} {stream}{end} open"));
                }
                let mut fields = Vec::new();
                let block = std::mem::take(&mut self.block);
                let field = |name: &[u8], value: &[u8]| {
                    fields.push(format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
                };
                self.decoder.decode(&block, true, field).unwrap();
                write!(text, " {stream}{end} -- {}", fields.join(" ; "))
            }
            RST_STREAM => write!(text, " {stream} {}", ErrorCode::of(number(0)).name()),
            SETTINGS if flags & 1 != 0 => write!(text, " ack"),
            SETTINGS => {
                let settings = payload.chunks(6).map(|setting| {
                    let &[a, b, c, d, e, f] = setting else { panic!("half a setting") };
                    format!(" {}={}", u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))
                });
                write!(text, "{}", settings.collect::<String>())
            }
            PING => {
                let ack = if flags & 1 != 0 { " ack" } else { "" };
                let digits: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
                write!(text, " {digits}{ack}")
            }
            GOAWAY => {
                let code = ErrorCode::of(number(4)).name();
                write!(text, " {} {code} {}", number(0), String::from_utf8_lossy(&payload[8..]))
            }
            WINDOW_UPDATE => write!(text, " {stream} {}", number(0)),
            _ => panic!("{frame:?}"),
        }
        .unwrap();
        Some(text)
    }

    /// The server is told something. A result is compared with what stands behind ` = `.
    fn call(&mut self, step: &str) {
        let (call, expected) = step.rsplit_once(" = ").map_or((step, None), |(call, result)| (call, Some(result)));
        let words = Words::of(call);
        let fields = words.fields();
        let fields = fields.iter().map(|(name, value)| (&name[..], &value[..]));
        let stream = if words.words.len() > 1 { words.words[1].parse().unwrap_or(0) } else { 0 };
        let connection = &mut self.connection;
        let done = |result: Result<(), _>| result.map_or_else(|unsent| format!("{unsent:?}"), |()| "done".into());
        let result = match words.words[0] {
            "head" => done(connection.send_head(stream, words.number(2) as u16, fields, words.has("end"))),
            "data" => {
                let content = vec![b'y'; words.number(2) as usize];
                let result = connection.send_data(stream, &content, words.has("end"));
                result.map_or_else(|unsent| format!("{unsent:?}"), |taken| taken.to_string())
            }
            "trailers" => done(connection.send_trailers(stream, fields)),
            "consumed" => {
                connection.consumed(stream, words.number(2));
                "done".into()
            }
            "widen" => {
                connection.widen(stream);
                "done".into()
            }
            "await" => {
                connection.await_content(stream);
                "done".into()
            }
            "check_hold" => if connection.check_hold(stream) { "held" } else { "free" }.into(),
            "allowed" => connection.allowed(stream).to_string(),
            "reset" => {
                connection.reset(stream, ErrorCode::of(code(words.words[2])));
                "done".into()
            }
            "close" => {
                connection.close(stream);
                "done".into()
            }
            "shutdown" => {
                connection.begin_shutdown();
                "done".into()
            }
            "finish" => {
                connection.finish_shutdown();
                "done".into()
            }
            "pass" => {
                connection.pass(stream);
                "done".into()
            }
            "next" => connection.next_writable().map_or("none".into(), |stream| stream.to_string()),
            "wait" => connection.wait(stream).map_or("none".into(), |wait| format!("{wait:?}")),
            "finished" => connection.is_finished().to_string(),
            "streams" => connection.streams().to_string(),
            other => panic!("{other}: no step of a server"),
        };
        // Without `= …` the call succeeds. `keep`: the output stays, as if the client did not read.
        assert_eq!(
            result,
            expected.unwrap_or(if words.words[0] == "data" { words.words[2] } else { "done" }),
            "{step}"
        );
        if !words.has("keep") {
            self.collect();
        }
    }

    /// Runs one step.
    pub fn step(&mut self, step: &str) {
        let (kind, rest) = step.split_at(step.len().min(2));
        match kind.trim() {
            ">" => self.receive(&client(rest)),
            "!" => self.call(rest),
            "=" => assert_eq!(self.events.pop_front().as_deref(), Some(&*repeated(rest)), "sent: {:?}", self.sent),
            "<" => assert_eq!(self.sent.pop_front().as_deref(), Some(&*repeated(rest)), "events: {:?}", self.events),
            "~" => {
                self.events.clear();
                self.sent.clear();
            }
            _ => panic!("{step:?}: no step"),
        }
    }
}

/// An event as text.
pub fn described(event: &Event<'_>) -> String {
    match event {
        Event::NeedMore => "need more".into(),
        Event::Request(request) => {
            let of = |span: poorhttp_http::Span| String::from_utf8_lossy(span.of(&request.text)).into_owned();
            let fields: Vec<_> =
                request.head.fields.iter().map(|field| format!("{}: {}", of(field.name), of(field.value))).collect();
            let content = if request.has_content { " +" } else { "" };
            let (method, target) = (of(request.head.method), of(request.head.target));
            format!("request {} {method} {target}{content} -- {}", request.stream, fields.join(" ; "))
        }
        Event::Content { stream, bytes } => format!("content {stream} {}", bytes.len()),
        Event::Ended { stream } => format!("ended {stream}"),
        Event::Refused { stream, reject, .. } => format!("refused {stream} {} {}", reject.status, reject.reason),
        Event::Reset { stream, code, reason } => {
            format!("reset {stream} {} {}", code.name(), reason.unwrap_or("by the client"))
        }
        Event::Failed(error) => format!("failed {} {}", error.code.name(), error.reason),
    }
}
