//! HTML escaping, for directory listings and for templates.

/// Whether [`push_escaped`] would replace a character.
#[inline]
pub fn is_special(text: &str) -> bool {
    text.bytes().any(|byte| replacement(byte).is_some())
}

/// Appends text for HTML and for quoted attributes.
#[inline]
pub fn push_escaped(escaped: &mut String, text: &str) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if let Some(entity) = replacement(byte) {
            escaped.push_str(&text[from..at]);
            escaped.push_str(entity);
            from = at + 1;
        }
    }
    escaped.push_str(&text[from..]);
}

#[inline]
fn replacement(byte: u8) -> Option<&'static str> {
    match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'"' => Some("&#34;"),
        b'\'' => Some("&#39;"),
        _ => None,
    }
}
