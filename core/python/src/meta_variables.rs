//! Meta-variables of a CGI program, from the WSGI environ (RFC 3875 section 4.1).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use poorhttp_http::encode_latin1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::errors::value_error;

/// Keys of the environ that are passed on under the same name.
const PASSED_ON: [&str; 13] = [
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

/// Header fields that programs do not get: credentials (RFC 3875 section 4.1.18), and `HTTP_PROXY`, which libraries take for the
/// address of a proxy (CVE-2016-5385).
const WITHHELD: [&str; 3] = ["HTTP_AUTHORIZATION", "HTTP_PROXY_AUTHORIZATION", "HTTP_PROXY"];

/// Appends the meta-variables. They come last so that other settings cannot override the request.
pub(crate) fn add_request(variables: &mut Vec<(OsString, OsString)>, environ: &Bound<'_, PyDict>) -> PyResult<()> {
    variables.reserve(environ.len() + 2);
    let mut address = OsString::new();
    for (key, value) in environ.iter() {
        // A middleware may have put in anything.
        let Ok(key) = key.extract::<&str>() else { continue };
        if key == "wsgi.url_scheme" {
            if value.eq("https")? {
                variables.push(("HTTPS".into(), "on".into()));
            }
        } else if is_passed_on(key) {
            let value = encode(key, &value)?;
            if key == "REMOTE_ADDR" {
                address.clone_from(&value);
            }
            variables.push((key.into(), value));
        }
    }
    // RFC 3875 section 4.1.9 allows the address instead of the name.
    variables.push(("REMOTE_HOST".into(), address));
    Ok(())
}

fn is_passed_on(key: &str) -> bool {
    match key.strip_prefix("HTTP_") {
        // Other characters are legal in field names, but special in a shell.
        Some(name) => name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !WITHHELD.contains(&key),
        None => PASSED_ON.contains(&key),
    }
}

/// The bytes of a WSGI "native string", which is Latin-1 (PEP 3333).
fn encode(key: &str, value: &Bound<'_, PyAny>) -> PyResult<OsString> {
    let bytes = encode_latin1(value.cast::<PyString>()?.to_str()?)
        .ok_or_else(|| value_error(format_args!("{key} in the environ is not Latin-1")))?;
    Ok(OsString::from_vec(bytes.into_owned()))
}
