//! Replies without a file: errors in one line of text.

use std::sync::Arc;

use rustix::io::Errno;

use crate::reply::{Content, Reply};

/// A reply of one line of text.
pub(crate) fn text(status: &'static str, reason: &str, fields: &str) -> Reply {
    let line = format!("{status}: {reason}\n");
    let fields = format!("Content-Type: text/plain; charset=utf-8\r\n{fields}");
    Reply {
        status: status.into(),
        fields: Arc::from(fields.into_bytes()),
        length: line.len() as u64,
        content: Content::Memory(Arc::from(line.into_bytes())),
    }
}

pub(crate) const NOT_FOUND: &str = "404 Not Found";

pub(crate) fn missing() -> Reply {
    text(NOT_FOUND, "there is no such file", "")
}

pub(crate) fn not_allowed() -> Reply {
    text("405 Method Not Allowed", "files can only be read", "Allow: GET, HEAD\r\n")
}

/// RFC 9110 section 15.5.13
pub(crate) fn precondition_failed() -> Reply {
    text("412 Precondition Failed", "the file does not match the conditions of the request", "")
}

/// The requested ranges are beyond the end of the file (RFC 9110 section 15.5.17).
pub(crate) fn unsatisfiable(length: u64) -> Reply {
    let reason = "the file has no such range";
    text("416 Range Not Satisfiable", reason, &format!("Content-Range: bytes */{length}\r\n"))
}

/// Whether a retry may succeed, because a resource is exhausted for the moment.
pub(crate) fn is_temporary(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN | Errno::STALE)
}

/// The reply to an error of the file system; `None`: there is no such file.
pub(crate) fn of(error: Errno) -> Option<Reply> {
    Some(match error {
        Errno::ACCESS | Errno::PERM => text("403 Forbidden", "the file is not readable", ""),
        error if is_temporary(error) => {
            text("503 Service Unavailable", "the file cannot be opened now", "Retry-After: 1\r\n")
        }
        Errno::IO => text("500 Internal Server Error", "the file cannot be read", ""),
        // Such as EXDEV and ELOOP (links that lead outside or in circles), ENAMETOOLONG, ENOTDIR, ENXIO (a socket).
        _ => return None,
    })
}
