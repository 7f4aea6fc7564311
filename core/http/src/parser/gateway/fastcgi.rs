//! FastCGI 1.0: records of eight octets and what they announce. A request is a record that begins it, the stream of its
//! variables, and the stream of its body, each ended by an empty record; the answer is a stream, and a record that ends
//! the request.
//!
//! One request at a time is taken on a connection. A web server that begins another before that is told that it cannot be
//! had, as the specification has it, and may ask again when the first has ended.

use super::{Packet, TOO_LARGE, Variable};
use crate::limits::Limits;
use crate::parser::body::Part;
use crate::reject::Reject;

/// Octets of the head of a record.
pub(crate) const HEADER: usize = 8;
/// Octets of content of the records that we write: as many as there may be, and a multiple of eight.
pub(crate) const LARGEST: usize = 65_528;

const BEGIN_REQUEST: u8 = 1;
const ABORT_REQUEST: u8 = 2;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const GET_VALUES: u8 = 9;
const GET_VALUES_RESULT: u8 = 10;
const UNKNOWN_TYPE: u8 = 11;

const RESPONDER: u16 = 1;
const KEEP_CONNECTION: u8 = 1;
const REQUEST_COMPLETE: u8 = 0;
const CANNOT_MULTIPLEX: u8 = 1;
const UNKNOWN_ROLE: u8 = 3;

const ABORTED: Reject = Reject::bad("the web server has given the request up");
const OUT_OF_TURN: Reject = Reject::bad("a FastCGI record out of turn");

/// What is said beside the requests, to be sent at once.
pub(crate) type ManagementReply = Vec<u8>;

/// The head of a record.
#[derive(Clone, Copy)]
struct Record {
    kind: u8,
    request: u16,
    content: usize,
    /// Octets with head and padding.
    length: usize,
}

/// The record at the front; `None`: its head is not there yet.
fn record(bytes: &[u8]) -> Result<Option<Record>, Reject> {
    match *bytes {
        [version, ..] if version != 1 => Err(Reject::bad("a record of another FastCGI than version 1")),
        [_, kind, id_high, id_low, high, low, padding, _, ..] => {
            let content = usize::from(u16::from_be_bytes([high, low]));
            let length = HEADER + content + usize::from(padding);
            Ok(Some(Record { kind, request: u16::from_be_bytes([id_high, id_low]), content, length }))
        }
        _ => Ok(None),
    }
}

/// The head of a record with this content, without padding.
fn head(kind: u8, request: u16, content: usize) -> [u8; HEADER] {
    let [id_high, id_low] = request.to_be_bytes();
    let [high, low] = (content as u16).to_be_bytes();
    [1, kind, id_high, id_low, high, low, 0, 0]
}

/// What stands before so many octets of an answer, at most [`LARGEST`].
pub(crate) fn output(request: u16, content: usize) -> [u8; HEADER] {
    head(STDOUT, request, content)
}

/// Ends the stream of an answer, and the request.
pub(crate) fn push_end(out: &mut Vec<u8>, request: u16) {
    out.extend_from_slice(&output(request, 0));
    push_end_of(out, request, REQUEST_COMPLETE);
}

fn push_end_of(out: &mut Vec<u8>, request: u16, status: u8) {
    out.extend_from_slice(&head(END_REQUEST, request, 8));
    out.extend_from_slice(&[0, 0, 0, 0, status, 0, 0, 0]);
}

/// Whether `bytes` begin with a record that aborts this request.
pub(crate) fn is_abort(bytes: &[u8], request: u16) -> bool {
    matches!(record(bytes), Ok(Some(Record { kind: ABORT_REQUEST, request: aborted, .. })) if aborted == request)
}

/// Answers a record that is about no request.
fn answer_management(kind: u8, content: &[u8]) -> ManagementReply {
    const NAME: &[u8] = b"FCGI_MPXS_CONNS";
    let mut out = Vec::new();
    if kind == GET_VALUES {
        let asked = memchr::memmem::find(content, NAME).is_some();
        let value: &[u8] = if asked { &[NAME.len() as u8, 1] } else { &[] };
        let length = if asked { value.len() + NAME.len() + 1 } else { 0 };
        out.extend_from_slice(&head(GET_VALUES_RESULT, 0, length));
        if asked {
            out.extend_from_slice(value);
            out.extend_from_slice(NAME);
            out.push(b'0');
        }
    } else {
        out.extend_from_slice(&head(UNKNOWN_TYPE, 0, 8));
        out.extend_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    }
    out
}

/// Refuses a request that begins, one way or another.
fn turn_away(request: u16, status: u8) -> ManagementReply {
    let mut out = Vec::new();
    push_end_of(&mut out, request, status);
    out
}

/// What [`Opening::poll`] has found.
pub(crate) enum Opened {
    NeedMore,
    ManagementReply(ManagementReply),
    /// The variables are complete.
    Complete(Packet),
}

/// A request from its beginning to the end of its variables, which are moved together at the front.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Its number; 0: none has begun.
    pub(crate) request: u16,
    /// The connection persists.
    pub(crate) persists: bool,
    /// Octets of variables that stand together.
    gathered: u32,
    /// Octets that were looked at.
    scanned: u32,
}

impl Opening {
    /// Looks at what has come since. `bytes` begins where it always has.
    pub(crate) fn poll(&mut self, bytes: &mut [u8], limits: &Limits) -> Result<Opened, Reject> {
        loop {
            let at = self.scanned as usize;
            let Some(found) = record(&bytes[at..])? else { return Ok(Opened::NeedMore) };
            let content = at + HEADER..at + HEADER + found.content;
            let gathered = self.gathered as usize;
            // What belongs to nobody is not collected without end either.
            if gathered + found.content > limits.head || at > 4 * Limits::MOST_HEAD {
                return Err(TOO_LARGE);
            }
            if bytes.len() - at < found.length {
                return Ok(Opened::NeedMore);
            }
            self.scanned += found.length as u32;
            match (found.kind, found.request) {
                (kind, 0) => return Ok(Opened::ManagementReply(answer_management(kind, &bytes[content]))),
                (BEGIN_REQUEST, request) if request == self.request => return Err(OUT_OF_TURN),
                (BEGIN_REQUEST, request) => {
                    let &[high, low, flags, ..] = &bytes[content] else { return Err(OUT_OF_TURN) };
                    if u16::from_be_bytes([high, low]) != RESPONDER {
                        return Ok(Opened::ManagementReply(turn_away(request, UNKNOWN_ROLE)));
                    }
                    if self.request != 0 {
                        return Ok(Opened::ManagementReply(turn_away(request, CANNOT_MULTIPLEX)));
                    }
                    (self.request, self.persists) = (request, flags & KEEP_CONNECTION != 0);
                }
                // Of a request that was turned away.
                (_, request) if request != self.request => {}
                (PARAMS, _) if found.content == 0 => {
                    return Ok(Opened::Complete(Packet { variables: 0..gathered, length: self.scanned as usize }));
                }
                (PARAMS, _) => {
                    bytes.copy_within(content, gathered);
                    self.gathered += found.content as u32;
                }
                (ABORT_REQUEST, _) => return Err(ABORTED),
                _ => return Err(OUT_OF_TURN),
            }
        }
    }
}

pub(super) fn unpack(bytes: &[u8], at: usize) -> Option<Variable> {
    let length = |at: usize| match bytes.get(at..)? {
        [short @ 0..128, ..] => Some((usize::from(*short), at + 1)),
        [a, b, c, d, ..] => Some((u32::from_be_bytes([a & 0x7f, *b, *c, *d]) as usize, at + 4)),
        _ => None,
    };
    let (name, behind) = length(at)?;
    let (value, start) = length(behind)?;
    let middle = start.checked_add(name)?;
    let end = middle.checked_add(value)?;
    (end <= bytes.len()).then_some((start..middle, middle..end, end))
}

/// Where in the stream of a body the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before a record.
    Record,
    /// In one that is the body's: content that is left, and padding behind it.
    Content(usize, usize),
    /// In octets that say nothing.
    Skipped(usize),
    Complete,
}

/// The stream of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    request: u16,
    place: Place,
    /// The end has come, and the padding of its record has not.
    ends: bool,
    /// Its length, if that was said.
    said: Option<u64>,
    received: u64,
}

impl Stream {
    pub(crate) fn new(request: u16, said: Option<u64>) -> Self {
        Stream { request, place: Place::Record, ends: false, said, received: 0 }
    }

    /// Bytes of content that follow in this record.
    pub(crate) fn expected(&self) -> u64 {
        match self.place {
            Place::Content(rest, _) => rest as u64,
            _ => 0,
        }
    }

    /// Counts up to so many of them as received.
    pub(crate) fn take(&mut self, most: u64) -> usize {
        let Place::Content(rest, padding) = self.place else { return 0 };
        let taken = rest.min(usize::try_from(most).unwrap_or(rest));
        self.place = if taken == rest { self.behind(padding) } else { Place::Content(rest - taken, padding) };
        taken
    }

    /// Says what `bytes` starts with, as [`crate::parser::body::Body::next`] does.
    pub(crate) fn next(&mut self, bytes: &[u8], limits: &Limits) -> Part {
        match self.place {
            Place::Complete => Part::Complete,
            Place::Record => self.next_record(bytes, limits).unwrap_or_else(Part::Rejected),
            _ if bytes.is_empty() => Part::NeedMore,
            Place::Content(..) => Part::Content(self.take(bytes.len() as u64)),
            Place::Skipped(rest) => {
                let take = rest.min(bytes.len());
                self.place = self.behind(rest - take);
                Part::Framing(take)
            }
        }
    }

    /// The place before so many octets that say nothing.
    fn behind(&self, rest: usize) -> Place {
        match rest {
            0 if self.ends => Place::Complete,
            0 => Place::Record,
            rest => Place::Skipped(rest),
        }
    }

    fn next_record(&mut self, bytes: &[u8], limits: &Limits) -> Result<Part, Reject> {
        let Some(found) = record(bytes)? else { return Ok(Part::NeedMore) };
        let Record { kind, request, content, length } = found;
        let aside = match (kind, request) {
            (kind, 0) => Some(kind),
            (BEGIN_REQUEST, other) if other != self.request => Some(kind),
            _ => None,
        };
        if let Some(kind) = aside {
            // They are short, and looked at as a whole.
            if content > limits.field_line {
                return Err(TOO_LARGE);
            }
            let Some(whole) = bytes.get(..length) else { return Ok(Part::NeedMore) };
            let answer = match request {
                0 => answer_management(kind, &whole[HEADER..HEADER + content]),
                other => turn_away(other, CANNOT_MULTIPLEX),
            };
            return Ok(Part::ManagementReply(length, answer));
        }
        self.place = match kind {
            _ if request != self.request => self.behind(length - HEADER),
            STDIN if content == 0 => {
                if self.said.is_some_and(|said| said != self.received) {
                    return Err(Reject::bad("a body of another length than CONTENT_LENGTH"));
                }
                self.ends = true;
                self.behind(length - HEADER)
            }
            STDIN => {
                self.received += content as u64;
                if self.said.is_some_and(|said| said < self.received) {
                    return Err(Reject::bad("a body of another length than CONTENT_LENGTH"));
                }
                if self.received > limits.body {
                    return Err(Reject::with(413, "a body over the limit"));
                }
                Place::Content(content, length - HEADER - content)
            }
            ABORT_REQUEST => return Err(ABORTED),
            _ => return Err(OUT_OF_TURN),
        };
        Ok(Part::Framing(HEADER))
    }
}
