//! Writes JSON objects (RFC 8259) for both logs. What is written is ASCII or valid UTF-8, on one line.

use super::error::changes_lines;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes the members of an object behind each other.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Begins an object.
    #[inline]
    pub(crate) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { out, is_empty: true }
    }

    /// Writes a name, which needs no escapes.
    #[inline]
    fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// Adds what a client has sent: bytes are taken for Latin-1, as WSGI does.
    #[inline]
    pub(crate) fn bytes(&mut self, name: &str, value: Option<&[u8]>) {
        let out = self.key(name);
        match value {
            Some(value) => push_bytes(out, value),
            None => out.extend_from_slice(b"null"),
        }
    }

    /// Adds a text of ours.
    #[inline]
    pub(crate) fn text(&mut self, name: &str, value: Option<&str>) {
        let out = self.key(name);
        match value {
            Some(value) => push_text(out, value),
            None => out.extend_from_slice(b"null"),
        }
    }

    /// Adds a value that `write` writes between quotes, without anything to escape.
    #[inline]
    pub(crate) fn plain(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        let out = self.key(name);
        out.push(b'"');
        write(out);
        out.push(b'"');
    }

    /// Adds a number.
    #[inline]
    pub(crate) fn number(&mut self, name: &str, value: Option<u64>) {
        let out = self.key(name);
        match value {
            Some(value) => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            None => out.extend_from_slice(b"null"),
        }
    }

    /// Adds true or false.
    #[inline]
    pub(crate) fn boolean(&mut self, name: &str, value: bool) {
        self.key(name).extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Ends the object.
    #[inline]
    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// Whether a byte can stand in a string as it is, also on a terminal.
#[inline(always)]
const fn is_plain(byte: u8) -> bool {
    (byte >= b' ') & (byte < 0x7f) & (byte != b'"') & (byte != b'\\')
}

/// Whether all bytes can; branchless, so that the compiler may take many at once.
#[inline(always)]
pub(super) fn are_plain(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |plain, &byte| plain & is_plain(byte))
}

fn push_bytes(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    match are_plain(value) {
        true => out.extend_from_slice(value),
        false => value.iter().for_each(|&byte| push_character(out, char::from(byte))),
    }
    out.push(b'"');
}

fn push_text(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    match are_plain(value.as_bytes()) {
        true => out.extend_from_slice(value.as_bytes()),
        false => value.chars().for_each(|character| match character {
            '\u{a0}'.. if !changes_lines(character) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => push_character(out, character),
        }),
    }
    out.push(b'"');
}

/// Appends a character of the first plane as ASCII.
fn push_character(out: &mut Vec<u8>, character: char) {
    match character {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        ' '..='~' => out.push(character as u8),
        _ => {
            out.extend_from_slice(b"\\u");
            let code = u32::from(character);
            out.extend([12, 8, 4, 0].map(|shift| HEX[(code >> shift & 15) as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_inside_their_quotes() {
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        object.bytes("bytes", Some(b"a\"b\\\r\n\x1b\x7f\x9b\xe9"));
        object.text("text", Some("a\"b\\\r\n\x1b\x7f\u{9b}\u{e9}\u{2028}\u{202e}\u{1f600}"));
        object.number("number", Some(7));
        object.boolean("yes", true);
        object.bytes("none", None);
        object.plain("plain", |out| out.extend_from_slice(b"x"));
        object.end();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"{"bytes":"a\"b\\\u000d\n\u001b\u007f\u009b\u00e9","#,
                r#""text":"a\"b\\\u000d\n\u001b\u007f\u009bé\u2028\u202e😀","#,
                r#""number":7,"yes":true,"none":null,"plain":"x"}"#
            )
        );
    }
}
