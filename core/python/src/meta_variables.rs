//! What a CGI program is told of a request: its environ as meta-variables (RFC 3875 section 4.1).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use poorhttp_http::encode_latin1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// What programs get of the environ under the same name, if it is there.
const KNOWN: [&str; 13] = [
    "AUTH_TYPE",
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "QUERY_STRING",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_METHOD",
    "REQUEST_URI",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
];

/// Header fields that programs do not get. Credentials are the server's business (RFC 3875 section 4.1.18), and libraries
/// take `HTTP_PROXY` for the address of a proxy (CVE-2016-5385).
const WITHHELD: [&str; 3] = ["HTTP_AUTHORIZATION", "HTTP_PROXY_AUTHORIZATION", "HTTP_PROXY"];

/// Adds what the environ says: behind what was set, so that nobody can be told of another request.
pub(crate) fn add_request(variables: &mut Vec<(OsString, OsString)>, environ: &Bound<'_, PyDict>) -> PyResult<()> {
    variables.reserve(environ.len() + 2);
    let mut address = OsString::new();
    for (key, value) in environ.iter() {
        // A middleware may have put in anything.
        let Ok(key) = key.cast::<PyString>() else { continue };
        let Ok(key) = key.to_str() else { continue };
        if key == "wsgi.url_scheme" {
            if value.eq("https")? {
                variables.push(("HTTPS".into(), "on".into()));
            }
        } else if is_told(key) {
            let value = octets(key, &value)?;
            if key == "REMOTE_ADDR" {
                address.clone_from(&value);
            }
            variables.push((key.into(), value));
        }
    }
    // RFC 3875 section 4.1.9: where the name is not known, the address will do.
    variables.push(("REMOTE_HOST".into(), address));
    Ok(())
}

fn is_told(key: &str) -> bool {
    match key.strip_prefix("HTTP_") {
        // Other characters are legal in a field, and mean something to a shell.
        Some(name) => name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !WITHHELD.contains(&key),
        None => KNOWN.contains(&key),
    }
}

/// A WSGI "native string" is octets as Latin-1 (PEP 3333).
fn octets(key: &str, value: &Bound<'_, PyAny>) -> PyResult<OsString> {
    match encode_latin1(value.cast::<PyString>()?.to_str()?) {
        Some(bytes) => Ok(OsString::from_vec(bytes.into_owned())),
        None => Err(PyValueError::new_err(format!("{key} in the environ is not Latin-1"))),
    }
}
