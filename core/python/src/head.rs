//! What a scope of ASGI is made of: the head of a request, with what trusted proxies report (for WSGI: `environ.rs`).

use poorhttp_http::{AddressText, Head, Origin, Scheme, Version};
use poorhttp_reactor::Exchange;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::environ::{Keys, cached};
use crate::ffi::bytes;

/// Makes what `Request.take_head` returns, which `_core.pyi` lists; `bases` are the base environs of the listeners.
pub(crate) fn make<'py>(
    py: Python<'py>,
    exchange: &mut Exchange,
    bases: &[Py<PyDict>],
) -> PyResult<Bound<'py, PyTuple>> {
    if let Some(made) = exchange.cached::<Py<PyTuple>>() {
        return Ok(made.bind(py).clone());
    }
    let id = exchange.request_id().map(|id| id.as_bytes().to_vec());
    let made = from(py, exchange, bases, id.as_deref())?;
    if id.is_none() {
        exchange.cache(|| Some(made.clone().unbind()));
    }
    Ok(made)
}

fn from<'py>(
    py: Python<'py>,
    exchange: &Exchange,
    bases: &[Py<PyDict>],
    id: Option<&[u8]>,
) -> PyResult<Bound<'py, PyTuple>> {
    let over = || PyRuntimeError::new_err("this request has been answered already");
    let (head, content) = exchange.head().ok_or_else(over)?;
    let request = exchange.request().ok_or_else(over)?;
    let origin = request.origin();
    let base = bases.get(request.listener() as usize).map(|base| base.bind(py));
    let of_base = |key| base.and_then(|base| base.get_item(key).ok().flatten());
    let method = match head.method.of(content) {
        b"GET" => intern!(py, "GET").clone(),
        b"POST" => intern!(py, "POST").clone(),
        method => PyString::new(py, &String::from_utf8_lossy(method)),
    };
    let version = match head.version {
        Version::Http10 => intern!(py, "1.0"),
        Version::Http11 => intern!(py, "1.1"),
        Version::Http2 => intern!(py, "2"),
    };
    let is_https = match origin.and_then(|origin| origin.scheme) {
        Some(scheme) => scheme == Scheme::Https,
        None => {
            head.gateway.as_ref().is_some_and(|gateway| gateway.secure)
                || of_base("wsgi.url_scheme").is_some_and(|scheme| scheme.eq("https").unwrap_or(false))
        }
    };
    let scheme = match (exchange.offers_websocket(), is_https) {
        (false, false) => intern!(py, "http"),
        (false, true) => intern!(py, "https"),
        (true, false) => intern!(py, "ws"),
        (true, true) => intern!(py, "wss"),
    };
    let mut prefix = origin.map_or_else(Vec::new, |origin| origin.prefix.clone());
    prefix.extend_from_slice(head.script(content));
    let (decoded, raw) = (head.decoded_path(content), head.path().of(content));
    let or_root = |path: &'_ [u8]| if path.is_empty() && prefix.is_empty() { b"/".to_vec() } else { path.to_vec() };
    let path = [&prefix[..], &or_root(&decoded)].concat();
    let fields = fields(py, exchange, (head, content), origin, id)?;
    let client = match request.client() {
        Some((address, port)) => {
            let text = AddressText::of(address);
            Some((PyString::new(py, &String::from_utf8_lossy(&text)), port.unwrap_or_default()))
        }
        None => None,
    };
    let port = of_base("SERVER_PORT").and_then(|port| port.extract::<String>().ok()?.parse::<u16>().ok());
    let name = match origin.and_then(Origin::host) {
        Some(host) => Some(PyString::new(py, &String::from_utf8_lossy(host)).into_any()),
        None => of_base("SERVER_NAME"),
    };
    let server = (name, origin.and_then(|origin| origin.port).or(port));
    let variables = exchange.tls_variables().iter().map(|(name, value)| (&**name, &**value));
    let tls = variables.clone().next().map(|_| PyTuple::new(py, variables)).transpose()?;
    let texts = (&method, version, scheme, PyString::new(py, &String::from_utf8_lossy(&path)));
    (
        texts.0,
        texts.1,
        texts.2,
        texts.3,
        bytes(py, &or_root(raw))?,
        bytes(py, head.query().of(content))?,
        PyString::new(py, &String::from_utf8_lossy(&prefix)),
        fields,
        client,
        server,
        tls,
    )
        .into_pyobject(py)
}

/// The header fields: names in lower case, in the order in which they were sent.
fn fields<'py>(
    py: Python<'py>,
    exchange: &Exchange,
    (head, content): (&Head, &[u8]),
    origin: Option<&Origin>,
    id: Option<&[u8]>,
) -> PyResult<Bound<'py, PyTuple>> {
    let filter = exchange.field_filter();
    let mut pairs = Vec::with_capacity(head.fields.len() + 1);
    let mut add = |name: &Bound<'py, PyBytes>, value: &[u8]| -> PyResult<()> {
        pairs.push((name, bytes(py, value)?).into_pyobject(py)?);
        Ok(())
    };
    // What a trusted proxy reports, or the target itself, takes the place of the field.
    let authority = match origin.map(|origin| &origin.authority[..]) {
        Some(authority) if !authority.is_empty() => authority,
        _ => head.authority().of(content),
    };
    if !authority.is_empty() {
        add(&PyBytes::new(py, b"host"), authority)?;
    }
    let mut cookies: Vec<&[u8]> = Vec::new();
    for field in &head.fields {
        let (name, value) = (field.name.of(content), field.value.of(content));
        if filter.is_some_and(|(trust, trusted)| trust.withholds(name, trusted)) {
            continue;
        }
        let Some(name) = field_name(py, name) else { continue };
        match name.bind(py).as_bytes() {
            b"host" if !authority.is_empty() => {}
            b"x-request-id" if id.is_some() => {}
            b"cookie" => cookies.push(value),
            _ => add(name.bind(py), value)?,
        }
    }
    if !cookies.is_empty() {
        // HTTP/2 may have split it (RFC 9113 section 8.2.3).
        add(&PyBytes::new(py, b"cookie"), &cookies.join(&b"; "[..]))?;
    }
    if let Some(id) = id {
        add(&PyBytes::new(py, b"x-request-id"), id)?;
    }
    PyTuple::new(py, pairs)
}

/// The name of a header field in lower case. `None`: it is not passed on, as in WSGI.
fn field_name(py: Python<'_>, name: &[u8]) -> Option<Py<PyBytes>> {
    thread_local! {
        static NAMES: Keys<Option<Py<PyBytes>>> = Keys::default();
    }
    let copy = |name: &Option<Py<PyBytes>>| name.as_ref().map(|name| name.clone_ref(py));
    cached(&NAMES, name, copy, || {
        // Frameworks make `X_A` and `X-A` the same key, and a proxy may have set or removed only the latter.
        let is_passed_on = !name.contains(&b'_') && !name.eq_ignore_ascii_case(b"proxy");
        is_passed_on.then(|| PyBytes::new(py, &name.to_ascii_lowercase()).unbind())
    })
}
