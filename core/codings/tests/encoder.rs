//! Encoders: their output decodes to the same bytes, up to each flush.

#![allow(missing_docs, clippy::unwrap_used)]

use poorhttp_codings::Encoder;
use poorhttp_http::ContentCoding;
use poorhttp_interface::codings::{Body, Encoder as _, Flush};

/// What a client decodes of a body that may not be complete.
fn decoded(coding: ContentCoding, coded: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 4 << 20];
    let length = match coding {
        ContentCoding::Gzip => {
            let mut inflate = zlib_rs::Inflate::new(true, 16 + 15);
            inflate.decompress(coded, &mut out, zlib_rs::InflateFlush::SyncFlush).unwrap();
            inflate.total_out() as usize
        }
        ContentCoding::Brotli => {
            use brotli::enc::StandardAlloc;
            let alloc = StandardAlloc::default;
            let mut state = brotli::BrotliState::new(alloc(), alloc(), alloc());
            let (mut left, mut taken, mut free, mut made, mut total) = (coded.len(), 0, out.len(), 0, 0);
            brotli::BrotliDecompressStream(
                &mut left, &mut taken, coded, &mut free, &mut made, &mut out, &mut total, &mut state,
            );
            made
        }
        ContentCoding::Zstd => {
            let mut context = zstd_safe::DCtx::create();
            let mut input = zstd_safe::InBuffer::around(coded);
            let mut room = zstd_safe::OutBuffer::around(&mut out[..]);
            while input.pos() < coded.len() {
                context.decompress_stream(&mut room, &mut input).unwrap();
            }
            room.pos()
        }
    };
    out.truncate(length);
    out
}

/// Text whose parts come again, and bytes that do not.
fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut out = Vec::new();
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match state % 4 {
            0 => out.extend_from_slice(&state.to_le_bytes()),
            _ => out.extend_from_slice(format!("{{\"id\": {}, \"active\": true}}, ", state % 1000).as_bytes()),
        }
    }
    out.truncate(length);
    out
}

const BODIES: [Body; 2] = [Body::Stream, Body::Events];

#[test]
fn a_whole_body() {
    for coding in ContentCoding::ALL {
        for length in [0, 1, 100, 5_000, 70_000, 1 << 20] {
            let content = content(length, 7);
            for body in [Body::Whole(length), Body::Stream, Body::Events] {
                let mut encoder = Encoder::new(coding, 5, body).unwrap();
                for _ in 0..2 {
                    let mut coded = Vec::new();
                    encoder.encode(&content, Flush::Finish, &mut coded).unwrap();
                    assert!(decoded(coding, &coded) == content, "{coding:?} {body:?} {length}");
                    if coding == ContentCoding::Brotli {
                        break;
                    }
                    encoder.reset(body).unwrap();
                }
            }
        }
    }
}

#[test]
fn what_was_flushed_can_be_decoded() {
    for coding in ContentCoding::ALL {
        for body in BODIES {
            let (mut given, mut coded) = (Vec::new(), Vec::new());
            let mut encoder = Encoder::new(coding, 5, body).unwrap();
            for (number, length) in [1, 0, 17, 5_000, 300_000, 2, 100_000].into_iter().enumerate() {
                let piece = content(length, number as u64);
                encoder.encode(&piece, Flush::Sync, &mut coded).unwrap();
                given.extend_from_slice(&piece);
                assert!(decoded(coding, &coded) == given, "{coding:?} {body:?} {number}");
            }
            encoder.encode(b"", Flush::Finish, &mut coded).unwrap();
            assert!(decoded(coding, &coded) == given);
        }
    }
}

#[test]
fn pieces_without_a_flush_between_them() {
    for coding in ContentCoding::ALL {
        for body in BODIES {
            let content = content(200_000, 3);
            let mut coded = Vec::new();
            let mut encoder = Encoder::new(coding, 3, body).unwrap();
            for piece in content.chunks(333) {
                encoder.encode(piece, Flush::Nothing, &mut coded).unwrap();
            }
            encoder.encode(b"", Flush::Finish, &mut coded).unwrap();
            assert!(decoded(coding, &coded) == content, "{coding:?} {body:?}");
        }
    }
}

#[test]
fn all_levels() {
    let content = content(3_000, 1);
    for (coding, levels) in
        [(ContentCoding::Gzip, 1..=9), (ContentCoding::Brotli, 0..=6), (ContentCoding::Zstd, -7..=9)]
    {
        for level in levels {
            for body in [Body::Whole(content.len()), Body::Stream, Body::Events] {
                let mut encoder = Encoder::new(coding, level, body).unwrap();
                let mut coded = Vec::new();
                encoder.encode(&content[..1_000], Flush::Nothing, &mut coded).unwrap();
                encoder.encode(&content[1_000..], Flush::Finish, &mut coded).unwrap();
                assert!(decoded(coding, &coded) == content, "{coding:?} {level} {body:?}");
            }
        }
    }
}
