//! A content coding as a stream: bytes in, coded bytes out.

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use poorhttp_http::ContentCoding;
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Status};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

/// Bytes of output that are made room for at once.
const ROOM: usize = 16 << 10;

/// What follows a piece of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// More input: the coding may hold bytes back.
    Nothing,
    /// The client can decode all that was given until now.
    Sync,
    /// The end of the content.
    Finish,
}

/// What is known of a body before it is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// All of it, so many bytes.
    Whole(usize),
    /// It comes in pieces.
    Stream,
    /// It comes in small pieces, and stays open for long: little memory is worth more than small pieces.
    Events,
}

impl Body {
    /// Whether an encoder for this body can be used for another one.
    pub(crate) fn shares_encoder(self, other: Body) -> bool {
        (self == Body::Events) == (other == Body::Events)
    }
}

/// An encoder for one body; [`Encoder::reset`] prepares it for another one.
pub struct Encoder {
    kind: Kind,
    coding: ContentCoding,
}

enum Kind {
    Gzip(Deflate),
    Brotli(Box<BrotliEncoderStateStruct<StandardAlloc>>),
    Zstd(CCtx<'static>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Encoder({:?})", self.coding)
    }
}

/// An encoder could not be made, or has failed: there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

impl Encoder {
    /// An encoder for a coding at a level of its own scale.
    pub fn new(coding: ContentCoding, level: i32, body: Body) -> Result<Self, Failed> {
        let small = body == Body::Events;
        let kind = match coding {
            ContentCoding::Gzip => {
                // 16 more: with the header and trailer of gzip.
                let (window_bits, mem_level) = if small { (16 + 12, 5) } else { (16 + 15, 8) };
                Kind::Gzip(Deflate::new_with_config(DeflateConfig {
                    level,
                    window_bits,
                    mem_level,
                    ..DeflateConfig::default()
                }))
            }
            ContentCoding::Brotli => {
                let mut state = BrotliEncoderStateStruct::new(StandardAlloc::default());
                // From level 5 on, a window below 17 has tables of 33 MB.
                let (level, window, hint) = match body {
                    Body::Whole(length) => (level, 18, length),
                    Body::Stream => (level, 18, 0),
                    Body::Events => (level.min(2), 12, 0),
                };
                state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_QUALITY, level.max(0) as u32);
                state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_LGWIN, window);
                state.set_parameter(BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, hint as u32);
                Kind::Brotli(Box::new(state))
            }
            ContentCoding::Zstd => {
                let mut context = CCtx::try_create().ok_or(Failed)?;
                let mut parameters = vec![CParameter::CompressionLevel(level)];
                match small {
                    true => parameters.extend([
                        CParameter::WindowLog(12),
                        CParameter::HashLog(12),
                        CParameter::ChainLog(12),
                    ]),
                    false => parameters.push(CParameter::WindowLog(17)),
                }
                for parameter in parameters {
                    context.set_parameter(parameter).map_err(|_| Failed)?;
                }
                Kind::Zstd(context)
            }
        };
        let mut encoder = Encoder { kind, coding };
        encoder.reset(body)?;
        Ok(encoder)
    }

    /// Its coding.
    pub fn coding(&self) -> ContentCoding {
        self.coding
    }

    /// Prepares it for another body. Fails for a coding that cannot be reset.
    pub fn reset(&mut self, body: Body) -> Result<(), Failed> {
        match &mut self.kind {
            Kind::Gzip(deflate) => deflate.reset(),
            Kind::Brotli(_) => {}
            Kind::Zstd(context) => {
                context.reset(ResetDirective::SessionOnly).map_err(|_| Failed)?;
                let length = if let Body::Whole(length) = body { Some(length as u64) } else { None };
                context.set_pledged_src_size(length).map_err(|_| Failed)?;
            }
        }
        Ok(())
    }

    /// Whether [`Encoder::reset`] makes it ready for another body.
    pub(crate) fn is_reusable(&self) -> bool {
        !matches!(self.kind, Kind::Brotli(_))
    }

    /// Codes a piece of the body, and appends what is ready to `out`.
    pub fn encode(&mut self, input: &[u8], then: Flush, out: &mut Vec<u8>) -> Result<(), Failed> {
        match &mut self.kind {
            Kind::Gzip(deflate) => gzip(deflate, input, then, out),
            Kind::Brotli(state) => brotli(state, input, then, out),
            Kind::Zstd(context) => zstd(context, input, then, out),
        }
    }
}

fn gzip(deflate: &mut Deflate, mut input: &[u8], then: Flush, out: &mut Vec<u8>) -> Result<(), Failed> {
    let flush = match then {
        Flush::Nothing => DeflateFlush::NoFlush,
        Flush::Sync => DeflateFlush::SyncFlush,
        Flush::Finish => DeflateFlush::Finish,
    };
    loop {
        let (before, taken) = (deflate.total_out(), deflate.total_in());
        let status = add(out, |room| {
            let status = deflate.compress(input, room, flush);
            ((deflate.total_out() - before) as usize, status)
        });
        input = &input[(deflate.total_in() - taken) as usize..];
        let is_full = deflate.total_out() - before == ROOM as u64;
        match status.map_err(|_| Failed)? {
            Status::StreamEnd => return Ok(()),
            _ if input.is_empty() && !is_full && then != Flush::Finish => return Ok(()),
            // No progress can be made: nothing is left to be done.
            Status::BufError if input.is_empty() && then != Flush::Finish => return Ok(()),
            Status::BufError if !is_full => return Err(Failed),
            _ => {}
        }
    }
}

fn brotli(
    state: &mut BrotliEncoderStateStruct<StandardAlloc>,
    input: &[u8],
    then: Flush,
    out: &mut Vec<u8>,
) -> Result<(), Failed> {
    let operation = match then {
        Flush::Nothing => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
        Flush::Sync => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
        Flush::Finish => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
    };
    let (mut left, mut taken) = (input.len(), 0);
    loop {
        let is_good = add(out, |room| {
            let (mut free, mut made) = (room.len(), 0);
            let is_good = state.compress_stream(
                operation,
                &mut left,
                input,
                &mut taken,
                &mut free,
                room,
                &mut made,
                &mut None,
                &mut |_, _, _, _| (),
            );
            (made, is_good)
        });
        if !is_good {
            return Err(Failed);
        }
        if left == 0 && !state.has_more_output() && (then != Flush::Finish || state.is_finished()) {
            return Ok(());
        }
    }
}

fn zstd(context: &mut CCtx<'static>, input: &[u8], then: Flush, out: &mut Vec<u8>) -> Result<(), Failed> {
    let directive = match then {
        Flush::Nothing => ZSTD_EndDirective::ZSTD_e_continue,
        Flush::Sync => ZSTD_EndDirective::ZSTD_e_flush,
        Flush::Finish => ZSTD_EndDirective::ZSTD_e_end,
    };
    let mut input = InBuffer::around(input);
    loop {
        let left = add(out, |room| {
            let mut room = OutBuffer::around(room);
            let left = context.compress_stream2(&mut room, &mut input, directive);
            (room.pos(), left)
        });
        let left = left.map_err(|_| Failed)?;
        if input.pos() == input.src.len() && (left == 0 || then == Flush::Nothing) {
            return Ok(());
        }
    }
}

/// Appends what `make` writes: it returns how many bytes it has written, and its result.
fn add<T>(out: &mut Vec<u8>, make: impl FnOnce(&mut [u8]) -> (usize, T)) -> T {
    let start = out.len();
    out.resize(start + ROOM, 0);
    let (made, result) = make(&mut out[start..]);
    out.truncate(start + made);
    result
}
