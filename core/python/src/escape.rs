//! HTML escaping, as a Python function.
//!
//! It replaces markupsafe, which took two thirds of the time of a page with a hundred small values, as it makes an object of its
//! own class for each. Here numbers are not scanned, and text without special characters is returned unchanged.

use poorhttp_files::html;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString, PyTuple};

/// A value as text for HTML and for quoted attributes. The result of its `__html__` method, if it has one, is not escaped.
#[pyfunction]
pub(crate) fn escape<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let (text, special) = text_of(value)?;
    let plain = text.to_str()?;
    if !special || !html::is_special(plain) {
        return Ok(text);
    }
    let mut escaped = String::with_capacity(plain.len() + 16);
    html::push_escaped(&mut escaped, plain);
    Ok(PyString::new(value.py(), &escaped))
}

/// Joins texts and values, which alternate, and escapes the values. One call makes a whole row of a table.
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
                html::push_escaped(&mut filled, text.to_str()?);
            } else {
                filled.push_str(text.to_str()?);
            }
        }
    }
    Ok(PyString::new(parts.py(), &filled))
}

/// A value as text, and whether it may need escaping.
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
