//! Prints the parsed requests of inputs, to compare them with those of another parser.
//!
//! Standard input holds inputs, each after its length in four bytes, big-endian. Each result is a line of JSON, whose
//! strings have a character for each byte.

use std::io::{self, BufWriter, ErrorKind, Read, Write};

use poorhttp_fuzz::{Message, Receiver};
use poorhttp_http::Version;

fn main() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let mut length = [0; 4];
    loop {
        match input.read_exact(&mut length) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return output.flush(),
            result => result?,
        }
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        input.read_exact(&mut bytes)?;
        let mut receiver = Receiver::default();
        bytes.chunks(1).for_each(|byte| receiver.feed(byte));
        let ends = std::mem::take(&mut receiver.ends);
        let outcome = receiver.outcome();
        let messages: Vec<String> =
            outcome.messages.iter().zip(ends).map(|(message, end)| described(message, end)).collect();
        let rejected = outcome.rejected.map_or("null".into(), |(status, reason)| format!("\"{status} {reason}\""));
        writeln!(output, "{{\"messages\": [{}], \"rejected\": {rejected}}}", messages.join(", "))?;
        output.flush()?;
    }
}

fn described(message: &Message, end: usize) -> String {
    let fields: Vec<String> = message
        .fields()
        .map(|(name, value)| format!("[{}, {}]", string(&name.to_ascii_lowercase()), string(value)))
        .collect();
    format!(
        "{{\"method\": {}, \"target\": {}, \"version\": \"{}\", \"fields\": [{}], \"body\": {}, \"persists\": {}, \
         \"end\": {end}}}",
        string(message.method()),
        string(message.target()),
        if message.head.version == Version::Http11 { "1.1" } else { "1.0" },
        fields.join(", "),
        string(&message.body),
        message.head.keep_alive,
    )
}

fn string(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b' '..=b'~' if byte != b'"' && byte != b'\\' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\u{byte:04x}")),
        }
    }
    text + "\""
}
