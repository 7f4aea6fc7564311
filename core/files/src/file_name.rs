//! What may be the name of a file at all.

use std::ffi::{CStr, CString};
use std::fmt::Write;

use memchr::memchr;

/// The longest name of one file (`NAME_MAX`).
const MOST_SEGMENT: usize = 255;

/// The longest name with folders, with room for what is added to it: an index, an extension (`PATH_MAX`).
const MOST_NAME: usize = 4096 - 2 * MOST_SEGMENT;

/// A name below a folder: segments with one slash between each two, none of them special to a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileName<'a> {
    /// Without a slash at either end; empty is the folder itself.
    segments: &'a [u8],
    /// There was a slash at its end: only a folder is meant.
    pub(crate) is_folder: bool,
}

impl<'a> FileName<'a> {
    /// Reads what is behind the prefix of a path, decoded. `None`: there is no such file, whatever is on the disk.
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

    /// As the file system is told.
    pub(crate) fn to_c_string(self) -> CString {
        c_string(&[self.segments])
    }

    /// Of a file in the folder that this is the name of.
    pub(crate) fn join(self, file: &[u8]) -> CString {
        match self.segments {
            [] => c_string(&[file]),
            segments => c_string(&[segments, b"/", file]),
        }
    }
}

/// The parts of a name, one behind the other; the folder itself if there is nothing in them.
pub(crate) fn c_string(parts: &[&[u8]]) -> CString {
    match CString::new(parts.concat()) {
        Ok(name) if !name.is_empty() => name,
        // A NUL has been refused, or stands in an option: then there is no such file.
        _ => c".".into(),
    }
}

/// The folder that a file is in.
pub(crate) fn parent(name: &CStr) -> CString {
    let name = name.to_bytes();
    c_string(&[&name[..memchr::memrchr(b'/', name).unwrap_or(0)]])
}

/// Whether a path as it was sent hides a slash from whoever looks for segments. (A backslash means nothing here, but it does
/// to others that a name may pass through.)
pub(crate) fn hides_slash(path: &[u8]) -> bool {
    memchr::memchr_iter(b'%', path)
        .any(|at| matches!(path[at + 1..], [b'2', b'f' | b'F', ..] | [b'5', b'c' | b'C', ..]))
}

/// Percent-encoded, but for `unreserved` (RFC 3986 section 2.3) and what else is to stay.
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
