//! Target `compress`: bodies that are compressed while they are sent.

use brotli::BrotliResult;
use brotli::enc::StandardAlloc;
use poorhttp_codings::Encoder;
use poorhttp_http::ContentCoding;
use poorhttp_interface::codings::{Body, Encoder as _, Flush};
use zlib_rs::{Inflate, InflateFlush, Status};

/// Bytes that a decoder has room for at once.
const ROOM: usize = 4 << 10;
/// Bytes of a body: larger ones only take longer.
const MOST: usize = 200 << 10;

/// Compresses a body that comes in pieces. Input: four bytes for the coding, the level, the kind of body, and the number of
/// bodies for which the encoder is used; then the pieces. A piece is a byte for what follows the piece, a byte for the number of
/// its repetitions, a byte with its length, and its text.
pub fn compress(bytes: &[u8]) {
    let Some((&[coding, level, kind, bodies], script)) = bytes.split_first_chunk::<4>() else { return };
    let coding = ContentCoding::ALL[usize::from(coding) % ContentCoding::ALL.len()];
    let level = match coding {
        ContentCoding::Gzip => i32::from(level) % 9 + 1,
        ContentCoding::Brotli => i32::from(level) % 7,
        ContentCoding::Zstd => i32::from(level) % 17 - 7,
    };
    let pieces = pieces(script);
    let length = pieces.iter().map(|(piece, _)| piece.len()).sum();
    let body = [Body::Whole(length), Body::Stream, Body::Events][usize::from(kind) % 3];
    let mut encoder = Encoder::new(coding, level, body).expect("there is memory");
    for _ in 0..=bodies % 3 {
        round_trip(&mut encoder, coding, &pieces, body != Body::Whole(length));
        // A Brotli encoder is used once.
        if coding == ContentCoding::Brotli {
            break;
        }
        encoder.reset(body).expect("there is memory");
    }
}

/// The pieces of a body, and whether each is flushed.
fn pieces(mut script: &[u8]) -> Vec<(Vec<u8>, bool)> {
    let (mut pieces, mut total) = (Vec::new(), 0);
    while let Some((&[then, times, length], rest)) = script.split_first_chunk::<3>() {
        let (text, rest) = rest.split_at(rest.len().min(length.into()));
        script = rest;
        let piece = text.repeat(usize::from(times) + 1);
        total += piece.len();
        if total > MOST {
            break;
        }
        pieces.push((piece, then % 2 == 1));
    }
    pieces
}

fn round_trip(encoder: &mut Encoder, coding: ContentCoding, pieces: &[(Vec<u8>, bool)], is_stream: bool) {
    let (mut given, mut coded, mut flushes) = (Vec::new(), Vec::new(), 0);
    let mut decoder = Decoder::new(coding);
    for (piece, is_flushed) in pieces {
        let is_flushed = *is_flushed && is_stream;
        let before = coded.len();
        let then = if is_flushed { Flush::Sync } else { Flush::Nothing };
        encoder.encode(piece, then, &mut coded).expect("nothing has failed");
        given.extend_from_slice(piece);
        flushes += usize::from(is_flushed);
        decoder.feed(&coded[before..]);
        // What was flushed can be decoded when it has come; nothing else is decoded before.
        assert!(given.starts_with(&decoder.out) && (!is_flushed || decoder.out.len() == given.len()));
        assert!(!decoder.has_ended);
    }
    let before = coded.len();
    encoder.encode(b"", Flush::Finish, &mut coded).expect("nothing has failed");
    decoder.feed(&coded[before..]);
    // A client gets the same bytes, and finds their end.
    assert!(decoder.out == given && decoder.has_ended);
    // The size is bounded by that of the content, the number of flushes, and a constant.
    assert!(coded.len() <= given.len() + given.len() / 100 + 32 * flushes + 64, "{} of {}", coded.len(), given.len());
}

/// The client: it decodes what has come.
struct Decoder {
    kind: Kind,
    out: Vec<u8>,
    has_ended: bool,
}

enum Kind {
    Gzip(Inflate),
    Brotli(Box<brotli::BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd(zstd_safe::DCtx<'static>),
}

impl Decoder {
    fn new(coding: ContentCoding) -> Self {
        let kind = match coding {
            ContentCoding::Gzip => Kind::Gzip(Inflate::new(true, 16 + 15)),
            ContentCoding::Brotli => {
                let alloc = StandardAlloc::default;
                Kind::Brotli(Box::new(brotli::BrotliState::new(alloc(), alloc(), alloc())))
            }
            ContentCoding::Zstd => Kind::Zstd(zstd_safe::DCtx::create()),
        };
        Decoder { kind, out: Vec::new(), has_ended: false }
    }

    fn feed(&mut self, mut coded: &[u8]) {
        let mut room = [0; ROOM];
        loop {
            // Nothing follows the end.
            assert!(!self.has_ended || coded.is_empty());
            if self.has_ended {
                return;
            }
            let (taken, made) = match &mut self.kind {
                Kind::Gzip(inflate) => {
                    let before = (inflate.total_in(), inflate.total_out());
                    let status = inflate.decompress(coded, &mut room, InflateFlush::SyncFlush).expect("it is gzip");
                    self.has_ended = status == Status::StreamEnd;
                    ((inflate.total_in() - before.0) as usize, (inflate.total_out() - before.1) as usize)
                }
                Kind::Brotli(state) => {
                    let (mut left, mut taken, mut free, mut made, mut total) = (coded.len(), 0, ROOM, 0, 0);
                    let result = brotli::BrotliDecompressStream(
                        &mut left, &mut taken, coded, &mut free, &mut made, &mut room, &mut total, state,
                    );
                    assert!(!matches!(result, BrotliResult::ResultFailure), "it is Brotli");
                    self.has_ended = matches!(result, BrotliResult::ResultSuccess);
                    (taken, made)
                }
                Kind::Zstd(context) => {
                    let mut input = zstd_safe::InBuffer::around(coded);
                    let mut output = zstd_safe::OutBuffer::around(&mut room[..]);
                    let left = context.decompress_stream(&mut output, &mut input).expect("it is zstd");
                    self.has_ended = left == 0 && input.pos() > 0;
                    (input.pos(), output.pos())
                }
            };
            self.out.extend_from_slice(&room[..made]);
            coded = &coded[taken..];
            if coded.is_empty() && made < ROOM {
                return;
            }
        }
    }
}
