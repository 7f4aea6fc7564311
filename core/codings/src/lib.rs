//! Encoders of content codings as streams: gzip, Brotli and zstd. Bytes in, coded bytes out.

#![forbid(unsafe_code)]

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use poorhttp_http::ContentCoding;
use poorhttp_interface::codings::{self, Body, Failed, Flush, Step};
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Status};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

/// An encoder for one body; `reset` prepares it for another one, unless it is of Brotli.
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
        codings::Encoder::reset(&mut encoder, body)?;
        Ok(encoder)
    }
}

impl codings::Encoder for Encoder {
    fn reset(&mut self, body: Body) -> Result<(), Failed> {
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

    fn step(&mut self, input: &[u8], then: Flush, room: &mut [u8]) -> Result<Step, Failed> {
        match &mut self.kind {
            Kind::Gzip(deflate) => gzip(deflate, input, then, room),
            Kind::Brotli(state) => brotli(state, input, then, room),
            Kind::Zstd(context) => zstd(context, input, then, room),
        }
    }
}

/// Makes encoders of this crate.
#[derive(Debug)]
pub struct Encoders;

impl codings::Encoders for Encoders {
    fn encoder(&self, coding: ContentCoding, level: i32, body: Body) -> Result<Box<dyn codings::Encoder>, Failed> {
        Ok(Box::new(Encoder::new(coding, level, body)?))
    }
}

fn gzip(deflate: &mut Deflate, input: &[u8], then: Flush, room: &mut [u8]) -> Result<Step, Failed> {
    let flush = match then {
        Flush::Nothing => DeflateFlush::NoFlush,
        Flush::Sync => DeflateFlush::SyncFlush,
        Flush::Finish => DeflateFlush::Finish,
    };
    let (before, begin) = (deflate.total_out(), deflate.total_in());
    let status = deflate.compress(input, room, flush);
    let made = (deflate.total_out() - before) as usize;
    let taken = (deflate.total_in() - begin) as usize;
    let (is_empty, is_full) = (taken == input.len(), made == room.len());
    let is_done = match status.map_err(|_| Failed)? {
        Status::StreamEnd => true,
        _ if is_empty && !is_full && then != Flush::Finish => true,
        // No progress can be made: nothing is left to be done.
        Status::BufError if is_empty && then != Flush::Finish => true,
        Status::BufError if !is_full => return Err(Failed),
        _ => false,
    };
    Ok(Step { taken, made, is_done })
}

fn brotli(
    state: &mut BrotliEncoderStateStruct<StandardAlloc>,
    input: &[u8],
    then: Flush,
    room: &mut [u8],
) -> Result<Step, Failed> {
    let operation = match then {
        Flush::Nothing => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
        Flush::Sync => BrotliEncoderOperation::BROTLI_OPERATION_FLUSH,
        Flush::Finish => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
    };
    let (mut left, mut taken, mut free, mut made) = (input.len(), 0, room.len(), 0);
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
    if !is_good {
        return Err(Failed);
    }
    let is_done = left == 0 && !state.has_more_output() && (then != Flush::Finish || state.is_finished());
    Ok(Step { taken, made, is_done })
}

fn zstd(context: &mut CCtx<'static>, input: &[u8], then: Flush, room: &mut [u8]) -> Result<Step, Failed> {
    let directive = match then {
        Flush::Nothing => ZSTD_EndDirective::ZSTD_e_continue,
        Flush::Sync => ZSTD_EndDirective::ZSTD_e_flush,
        Flush::Finish => ZSTD_EndDirective::ZSTD_e_end,
    };
    let (mut input, mut room) = (InBuffer::around(input), OutBuffer::around(room));
    let left = context.compress_stream2(&mut room, &mut input, directive).map_err(|_| Failed)?;
    let is_done = input.pos() == input.src.len() && (left == 0 || then == Flush::Nothing);
    Ok(Step { taken: input.pos(), made: room.pos(), is_done })
}
