//! Text that may stand in HTML.
//!
//! markupsafe does the same, and for a page with a hundred small values it takes two thirds of the time: each becomes an
//! object of a class of its own. Here numbers are not looked at, and text without a special character is returned as it
//! is.

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString, PyTuple};

/// A value as text that may stand in HTML, inside quoted attributes too.
///
/// What has a method `__html__` knows how it is to be written, and is not escaped again.
#[pyfunction]
pub(crate) fn escape<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let (text, special) = text_of(value)?;
    let plain = text.to_str()?;
    if !special || !plain.bytes().any(is_special) {
        return Ok(text);
    }
    let mut escaped = String::with_capacity(plain.len() + 16);
    push_escaped(&mut escaped, plain);
    Ok(PyString::new(value.py(), &escaped))
}

/// Texts and values in turn as one text, in which the values are escaped.
///
/// One call and one object for a row of a table, in the place of two for each of its cells.
#[pyfunction]
#[pyo3(signature = (*parts))]
pub(crate) fn fill<'py>(parts: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyString>> {
    let mut filled = String::with_capacity(128);
    let mut digits = itoa::Buffer::new();
    for (number, part) in parts.iter_borrowed().enumerate() {
        if number % 2 == 0 {
            filled.push_str(part.cast::<PyString>()?.to_str()?);
        } else if part.is_exact_instance_of::<PyInt>()
            && let Ok(value) = part.extract::<i64>()
        {
            filled.push_str(digits.format(value));
        } else {
            let (text, special) = text_of(&part)?;
            if special {
                push_escaped(&mut filled, text.to_str()?);
            } else {
                filled.push_str(text.to_str()?);
            }
        }
    }
    Ok(PyString::new(parts.py(), &filled))
}

/// A value as text, and whether there may be something to escape in it.
fn text_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyString>, bool)> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok((text.clone(), true));
    }
    if value.is_exact_instance_of::<PyInt>() || value.is_exact_instance_of::<PyFloat>() {
        return Ok((value.str()?, false));
    }
    if let Some(html) = value.getattr_opt(pyo3::intern!(value.py(), "__html__"))? {
        return Ok((html.call0()?.str()?, false));
    }
    Ok((value.str()?, true))
}

fn push_escaped(escaped: &mut String, plain: &str) {
    let mut from = 0;
    for (at, octet) in plain.bytes().enumerate() {
        if let Some(entity) = replacement(octet) {
            escaped.push_str(&plain[from..at]);
            escaped.push_str(entity);
            from = at + 1;
        }
    }
    escaped.push_str(&plain[from..]);
}

fn is_special(octet: u8) -> bool {
    replacement(octet).is_some()
}

fn replacement(octet: u8) -> Option<&'static str> {
    match octet {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'"' => Some("&#34;"),
        b'\'' => Some("&#39;"),
        _ => None,
    }
}
