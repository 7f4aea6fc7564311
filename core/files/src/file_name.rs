//! Validation of file names in requests.

use std::ffi::{CStr, CString};
use std::fmt::Write;

use memchr::memchr;

/// Bytes of one segment (`NAME_MAX`).
const MOST_SEGMENT: usize = 255;

/// Bytes of a name (`PATH_MAX`), less the room for an index file and an extension.
const MOST_NAME: usize = 4096 - 2 * MOST_SEGMENT;

/// A name below a folder: segments separated by single slashes, without `.` and `..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileName<'a> {
    /// Without a slash at either end; empty for the folder itself.
    segments: &'a [u8],
    /// Whether it had a trailing slash, and so can only be a folder.
    pub(crate) is_folder: bool,
}

impl<'a> FileName<'a> {
    /// The name in a decoded path without its prefix. `None`: never served, whatever is on the disk.
    pub(crate) fn of(path: &'a [u8], hidden: bool) -> Option<Self> {
        let (segments, is_folder) = match path {
            b"" => return Some(FileName { segments: b"", is_folder: false }),
            b"/" => return Some(FileName { segments: b"", is_folder: true }),
            [b'/', segments @ .., b'/'] => (segments, true),
            [b'/', segments @ ..] => (segments, false),
            _ => return None,
        };
        if segments.len() > MOST_NAME || memchr(0, segments).is_some() {
            return None;
        }
        for (number, segment) in segments.split(|&byte| byte == b'/').enumerate() {
            let visible = match segment {
                b"" | b"." | b".." => false,
                // RFC 8615
                b".well-known" if number == 0 => true,
                [b'.', ..] => hidden,
                _ => true,
            };
            if !visible || segment.len() > MOST_SEGMENT {
                return None;
            }
        }
        Some(FileName { segments, is_folder })
    }

    /// Whether it is the folder itself.
    pub(crate) fn is_top(self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) fn to_c_string(self) -> CString {
        c_string(&[self.segments])
    }

    /// The name of a file in this folder.
    pub(crate) fn join(self, file: &[u8]) -> CString {
        match self.segments {
            [] => c_string(&[file]),
            segments => c_string(&[segments, b"/", file]),
        }
    }
}

/// The concatenated parts of a name; `.` if they are empty.
pub(crate) fn c_string(parts: &[&[u8]]) -> CString {
    match CString::new(parts.concat()) {
        Ok(name) if !name.is_empty() => name,
        // Requests with a NUL were refused; one in an option names no file.
        _ => c".".into(),
    }
}

pub(crate) fn parent(name: &CStr) -> CString {
    let name = name.to_bytes();
    c_string(&[&name[..memchr::memrchr(b'/', name).unwrap_or(0)]])
}

/// Whether a path as it was sent has an encoded slash or backslash, which other programs may decode and take for a separator.
pub(crate) fn hides_slash(path: &[u8]) -> bool {
    memchr::memchr_iter(b'%', path)
        .any(|at| matches!(path[at + 1..], [b'2', b'f' | b'F', ..] | [b'5', b'c' | b'C', ..]))
}

/// Percent-encodes all bytes but `unreserved` (RFC 3986 section 2.3) and those in `stay`.
pub(crate) fn encoded(name: &[u8], stay: &[u8]) -> String {
    let mut encoded = String::with_capacity(name.len());
    for &byte in name {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || stay.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
