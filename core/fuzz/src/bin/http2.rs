//! Answers calls of HPACK and HTTP/2, to compare them with another implementation.
//!
//! Standard input holds calls: a letter, the length of the argument in four bytes, big-endian, and the argument. Standard output gets
//! each result after its length.
//!
//! ```text
//! n    a new encoder and decoder, with tables of the size in four bytes
//! o    the size of the table that the encoder is offered, in four bytes
//! d    decodes a block: `=` and the fields, or `!` and the reason
//! e    encodes fields
//! c    a new connection; its first output
//! r    bytes of the client; the output
//! ```
//!
//! Each name and each value of fields stands behind its length in four bytes.

use std::io::{self, BufWriter, ErrorKind, Read, Write};

use poorhttp_fuzz::Echo;
use poorhttp_http2::{Decoder, Encoder, Options};

fn main() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let (mut decoder, mut encoder) = (Decoder::new(4096), Encoder::new(4096));
    let mut echo = Echo::new(Options::default());
    let mut call = [0; 5];
    loop {
        match input.read_exact(&mut call) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return output.flush(),
            result => result?,
        }
        let [letter, a, b, c, d] = call;
        let mut argument = vec![0; u32::from_be_bytes([a, b, c, d]) as usize];
        input.read_exact(&mut argument)?;
        let number = || argument.first_chunk().map_or(0, |number| u32::from_be_bytes(*number)) as usize;
        let result = match letter {
            b'n' => {
                (decoder, encoder) = (Decoder::new(number()), Encoder::new(number()));
                Vec::new()
            }
            b'o' => {
                encoder.offer(number());
                Vec::new()
            }
            b'd' => {
                let mut fields = vec![b'='];
                let mut text = |text: &[u8]| {
                    fields.extend_from_slice(&(text.len() as u32).to_be_bytes());
                    fields.extend_from_slice(text);
                };
                let decoded = decoder.decode(&argument, true, |name, value| {
                    text(name);
                    text(value);
                });
                decoded.map_or_else(|reason| format!("!{reason}").into_bytes(), |_| fields)
            }
            b'e' => {
                let texts = texts(&argument);
                encoder.encode_block(texts.chunks_exact(2).map(|pair| (pair[0], pair[1])))
            }
            b'c' => {
                echo = Echo::new(Options::default());
                echo.output()
            }
            b'r' => {
                echo.receive(&argument);
                let mut all = Vec::new();
                loop {
                    let more = echo.output();
                    if more.is_empty() {
                        break all;
                    }
                    all.extend(more);
                }
            }
            other => panic!("{other}: no call"),
        };
        output.write_all(&(result.len() as u32).to_be_bytes())?;
        output.write_all(&result)?;
        output.flush()?;
    }
}

fn texts(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (text, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        texts.push(text);
        bytes = rest;
    }
    texts
}
