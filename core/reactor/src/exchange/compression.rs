//! Compression of a response while it is sent.
//!
//! The decision is made when the head is completed, as its fields are known then. A body that is there as a whole is coded
//! before its head is sent, so that it has a Content-Length; others are coded piece by piece.

use std::sync::Arc;

use poorhttp_compress::{Body, Choice, Compression, Flush, StreamEncoder};
use poorhttp_files::{Content, Reply};
use poorhttp_http::{ConditionalFields, Ending};

use crate::connection::postponed::{Coder, POSTPONED_FOR, SharedCoder};
use crate::exchange::backpressure::add_rest;
use crate::exchange::stream::Stream;
use crate::exchange::{Exchange, SendError};
use crate::limits::{CODED_AT_ONCE, CODED_WHOLE, COPIED};
use crate::log::error::Level;
use crate::sys::clock;

/// Compresses the body of a response that is sent in pieces.
#[derive(Debug)]
pub(crate) struct Compressor {
    pub(crate) coder: SharedCoder,
    /// Bytes of the application's body that its Content-Length still announces; `None`: it has none.
    left: Option<u64>,
    /// Bytes beyond them, which are not sent.
    excess: u64,
    /// Bytes of the application's body that were taken.
    taken: u64,
}

impl Exchange {
    /// Whether responses are compressed at all.
    #[inline]
    pub fn may_compress(&self) -> bool {
        self.reactor.options.compression.is_some()
    }

    /// Whether a file of this length is compressed if it is sent as the body of this response.
    pub fn compresses_file(&self, length: u64) -> bool {
        let is_open = self.response.is_started() && !self.response.is_committed() && !self.names_file();
        is_open && self.choose_for_file(length).is_some_and(|choice| choice.coding.is_some())
    }

    fn choose_for_file(&self, length: u64) -> Option<Choice> {
        let (compression, stream) = (self.reactor.options.compression.as_ref()?, self.stream.as_ref()?);
        let (response, length) = (&self.response, self.response.declared_length().unwrap_or(length));
        choose(compression, stream, response.status(), response.written(stream.out()), Some(length))
    }

    /// Changes the fields of a response with a file that is sent as it is.
    #[cold]
    pub(crate) fn set_fields_of_plain_file(&mut self, length: u64) {
        let choice = self.choose_for_file(length).map(|choice| Choice { coding: None, ..choice });
        if let (Some(compression), Some(stream)) = (&self.reactor.options.compression, &mut self.stream)
            && let Some(block) = compression.fields(self.response.written(stream.out()), choice)
        {
            self.response.replace(stream.output(), &block);
        }
    }
}

/// How the body of a response is sent, once its fields are final.
enum Begun {
    /// As it is.
    Plain,
    /// Not at all (HEAD), and the length of the coded body is unknown.
    Head,
    /// This is all of it, coded.
    Whole(Vec<u8>),
    /// Coded piece by piece.
    Pieces(StreamEncoder),
}

/// Decides whether and how the body is coded, and changes the header fields accordingly. `parts`: the whole body, if it is
/// there.
fn begin(exchange: &mut Exchange, parts: Option<&[&[u8]]>) -> Result<Begun, SendError> {
    let Some(compression) = &exchange.reactor.options.compression else { return Ok(Begun::Plain) };
    let stream = exchange.stream.as_mut().ok_or(SendError::Over)?;
    let response = &mut exchange.response;
    let total = parts.map(|parts| parts.iter().map(|part| part.len() as u64).sum::<u64>());
    let (declared, has_body) = (response.declared_length(), response.has_body());
    // If both are known and differ, the application is wrong, and is told so as without compression.
    if has_body && declared.is_some() && total.is_some_and(|total| declared != Some(total)) {
        return Ok(Begun::Plain);
    }
    // An empty list for HEAD says nothing of the answer to GET.
    let total = total.filter(|&total| has_body || total > 0);
    let Some(mut choice) =
        choose(compression, stream, response.status(), response.written(stream.out()), declared.or(total))
    else {
        if let Some(block) = compression.fields(response.written(stream.out()), None) {
            response.replace(stream.output(), &block);
        }
        return Ok(Begun::Plain);
    };
    let begun = match choice.coding {
        None => Begun::Plain,
        Some(_) if !has_body && parts.is_some() && declared.or(total).is_none() => Begun::Plain,
        Some(_) if !has_body => Begun::Head,
        Some(coding) => match (parts, total) {
            (Some(parts), Some(total)) if total <= CODED_WHOLE => match compression.whole(coding, parts) {
                Some(body) if (body.len() as u64) < total => Begun::Whole(body),
                _ => Begun::Plain,
            },
            _ => {
                let body = if choice.is_event_stream { Body::Events } else { Body::Stream };
                compression.encoder(coding, body).map_or(Begun::Plain, Begun::Pieces)
            }
        },
    };
    if matches!(begun, Begun::Plain) {
        choice.coding = None;
    } else {
        response.forget_length();
    }
    if let Some(block) = compression.fields(response.written(stream.out()), Some(choice)) {
        response.replace(stream.output(), &block);
    }
    Ok(begun)
}

fn choose(
    compression: &Compression,
    stream: &Stream,
    status: u16,
    block: &[u8],
    length: Option<u64>,
) -> Option<Choice> {
    let (head, bytes) = stream.request().head()?;
    compression.choose(status, block, length, &ConditionalFields::of(head, bytes))
}

/// [`Exchange::finish_from`] where responses are compressed.
#[cold]
pub(crate) fn finish(exchange: &mut Exchange, parts: &[&[u8]], taken: usize) -> Result<(), SendError> {
    if !exchange.response.is_committed()
        && let Some(body) = begin_whole(exchange, parts)?
    {
        exchange.add(&body)?;
    } else if exchange.compressor.is_some() {
        add_rest(parts, taken, |part| add(exchange, part, Flush::Nothing))?;
    } else {
        return exchange.finish_plain(parts, taken);
    }
    exchange.end()
}

/// Completes the head of a response with a whole body, and returns the coded body if it can be sent at once. If it is sent
/// piece by piece, [`Exchange::compressor`] is set; otherwise it is sent as it is.
fn begin_whole(exchange: &mut Exchange, parts: &[&[u8]]) -> Result<Option<Vec<u8>>, SendError> {
    let declared = exchange.response.declared_length();
    match begin(exchange, Some(parts))? {
        Begun::Plain => Ok(None),
        Begun::Head => exchange.commit(None).map(|()| None),
        Begun::Whole(body) => {
            exchange.note_uncoded(parts.iter().map(|part| part.len() as u64).sum());
            exchange.commit(Some(body.len() as u64)).map(|()| Some(body))
        }
        Begun::Pieces(encoder) => start(exchange, encoder, declared).map(|()| None),
    }
}

/// The same for a body that begins with this piece. It is whole if its length is the announced one.
fn begin_pieces(exchange: &mut Exchange, piece: &[u8]) -> Result<Option<Vec<u8>>, SendError> {
    let declared = exchange.response.declared_length();
    if declared == Some(piece.len() as u64) && exchange.response.has_body() {
        return begin_whole(exchange, &[piece]);
    }
    if let Begun::Pieces(encoder) = begin(exchange, None)? {
        start(exchange, encoder, declared)?;
    }
    Ok(None)
}

/// Completes the head of a response that is coded piece by piece.
fn start(exchange: &mut Exchange, encoder: StreamEncoder, left: Option<u64>) -> Result<(), SendError> {
    exchange.commit(None)?;
    let coder = Coder::new(encoder, exchange.response.clone());
    exchange.compressor = Some(Box::new(Compressor { coder, left, excess: 0, taken: 0 }));
    Ok(())
}

/// [`Exchange::write`] where responses are compressed.
#[cold]
pub(crate) fn write(exchange: &mut Exchange, piece: &[u8]) -> Result<(), SendError> {
    if !exchange.response.is_committed() {
        if let Some(body) = begin_pieces(exchange, piece)? {
            return exchange.send_piece(&body, true);
        }
        if !exchange.response.is_committed() {
            exchange.commit(None)?;
        }
    }
    if exchange.compressor.is_none() {
        return exchange.send_piece(piece, false);
    }
    add_piece(exchange, piece)
}

/// Sends a piece of a coded body, so that the client can decode it when it arrives: at once, or within a millisecond if the
/// last one was sent no longer ago.
fn add_piece(exchange: &mut Exchange, piece: &[u8]) -> Result<(), SendError> {
    exchange.check_lost()?;
    let now = clock::precise_us();
    if now < exchange.piece_sent + POSTPONED_FOR && postpone(exchange, piece)? {
        return Ok(());
    }
    add(exchange, piece, Flush::Sync)?;
    exchange.piece_sent = now;
    let stream = exchange.stream.as_mut().ok_or(SendError::Over)?;
    if let Err(lost) = stream.send(&[]) {
        return Err(exchange.disconnected(lost));
    }
    exchange.half_closed_since = 0;
    exchange.check_send_queue()
}

/// Has a piece coded and sent within a millisecond, together with those that follow. `false`: it must be sent now.
fn postpone(exchange: &mut Exchange, piece: &[u8]) -> Result<bool, SendError> {
    let is_foreign = exchange.is_foreign();
    let (Some(compressor), Some(stream)) = (&mut exchange.compressor, &mut exchange.stream) else { return Ok(false) };
    if is_foreign || !stream.may_postpone(piece.len()) {
        return Ok(false);
    }
    let piece = compressor.announced(piece);
    if !stream.postpone_coded(&exchange.reactor, &compressor.coder, piece)
        && let Err(lost) = stream.send(&[])
    {
        return Err(exchange.disconnected(lost));
    }
    Ok(true)
}

/// Codes a piece of the body behind those that were postponed, unless the send queue is full.
fn add(exchange: &mut Exchange, piece: &[u8], then: Flush) -> Result<(), SendError> {
    let mut taken = 0;
    loop {
        exchange.check_lost()?;
        if exchange.is_full() {
            return Err(SendError::Full(taken));
        }
        let until = piece.len().min(taken + CODED_AT_ONCE);
        let is_last = until == piece.len();
        add_once(exchange, &piece[taken..until], if is_last { then } else { Flush::Nothing })?;
        if is_last {
            return Ok(());
        }
        taken = until;
    }
}

fn add_once(exchange: &mut Exchange, piece: &[u8], then: Flush) -> Result<(), SendError> {
    if exchange.is_foreign() {
        return Err(SendError::Over);
    }
    let stream = exchange.stream.as_mut().ok_or(SendError::Over)?;
    let Some(compressor) = &mut exchange.compressor else { return Ok(()) };
    stream.reclaim_postponed();
    let piece = compressor.announced(piece);
    let mut coder = Coder::lock(&compressor.coder);
    let coded = coder.encode(piece, then, stream.output());
    exchange.response.admit(coder.take_made());
    drop(coder);
    if coded.is_none() {
        exchange.log_message(Level::Error, "the response is cut short: it could not be compressed");
        exchange.break_off();
        return Err(SendError::Disconnected);
    }
    if stream.output().len() > COPIED
        && let Err(lost) = stream.send(&[])
    {
        return Err(exchange.disconnected(lost));
    }
    Ok(())
}

impl Compressor {
    /// The part of a piece that the Content-Length of the application announces.
    fn announced<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let Some(left) = &mut self.left else {
            self.taken += piece.len() as u64;
            return piece;
        };
        let (announced, excess) = piece.split_at(piece.len().min(usize::try_from(*left).unwrap_or(usize::MAX)));
        *left -= announced.len() as u64;
        self.taken += announced.len() as u64;
        self.excess += excess.len() as u64;
        announced
    }
}

/// Ends the coded body. `false`: the application gave less than it announced, and the response was broken off.
#[cold]
pub(crate) fn end(exchange: &mut Exchange) -> Result<bool, SendError> {
    let Some(compressor) = &exchange.compressor else { return Ok(true) };
    let ending = Ending { persists: false, missing: compressor.left.unwrap_or(0), excess: compressor.excess };
    if ending.missing > 0 || ending.excess > 0 {
        exchange.log_wrong_length(ending);
    }
    if ending.missing > 0 {
        exchange.abort();
    } else {
        add_once(exchange, &[], Flush::Finish)?;
    }
    if let Some(compressor) = exchange.compressor.take() {
        exchange.note_uncoded(compressor.taken);
    }
    Ok(ending.missing == 0)
}

/// Bytes that the application has given beyond those that it announced.
#[inline]
pub(crate) fn excess(compressor: &Compressor) -> u64 {
    compressor.excess
}

/// Whether the application has given all bytes that it announced.
#[inline]
pub(crate) fn has_whole_body(compressor: &Compressor) -> bool {
    compressor.left == Some(0)
}

/// The reply with a coded body, and its length; `None`: unknown (HEAD). Large files are sent as they are.
#[cold]
pub(crate) fn reply(exchange: &Exchange, compression: &Arc<Compression>, reply: Reply) -> (Reply, Option<u64>) {
    let length = Some(reply.length);
    let status = reply.status.get(..3).and_then(|status| status.parse().ok()).unwrap_or(200);
    let choice = exchange.stream.as_ref().and_then(|stream| choose(compression, stream, status, &reply.fields, length));
    let Some(mut choice) = choice.filter(|_| reply.length <= CODED_WHOLE) else {
        let fields = compression.fields(&reply.fields, None).map_or(reply.fields, Arc::from);
        return (Reply { fields, ..reply }, length);
    };
    let has_body = exchange.response.has_body();
    let coded = match choice.coding {
        Some(coding) if has_body => {
            reply.content.read(reply.length).and_then(|content| compression.whole(coding, &[&content]))
        }
        _ => None,
    };
    let coded = coded.filter(|coded| (coded.len() as u64) < reply.length);
    if has_body && coded.is_none() {
        choice.coding = None;
    }
    let fields = compression.fields(&reply.fields, Some(choice)).map_or_else(|| Arc::clone(&reply.fields), Arc::from);
    match coded {
        Some(coded) => {
            let length = coded.len() as u64;
            (Reply { fields, length, content: Content::Memory(coded.into()), ..reply }, Some(length))
        }
        None => (Reply { fields, ..reply }, length.filter(|_| choice.coding.is_none())),
    }
}
