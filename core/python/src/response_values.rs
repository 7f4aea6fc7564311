//! Header fields and pieces of a body as an application gives them, and the exceptions for those that are wrong.

use std::borrow::Cow;

use poorhttp_http::Invalid;
use poorhttp_reactor::SendError;
use pyo3::exceptions::{PyConnectionResetError, PyRuntimeError, PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::errors::value_error;
use crate::ffi::text;

/// The exception to raise for a [`SendError`] or a Python error.
pub(crate) struct Failure(PyErr);

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        Failure(match error {
            SendError::Invalid(invalid) => value_error(invalid),
            SendError::Disconnected => PyConnectionResetError::new_err("the client has left"),
            SendError::Over => PyRuntimeError::new_err("this request has been answered already"),
            // gunicorn's way to say that the response is discarded.
            SendError::Upgraded => PyStopIteration::new_err(()),
            SendError::Full(_) => PyConnectionResetError::new_err("the client reads nothing"),
        })
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Failure(value_error(invalid))
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

/// Writes the header fields of a list of tuples.
#[inline]
pub(crate) fn write_fields<E: Into<Failure>>(
    fields: &Bound<'_, PyList>,
    mut write: impl FnMut(&str, &str) -> Result<(), E>,
) -> Result<(), Failure> {
    for field in fields {
        let pair = field.cast::<PyTuple>().map_err(|_| wrong_type("a header", "a tuple of name and value", &field))?;
        let [name, value] = pair.as_slice() else {
            // The repr of the tuple would run application code while this request is locked.
            let message = format!("a header must be a tuple of name and value, not of {} items", pair.len());
            return Err(PyTypeError::new_err(message).into());
        };
        let name = name.cast::<PyString>().map_err(|_| wrong_type("a header's name", "a str", name))?;
        let value = value
            .cast::<PyString>()
            .map_err(|_| wrong_type(&format!("the value of header {}", name.to_string_lossy()), "a str", value))?;
        write(text(name)?, text(value)?).map_err(Into::into)?;
    }
    Ok(())
}

/// Fields about the connection, which are the server's: applications that pass on the response of another server have them.
const OF_CONNECTION: [&[u8]; 6] =
    [b"te", b"trailer", b"upgrade", b"keep-alive", b"proxy-connection", b"transfer-encoding"];

/// Writes header fields of bytes: pairs of name and value, tuples or lists. Those about the connection are left out, but for
/// `Connection: close`, and `upgrade` if the status `is_426`.
pub(crate) fn write_byte_fields<E: Into<Failure>>(
    fields: &[Bound<'_, PyAny>],
    is_426: bool,
    mut write: impl FnMut(&str, &str) -> Result<(), E>,
) -> Result<(), Failure> {
    for field in fields {
        let (name, value) = match (field.cast::<PyTuple>(), field.cast::<PyList>()) {
            (Ok(pair), _) if pair.len() == 2 => (pair.get_item(0)?, pair.get_item(1)?),
            (_, Ok(pair)) if pair.len() == 2 => (pair.get_item(0)?, pair.get_item(1)?),
            _ => return Err(wrong_type("a header", "a pair of name and value", field).into()),
        };
        let name = name.cast::<PyBytes>().map_err(|_| wrong_type("a header's name", "bytes", &name))?.as_bytes();
        if matches!(name.len(), 2 | 7 | 10 | 16 | 17)
            && OF_CONNECTION.iter().any(|field| name.eq_ignore_ascii_case(field))
            && !(is_426 && name.eq_ignore_ascii_case(b"upgrade"))
        {
            continue;
        }
        let value = value.cast::<PyBytes>().map_err(|_| wrong_type("the value of a header", "bytes", &value))?;
        let mut value = value.as_bytes();
        if name.eq_ignore_ascii_case(b"connection") {
            let has = |wanted: &[u8]| {
                value.split(|&byte| byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(wanted))
            };
            value = match (has(b"close"), is_426 && has(b"upgrade")) {
                (true, true) => b"close, upgrade",
                (true, false) => b"close",
                (false, true) => b"upgrade",
                (false, false) => continue,
            };
        }
        write(&latin1_text(name), &latin1_text(value)).map_err(Into::into)?;
    }
    Ok(())
}

/// The characters of Latin-1 that these bytes are.
fn latin1_text(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) if bytes.is_ascii() => Cow::Borrowed(text),
        _ => bytes.iter().copied().map(char::from).collect(),
    }
}

/// The exception for a value of another type.
pub(crate) fn wrong_type(what: &str, wanted: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let kind = got.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what} must be {wanted}, not {kind}"))
}

/// The bytes of a piece of a body.
#[inline]
pub(crate) fn body_bytes<'a>(item: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    match item.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes()),
        Err(_) => Err(wrong_type("a piece of the body", "bytes (PEP 3333)", item)),
    }
}
