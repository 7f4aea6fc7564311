//! The title of this process, which `ps` and `top` show in place of its command line.
//!
//! A worker shows a request in it: of several in flight, the same one until it ends, and then the oldest. So a request that
//! takes long is seen, and others cost a comparison. For how long it has run is not shown, as an idle worker would need a
//! timer for that. Every user of the machine can read a title, so what may hold a secret is shown only if the option says so.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use pyo3::prelude::*;

use crate::errors::value_error;
use crate::ffi::Arguments;

/// Bytes of a request line that are shown.
const LONGEST_LINE: usize = 100;

/// Where the title is; `None`: this process cannot have one.
static ARGUMENTS: OnceLock<Option<Arguments>> = OnceLock::new();
/// Length of the title without a request; 0: requests are not shown.
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// Whether queries of requests are shown.
static SHOWS_QUERIES: AtomicBool = AtomicBool::new(false);
/// Number of the request that is shown; 0: none.
static SHOWN: AtomicU64 = AtomicU64::new(0);

/// Sets the title of this process, and its name (`/proc/PID/comm`, at most 15 bytes). What `requests` names of a request in
/// flight follows the title: method and `path`, or `query` too; `none`: nothing.
#[pyfunction]
#[pyo3(signature = (title, name, *, requests = "none"))]
pub(crate) fn set_process_title(py: Python<'_>, title: OsString, name: OsString, requests: &str) -> PyResult<()> {
    let shows_requests = match requests {
        "none" => false,
        "path" | "query" => true,
        _ => return Err(value_error(format_args!("{requests} is no part of a request"))),
    };
    set_thread_name(name);
    let Some(arguments) = ARGUMENTS.get_or_init(Arguments::of_this_process) else { return Ok(()) };
    let mut text = printable(title.as_bytes());
    text.truncate(arguments.room());
    let length = text.len();
    text.push(0);
    arguments.write(py, 0, &text);
    SHOWN.store(0, Ordering::Relaxed);
    SHOWS_QUERIES.store(requests == "query", Ordering::Relaxed);
    LENGTH.store(if shows_requests { length } else { 0 }, Ordering::Relaxed);
    Ok(())
}

/// Sets the name of this thread, and of the process if it is the main one; the system keeps 15 bytes.
#[pyfunction]
pub(crate) fn set_thread_name(name: OsString) {
    if let Ok(name) = CString::new(printable(name.as_bytes())) {
        let _ = rustix::thread::set_name(&name);
    }
}

/// This process was forked by an application, and has none of its parent's requests.
pub(crate) fn forget(py: Python<'_>) {
    let length = LENGTH.swap(0, Ordering::Relaxed);
    if length > 0
        && let Some(Some(arguments)) = ARGUMENTS.get()
    {
        arguments.write(py, length, b" (forked)\0");
    }
}

/// Shows a request that begins, unless another one is shown.
#[inline]
pub(crate) fn begin(py: Python<'_>, number: u64, line: &[u8]) {
    let length = LENGTH.load(Ordering::Relaxed);
    if length > 0 && SHOWN.load(Ordering::Relaxed) == 0 {
        show(py, length, number, line);
    }
}

/// Removes a request that ends, and shows the one that `oldest` returns.
#[inline]
pub(crate) fn end<T: AsRef<[u8]>>(py: Python<'_>, number: u64, oldest: impl FnOnce() -> Option<(u64, T)>) {
    let length = LENGTH.load(Ordering::Relaxed);
    if length == 0 || SHOWN.load(Ordering::Relaxed) != number {
        return;
    }
    match oldest() {
        Some((number, line)) => show(py, length, number, line.as_ref()),
        None => {
            SHOWN.store(0, Ordering::Relaxed);
            if let Some(Some(arguments)) = ARGUMENTS.get() {
                arguments.write(py, length, b"\0");
            }
        }
    }
}

#[inline]
fn show(py: Python<'_>, length: usize, number: u64, line: &[u8]) {
    let Some(Some(arguments)) = ARGUMENTS.get() else { return };
    let line = &line[..line.len().min(LONGEST_LINE)];
    let line = if SHOWS_QUERIES.load(Ordering::Relaxed) { line } else { without_query(line) };
    let mut text = [0; LONGEST_LINE + 2];
    text[0] = b' ';
    let end = 1 + line.len();
    for (to, from) in text[1..end].iter_mut().zip(line) {
        *to = shown(*from);
    }
    arguments.write(py, length, &text[..=end]);
    SHOWN.store(number, Ordering::Relaxed);
}

/// The line up to its query, its fragment, or the first parameter of a segment (`;jsessionid=`).
#[inline]
fn without_query(line: &[u8]) -> &[u8] {
    &line[..line.iter().position(|byte| matches!(byte, b'?' | b';' | b'#')).unwrap_or(line.len())]
}

/// Bytes that no terminal interprets.
fn printable(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| shown(*byte)).collect()
}

#[inline]
fn shown(byte: u8) -> u8 {
    if matches!(byte, b' '..=b'~') { byte } else { b'?' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_its_query() {
        for (line, shown) in [
            ("GET /a/b", "GET /a/b"),
            ("GET /a?b=c", "GET /a"),
            ("GET /a;jsessionid=b/c?d", "GET /a"),
            ("GET /a#b", "GET /a"),
            ("GET http://x/a?b", "GET http://x/a"),
            ("GET http://x?b", "GET http://x"),
            ("GET /?", "GET /"),
        ] {
            assert_eq!(without_query(line.as_bytes()), shown.as_bytes(), "{line}");
        }
    }

    #[test]
    fn nothing_controls_a_terminal() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let shown = printable(&all);
        assert_eq!(shown.len(), 256);
        assert!(shown.iter().all(|byte| matches!(byte, b' '..=b'~')));
        assert_eq!(printable("GET /a?b=\u{1b}[2J\u{e4}".as_bytes()), b"GET /a?b=?[2J??");
    }
}
