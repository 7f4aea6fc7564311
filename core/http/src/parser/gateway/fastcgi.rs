//! FastCGI 1.0: reads requests, writes responses.
//!
//! A record begins a request; streams of records with its variables and its body follow, each ended by an empty record. The
//! response is a stream, followed by a record that ends the request.
//!
//! A connection carries one request at a time. A second one is refused with FCGI_CANT_MPX_CONN, as the specification
//! says, and may be sent again after the first.

use crate::limits::Limits;
use crate::parser::gateway::packet::{Packet, Variable};
use crate::parser::types::Part;
use crate::reject::Reject;

/// Length of a record header.
pub(crate) const HEADER: usize = 8;
/// Content length of the longest record written: the largest multiple of eight below 65,536.
pub(crate) const LARGEST: usize = 65_528;

/// Content length of the longest record.
const MOST_CONTENT: usize = 65_535;

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

const ABORTED: Reject = Reject::bad("the web server aborted the request");
const OUT_OF_TURN: Reject = Reject::bad("a FastCGI record out of turn");

/// A parsed record header.
#[derive(Clone, Copy)]
struct Record {
    kind: u8,
    request: u16,
    content: usize,
    /// Length including header and padding.
    length: usize,
}

/// The record at the front; `None`: its header is incomplete.
fn record(bytes: &[u8]) -> Result<Option<Record>, Reject> {
    match *bytes {
        [version, ..] if version != 1 => Err(Reject::bad("a FastCGI record of a version other than 1")),
        [_, kind, id_high, id_low, high, low, padding, _, ..] => {
            let content = usize::from(u16::from_be_bytes([high, low]));
            let length = HEADER + content + usize::from(padding);
            Ok(Some(Record { kind, request: u16::from_be_bytes([id_high, id_low]), content, length }))
        }
        _ => Ok(None),
    }
}

/// The header of a record with this content length, without padding.
fn head(kind: u8, request: u16, content: usize) -> [u8; HEADER] {
    let [id_high, id_low] = request.to_be_bytes();
    let [high, low] = (content as u16).to_be_bytes();
    [1, kind, id_high, id_low, high, low, 0, 0]
}

/// The header of a record of response content, at most [`LARGEST`] bytes.
pub(crate) fn output(request: u16, content: usize) -> [u8; HEADER] {
    head(STDOUT, request, content)
}

/// Ends the response stream and the request.
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

/// The reply to a management record (request number 0).
fn answer_management(kind: u8, content: &[u8]) -> Vec<u8> {
    const NAME: &[u8] = b"FCGI_MPXS_CONNS";
    const VALUE: &[u8] = b"0";
    if kind != GET_VALUES {
        return [head(UNKNOWN_TYPE, 0, 8), [kind, 0, 0, 0, 0, 0, 0, 0]].concat();
    }
    let values = match memchr::memmem::find(content, NAME) {
        Some(_) => [&[NAME.len() as u8, VALUE.len() as u8], NAME, VALUE].concat(),
        None => Vec::new(),
    };
    [&head(GET_VALUES_RESULT, 0, values.len())[..], &values].concat()
}

/// The record that ends a refused request.
fn end_refused(request: u16, status: u8) -> Vec<u8> {
    let mut out = Vec::new();
    push_end_of(&mut out, request, status);
    out
}

/// The result of [`Opening::poll`].
pub(crate) enum Opened {
    NeedMore,
    /// The reply to a management record, or the end of a refused request, to be sent at once.
    ManagementReply(Vec<u8>),
    /// The variables are complete.
    Complete(Packet),
}

/// A request from its first record to the end of its variables, which are moved together at the front of the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// The request number; 0: no request has begun.
    pub(crate) request: u16,
    /// FCGI_KEEP_CONN: the connection persists.
    pub(crate) persists: bool,
    /// Bytes of variables moved together.
    gathered: u32,
    /// Bytes parsed.
    scanned: u32,
}

impl Opening {
    /// Parses the records received since the last call. `bytes` must begin at the same position in every call.
    pub(crate) fn poll(&mut self, bytes: &mut [u8], limits: &Limits) -> Result<Opened, Reject> {
        loop {
            let at = self.scanned as usize;
            let Some(found) = record(&bytes[at..])? else { return Ok(Opened::NeedMore) };
            let content = at + HEADER..at + HEADER + found.content;
            let gathered = self.gathered as usize;
            // Records of other requests count too, so that they cannot be sent without end.
            if gathered + found.content > limits.head || at > 4 * limits.head.max(MOST_CONTENT) {
                return Err(Reject::PACKET_TOO_LARGE);
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
                        return Ok(Opened::ManagementReply(end_refused(request, UNKNOWN_ROLE)));
                    }
                    if self.request != 0 {
                        return Ok(Opened::ManagementReply(end_refused(request, CANNOT_MULTIPLEX)));
                    }
                    (self.request, self.persists) = (request, flags & KEEP_CONNECTION != 0);
                }
                // Records of a refused request.
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

/// The part of a body stream that is parsed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A record header.
    Record,
    /// Content of the body: bytes left, and the padding after them.
    Content(usize, usize),
    /// Bytes to ignore.
    Skipped(usize),
    Complete,
}

/// The decoder of a body stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    request: u16,
    place: Place,
    /// The empty last record has arrived, its padding has not.
    ends: bool,
    /// CONTENT_LENGTH, if it was sent.
    announced: Option<u64>,
    received: u64,
}

impl Stream {
    pub(crate) fn new(request: u16, announced: Option<u64>) -> Self {
        Stream { request, place: Place::Record, ends: false, announced, received: 0 }
    }

    /// Bytes of content that follow in this record.
    pub(crate) fn expected(&self) -> u64 {
        match self.place {
            Place::Content(rest, _) => rest as u64,
            _ => 0,
        }
    }

    /// Counts up to `most` of the expected bytes as received.
    pub(crate) fn take(&mut self, most: u64) -> usize {
        let Place::Content(rest, padding) = self.place else { return 0 };
        let taken = rest.min(usize::try_from(most).unwrap_or(rest));
        self.place = if taken == rest { self.behind(padding) } else { Place::Content(rest - taken, padding) };
        taken
    }

    /// Classifies the bytes at the front, as [`crate::parser::body::Body::next`] does.
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

    /// The state before `rest` bytes to ignore.
    fn behind(&self, rest: usize) -> Place {
        match rest {
            0 if self.ends => Place::Complete,
            0 => Place::Record,
            rest => Place::Skipped(rest),
        }
    }

    fn next_record(&mut self, bytes: &[u8], limits: &Limits) -> Result<Part, Reject> {
        const OTHER_LENGTH: Reject = Reject::bad("a body of another length than CONTENT_LENGTH");
        let Some(Record { kind, request, content, length }) = record(bytes)? else { return Ok(Part::NeedMore) };
        if request == 0 || kind == BEGIN_REQUEST && request != self.request {
            // Management records are short and parsed as a whole.
            if content > limits.field_line {
                return Err(Reject::with(431, "a FastCGI management record over the limit"));
            }
            let Some(whole) = bytes.get(..length) else { return Ok(Part::NeedMore) };
            let answer = match request {
                0 => answer_management(kind, &whole[HEADER..HEADER + content]),
                other => end_refused(other, CANNOT_MULTIPLEX),
            };
            return Ok(Part::ManagementReply(length, answer));
        }
        self.place = match kind {
            _ if request != self.request => self.behind(length - HEADER),
            STDIN if content == 0 => {
                if self.announced.is_some_and(|announced| announced != self.received) {
                    return Err(OTHER_LENGTH);
                }
                self.ends = true;
                self.behind(length - HEADER)
            }
            STDIN => {
                self.received += content as u64;
                if self.announced.is_some_and(|announced| announced < self.received) {
                    return Err(OTHER_LENGTH);
                }
                if self.received > limits.body {
                    return Err(Reject::BODY_TOO_LARGE);
                }
                Place::Content(content, length - HEADER - content)
            }
            ABORT_REQUEST => return Err(ABORTED),
            _ => return Err(OUT_OF_TURN),
        };
        Ok(Part::Framing(HEADER))
    }
}
