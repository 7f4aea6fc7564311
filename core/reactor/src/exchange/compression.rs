//! Compression of a response while it is sent.
//!
//! The decision is made when the head is completed, as its fields are known then. A body that is there as a whole is coded
//! before its head is sent, so that it has a Content-Length; others are coded piece by piece.

use std::sync::Arc;

use poorhttp_compress::{Choice, Compression, StreamEncoder};
use poorhttp_files::{Content, Reply};
use poorhttp_http::{ConditionalFields, Ending};
use poorhttp_interface::codings::{Body, Flush};

use crate::connection::coalesced::{COALESCED_FOR, Coder, SharedCoder};
use crate::exchange::backpressure::add_rest;
use crate::exchange::send_error::SendError;
use crate::exchange::stream::Stream;
use crate::exchange::writer::ResponseWriter;
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

/// Whether a file of this length is compressed if it is sent as the body of this response.
pub(crate) fn compresses_file(writer: &ResponseWriter, length: u64) -> bool {
    let is_open = writer.response.is_started() && !writer.response.is_committed();
    is_open && choose_for_file(writer, length).is_some_and(|choice| choice.coding.is_some())
}

fn choose_for_file(writer: &ResponseWriter, length: u64) -> Option<Choice> {
    let (compression, stream) = (writer.state.responding.compression.as_ref()?, writer.stream.as_ref()?);
    let (response, length) = (&writer.response, writer.response.declared_length().unwrap_or(length));
    choose(compression, stream, response.status(), response.written(stream.out()), Some(length))
}

/// Changes the fields of a response with a file that is sent as it is.
#[cold]
pub(crate) fn set_fields_of_plain_file(writer: &mut ResponseWriter, length: u64) {
    let choice = choose_for_file(writer, length).map(|choice| Choice { coding: None, ..choice });
    if let (Some(compression), Some(stream)) = (&writer.state.responding.compression, &mut writer.stream)
        && let Some(block) = compression.fields(writer.response.written(stream.out()), choice)
    {
        writer.response.replace(stream.output(), &block);
    }
}

/// The compressor of a response, if its body is coded piece by piece.
pub(crate) type Coded = Option<Box<Compressor>>;

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
fn begin(writer: &mut ResponseWriter, parts: Option<&[&[u8]]>) -> Result<Begun, SendError> {
    let Some(compression) = &writer.state.responding.compression else { return Ok(Begun::Plain) };
    let stream = writer.stream.as_mut().ok_or(SendError::Over)?;
    let response = &mut writer.response;
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

/// Takes a whole body without the first `taken` bytes where responses are compressed. `false`: it is to be sent as it is.
#[cold]
pub(crate) fn finish(
    writer: &mut ResponseWriter,
    coded: &mut Coded,
    parts: &[&[u8]],
    taken: usize,
) -> Result<bool, SendError> {
    if !writer.response.is_committed()
        && let Some(body) = begin_whole(writer, coded, parts)?
    {
        writer.add(&body)?;
    } else if coded.is_some() {
        add_rest(parts, taken, |part| add(writer, coded, part, Flush::Nothing))?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Completes the head of a response with a whole body, and returns the coded body if it can be sent at once. If it is sent
/// piece by piece, `coded` is set; otherwise it is sent as it is.
fn begin_whole(writer: &mut ResponseWriter, coded: &mut Coded, parts: &[&[u8]]) -> Result<Option<Vec<u8>>, SendError> {
    let declared = writer.response.declared_length();
    match begin(writer, Some(parts))? {
        Begun::Plain => Ok(None),
        Begun::Head => writer.commit(None).map(|()| None),
        Begun::Whole(body) => {
            writer.note_uncoded(parts.iter().map(|part| part.len() as u64).sum());
            writer.commit(Some(body.len() as u64)).map(|()| Some(body))
        }
        Begun::Pieces(encoder) => start(writer, coded, encoder, declared).map(|()| None),
    }
}

/// The same for a body that begins with this piece. It is whole if its length is the announced one.
fn begin_pieces(writer: &mut ResponseWriter, coded: &mut Coded, piece: &[u8]) -> Result<Option<Vec<u8>>, SendError> {
    let declared = writer.response.declared_length();
    if declared == Some(piece.len() as u64) && writer.response.has_body() {
        return begin_whole(writer, coded, &[piece]);
    }
    if let Begun::Pieces(encoder) = begin(writer, None)? {
        start(writer, coded, encoder, declared)?;
    }
    Ok(None)
}

/// Completes the head of a response that is coded piece by piece.
fn start(
    writer: &mut ResponseWriter,
    coded: &mut Coded,
    encoder: StreamEncoder,
    left: Option<u64>,
) -> Result<(), SendError> {
    writer.commit(None)?;
    let coder = Coder::new(encoder, writer.response.clone());
    *coded = Some(Box::new(Compressor { coder, left, excess: 0, taken: 0 }));
    Ok(())
}

/// Sends a piece of the body where responses are compressed.
#[cold]
pub(crate) fn write(writer: &mut ResponseWriter, coded: &mut Coded, piece: &[u8]) -> Result<(), SendError> {
    if !writer.response.is_committed() {
        if let Some(body) = begin_pieces(writer, coded, piece)? {
            return writer.send_piece(&body, true);
        }
        if !writer.response.is_committed() {
            writer.commit(None)?;
        }
    }
    if coded.is_none() {
        return writer.send_piece(piece, false);
    }
    add_piece(writer, coded, piece)
}

/// Sends a piece of a coded body, so that the client can decode it when it arrives: at once, or within a millisecond if the
/// last one was sent no longer ago.
fn add_piece(writer: &mut ResponseWriter, coded: &mut Coded, piece: &[u8]) -> Result<(), SendError> {
    writer.check_lost()?;
    let now = clock::precise_us();
    if now < writer.piece_sent + COALESCED_FOR && coalesce(writer, coded, piece)? {
        return Ok(());
    }
    add(writer, coded, piece, Flush::Sync)?;
    writer.piece_sent = now;
    let stream = writer.stream.as_mut().ok_or(SendError::Over)?;
    if let Err(lost) = stream.send(&[]) {
        return Err(writer.disconnected(lost));
    }
    writer.half_closed_since = 0;
    writer.check_send_queue()
}

/// Has a piece coded and sent within a millisecond, together with those that follow. `false`: it must be sent now.
fn coalesce(writer: &mut ResponseWriter, coded: &mut Coded, piece: &[u8]) -> Result<bool, SendError> {
    let is_foreign = writer.is_foreign();
    let (Some(compressor), Some(stream)) = (coded, &mut writer.stream) else { return Ok(false) };
    if is_foreign || !stream.may_coalesce(piece.len()) {
        return Ok(false);
    }
    let piece = compressor.announced(piece);
    if !stream.coalesce_coded(&writer.state.coalesced_sender, &compressor.coder, piece)
        && let Err(lost) = stream.send(&[])
    {
        return Err(writer.disconnected(lost));
    }
    Ok(true)
}

/// Codes a piece of the body behind those that were coalesced, unless the send queue is full.
fn add(writer: &mut ResponseWriter, coded: &mut Coded, piece: &[u8], then: Flush) -> Result<(), SendError> {
    let mut taken = 0;
    loop {
        writer.check_lost()?;
        if writer.is_full() {
            return Err(SendError::Full(taken));
        }
        let until = piece.len().min(taken + CODED_AT_ONCE);
        let is_last = until == piece.len();
        add_once(writer, coded, &piece[taken..until], if is_last { then } else { Flush::Nothing })?;
        if is_last {
            return Ok(());
        }
        taken = until;
    }
}

fn add_once(writer: &mut ResponseWriter, coded: &mut Coded, piece: &[u8], then: Flush) -> Result<(), SendError> {
    if writer.is_foreign() {
        return Err(SendError::Over);
    }
    let stream = writer.stream.as_mut().ok_or(SendError::Over)?;
    let Some(compressor) = coded else { return Ok(()) };
    stream.reclaim_coalesced();
    let piece = compressor.announced(piece);
    let mut coder = Coder::lock(&compressor.coder);
    let coded = coder.encode(piece, then, stream.output());
    writer.response.admit(coder.take_made());
    drop(coder);
    if coded.is_none() {
        writer.log_message(Level::Error, "the response is cut short: it could not be compressed");
        writer.break_off();
        return Err(SendError::Disconnected);
    }
    if stream.output().len() > COPIED
        && let Err(lost) = stream.send(&[])
    {
        return Err(writer.disconnected(lost));
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
pub(crate) fn end(writer: &mut ResponseWriter, coded: &mut Coded) -> Result<bool, SendError> {
    let Some(compressor) = coded else { return Ok(true) };
    let ending = Ending { persists: false, missing: compressor.left.unwrap_or(0), excess: compressor.excess };
    if ending.missing > 0 || ending.excess > 0 {
        writer.log_wrong_length(ending);
    }
    if ending.missing > 0 {
        writer.abort();
    } else {
        add_once(writer, coded, &[], Flush::Finish)?;
    }
    if let Some(compressor) = coded.take() {
        writer.note_uncoded(compressor.taken);
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
pub(crate) fn reply(writer: &ResponseWriter, compression: &Arc<Compression>, reply: Reply) -> (Reply, Option<u64>) {
    let length = Some(reply.length);
    let status = reply.status.get(..3).and_then(|status| status.parse().ok()).unwrap_or(200);
    let choice = writer.stream.as_ref().and_then(|stream| choose(compression, stream, status, &reply.fields, length));
    let Some(mut choice) = choice.filter(|_| reply.length <= CODED_WHOLE) else {
        let fields = compression.fields(&reply.fields, None).map_or(reply.fields, Arc::from);
        return (Reply { fields, ..reply }, length);
    };
    let has_body = writer.response.has_body();
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
