//! File names that hold a hash of the content, as build tools write them.

/// Least and most digits of a hash: webpack's shortest usual hash, and SHA-256.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=64;

/// Whether the last segment of a path is `NAME.HASH.EXT` or `NAME-HASH.EXT` with a hash of hexadecimal digits, as Django,
/// webpack, Parcel and Sprockets write it.
///
/// A hash that holds digits only may be a date, and one that holds letters only a word; neither counts. Base64 hashes (Vite,
/// esbuild) cannot be told from words.
pub(crate) fn is_hashed(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let dots = name.iter().enumerate().filter(|(_, byte)| **byte == b'.');
    dots.map(|(at, _)| &name[..at]).any(ends_with_hash)
}

fn ends_with_hash(text: &[u8]) -> bool {
    let Some(start) = text.iter().rposition(|byte| !is_hex(*byte)) else { return false };
    let (before, hash) = (&text[..start], &text[start + 1..]);
    !before.is_empty()
        && matches!(text[start], b'.' | b'-')
        && LENGTHS.contains(&hash.len())
        && hash.iter().any(u8::is_ascii_digit)
        && hash.iter().any(u8::is_ascii_lowercase)
        && !(text[start] == b'-' && ends_as_uuid(before))
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Whether the text ends with a hyphen and four digits, like all of a UUID before its last hyphen. A UUID may name a file
/// that is replaced.
fn ends_as_uuid(text: &[u8]) -> bool {
    matches!(text, [.., b'-', a, b, c, d] if [a, b, c, d].iter().all(|byte| is_hex(**byte)))
}
