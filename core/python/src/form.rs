//! The fields of an address or of a form (application/x-www-form-urlencoded, WHATWG URL section 5.1).
//!
//! `urllib.parse.parse_qsl` does the same, and for a name with one space in it takes three times as long as all the rest
//! of a small request to a page. What is malformed comes out as it does there.

use std::borrow::Cow;

use poorhttp_http::hex;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// The names and values of a text, decoded, in their order.
#[pyfunction]
pub(crate) fn read_fields<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyList>> {
    let fields = PyList::empty(py);
    for part in text.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        fields.append(PyTuple::new(py, [decoded(py, name), decoded(py, value)])?)?;
    }
    Ok(fields)
}

fn decoded<'py>(py: Python<'py>, text: &str) -> Bound<'py, PyString> {
    PyString::new(py, &decode(text))
}

/// A plus sign is a space, `%` and two hexadecimal digits an octet of UTF-8; what is no UTF-8 becomes U+FFFD.
///
/// Octets on two sides of a character that is not encoded make no character together.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|octet| matches!(octet, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    for run in text.as_bytes().chunk_by(|one, next| one.is_ascii() == next.is_ascii()) {
        if run.first().is_some_and(u8::is_ascii) {
            decoded.push_str(&String::from_utf8_lossy(&octets(run)));
        } else {
            // Nothing is lost: runs end where characters do.
            decoded.push_str(&String::from_utf8_lossy(run));
        }
    }
    Cow::Owned(decoded)
}

fn octets(mut encoded: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(encoded.len());
    loop {
        encoded = match *encoded {
            [] => return octets,
            [b'+', ref rest @ ..] => {
                octets.push(b' ');
                rest
            }
            [b'%', high, low, ref rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                octets.push(hex(high).unwrap_or(0) << 4 | hex(low).unwrap_or(0));
                rest
            }
            [octet, ref rest @ ..] => {
                octets.push(octet);
                rest
            }
        };
    }
}
