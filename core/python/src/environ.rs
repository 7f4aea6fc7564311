//! Builds the WSGI environ of a request (PEP 3333, RFC 3875).
//!
//! Each environ is a copy of its listener's base environ, with the values that differ set. The keys made from header names are
//! cached, but not interned: some versions of Python never free interned strings, so clients could fill the memory with names.

use std::cell::RefCell;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::thread::LocalKey;

use poorhttp_http::{AddressText, Field, Gateway, Head, Origin, Scheme, TrustedProxies, Version};
use poorhttp_reactor::{Body, BodyFile, Exchange, Request, RequestId};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rustc_hash::FxHashMap;

use crate::body_inputs::spooled;
use crate::ffi::{bytes, latin1};

/// Makes the environs of a reactor's requests.
pub(crate) struct Environs {
    /// The base environ of each listener.
    pub(crate) bases: Vec<Py<PyDict>>,
    bytes_io: Py<PyAny>,
}

/// Keeps the file of a body as long as its `wsgi.input` exists.
#[pyclass(frozen, module = "poorhttp._core")]
struct OpenBody(#[expect(dead_code, reason = "kept alive only")] BodyFile);

impl Environs {
    /// Takes the base environs. `has_ids`: requests have ids.
    pub(crate) fn new(py: Python<'_>, bases: Vec<Py<PyDict>>, has_ids: bool) -> PyResult<Self> {
        if has_ids {
            // Their key is there already, as copies would have to grow for it.
            bases.iter().try_for_each(|base| set_id(base.bind(py), PyString::new(py, "")))?;
        }
        Ok(Environs { bases, bytes_io: py.import(intern!(py, "io"))?.getattr("BytesIO")?.unbind() })
    }

    pub(crate) fn build<'py>(&self, py: Python<'py>, exchange: &mut Exchange) -> PyResult<Bound<'py, PyDict>> {
        if let Some(made) = exchange.cached::<Py<PyDict>>() {
            return made.bind(py).copy();
        }
        let request = exchange.request();
        let environ = match self.bases.get(request.map_or(0, Request::listener) as usize) {
            Some(base) => base.bind(py).copy()?,
            None => PyDict::new(py),
        };
        if let Some((head, bytes)) = exchange.head() {
            set_request_line(&environ, head, bytes)?;
            set_fields(&environ, head, bytes, exchange.field_filter())?;
            if let Some(gateway) = &head.gateway {
                set_variables(&environ, gateway, bytes)?;
            }
        }
        if let Some(origin) = request.and_then(Request::origin) {
            set_origin(&environ, origin)?;
        }
        if let Some((address, port)) = request.and_then(Request::client) {
            set_client(&environ, address, port)?;
        }
        for (name, value) in exchange.tls_variables() {
            environ.set_item(variable_key(py, name.as_bytes()), native(py, value.as_bytes()))?;
        }
        let chunked = !exchange.is_streamed() && exchange.head().is_some_and(|(head, _)| head.is_chunked());
        let body = exchange.take_body();
        if chunked {
            // Frameworks only read Content-Length; the whole body was received, so its length is known.
            environ.set_item(intern!(py, "CONTENT_LENGTH"), decimal(py, body.length()))?;
        }
        let input = match body {
            Body::Empty => {
                exchange.cache(|| environ.copy().ok().map(Bound::unbind));
                return Ok(environ);
            }
            Body::Memory(content) => self.bytes_io.call1(py, (bytes(py, &content)?,))?,
            Body::File(file, length) => {
                let fd = file.file().map_or(-1, AsRawFd::as_raw_fd);
                spooled(py)?.call1((fd, length, Py::new(py, OpenBody(file))?))?.unbind()
            }
        };
        environ.set_item(intern!(py, "wsgi.input"), input)?;
        Ok(environ)
    }
}

/// Sets the id of the request, if it has one: in the place of what a client that is not trusted has sent.
#[inline]
pub(crate) fn set_request_id(environ: &Bound<'_, PyDict>, id: &RequestId<'_>) -> PyResult<()> {
    set_id(environ, latin1(environ.py(), id.as_bytes())?)
}

#[inline(never)]
fn set_id(environ: &Bound<'_, PyDict>, id: Bound<'_, PyString>) -> PyResult<()> {
    let py = environ.py();
    environ.set_item(intern!(py, "HTTP_X_REQUEST_ID"), id)
}

/// Sets the values that differ from the base environ, which is for `GET / HTTP/1.1`.
#[inline]
fn set_request_line(environ: &Bound<'_, PyDict>, head: &Head, bytes: &[u8]) -> PyResult<()> {
    let py = environ.py();
    match head.method.of(bytes) {
        b"GET" => {}
        b"POST" => environ.set_item(intern!(py, "REQUEST_METHOD"), intern!(py, "POST"))?,
        b"HEAD" => environ.set_item(intern!(py, "REQUEST_METHOD"), intern!(py, "HEAD"))?,
        method => environ.set_item(intern!(py, "REQUEST_METHOD"), native(py, method))?,
    }
    match head.version {
        Version::Http11 => {}
        Version::Http10 => environ.set_item(intern!(py, "SERVER_PROTOCOL"), intern!(py, "HTTP/1.0"))?,
        Version::Http2 => environ.set_item(intern!(py, "SERVER_PROTOCOL"), intern!(py, "HTTP/2"))?,
    }
    let (target, query) = (head.target.of(bytes), head.query().of(bytes));
    if !query.is_empty() {
        environ.set_item(intern!(py, "QUERY_STRING"), native(py, query))?;
    }
    if target == b"/" && head.gateway.is_none() {
        return Ok(());
    }
    let raw = native(py, target);
    let decoded = match head.decoded_path(bytes) {
        // A gateway's path may be empty (SCRIPT_NAME is the whole path).
        path if path.is_empty() && head.gateway.is_some() => native(py, b""),
        path if path.is_empty() => intern!(py, "/").clone(),
        path if *path == *target => raw.clone(),
        path => native(py, &path),
    };
    environ.set_item(intern!(py, "PATH_INFO"), decoded)?;
    environ.set_item(intern!(py, "REQUEST_URI"), &raw)?;
    environ.set_item(intern!(py, "RAW_URI"), raw)
}

#[inline]
fn set_fields(
    environ: &Bound<'_, PyDict>,
    head: &Head,
    bytes: &[u8],
    field_filter: Option<(&TrustedProxies, bool)>,
) -> PyResult<()> {
    let py = environ.py();
    for field in &head.fields {
        if let Some((trust, trusted)) = field_filter
            && trust.withholds(field.name.of(bytes), trusted)
        {
            continue;
        }
        let Some(key) = field_key(py, field.name.of(bytes)) else { continue };
        let length = environ.len();
        environ.set_item(&key, native(py, field.value.of(bytes)))?;
        if environ.len() == length {
            // The key existed: an earlier field of the same name was overwritten.
            environ.set_item(&key, join(py, head, bytes, field))?;
        }
    }
    let authority = head.authority().of(bytes);
    if !authority.is_empty() {
        environ.set_item(intern!(py, "HTTP_HOST"), native(py, authority))?;
    }
    Ok(())
}

/// Sets the variables of a gateway protocol.
fn set_variables(environ: &Bound<'_, PyDict>, gateway: &Gateway, bytes: &[u8]) -> PyResult<()> {
    let py = environ.py();
    for variable in &gateway.variables {
        environ.set_item(variable_key(py, variable.name.of(bytes)), native(py, variable.value.of(bytes)))?;
    }
    if gateway.secure {
        environ.set_item(intern!(py, "wsgi.url_scheme"), intern!(py, "https"))?;
        environ.set_item(intern!(py, "HTTPS"), intern!(py, "on"))?;
    }
    Ok(())
}

/// Sets the values that trusted proxies report, except for the client address.
#[inline]
fn set_origin(environ: &Bound<'_, PyDict>, origin: &Origin) -> PyResult<()> {
    let py = environ.py();
    match origin.scheme {
        Some(Scheme::Https) => {
            environ.set_item(intern!(py, "wsgi.url_scheme"), intern!(py, "https"))?;
            environ.set_item(intern!(py, "HTTPS"), intern!(py, "on"))?;
        }
        Some(Scheme::Http) => {
            // A gateway behind the proxies may have set HTTPS for its own connection.
            environ.set_item(intern!(py, "wsgi.url_scheme"), intern!(py, "http"))?;
            if environ.contains(intern!(py, "HTTPS"))? {
                environ.del_item(intern!(py, "HTTPS"))?;
            }
        }
        None => {}
    }
    if !origin.authority.is_empty() {
        environ.set_item(intern!(py, "HTTP_HOST"), native(py, &origin.authority))?;
    }
    if let Some(host) = origin.host() {
        environ.set_item(intern!(py, "SERVER_NAME"), native(py, host))?;
    }
    match origin.port {
        Some(443) => environ.set_item(intern!(py, "SERVER_PORT"), intern!(py, "443"))?,
        Some(80) => environ.set_item(intern!(py, "SERVER_PORT"), intern!(py, "80"))?,
        Some(port) => environ.set_item(intern!(py, "SERVER_PORT"), decimal(py, port))?,
        None => {}
    }
    if !origin.prefix.is_empty() {
        let ours = environ.get_item(intern!(py, "SCRIPT_NAME"))?;
        let prefix = native(py, &origin.prefix);
        match ours {
            // The gateway's own SCRIPT_NAME is below the proxies' prefix.
            Some(ours) => environ.set_item(intern!(py, "SCRIPT_NAME"), prefix.add(ours)?)?,
            None => environ.set_item(intern!(py, "SCRIPT_NAME"), prefix)?,
        }
    }
    Ok(())
}

/// The values of all fields with the name of `field`, up to this one (RFC 9110 section 5.3; RFC 6265 for cookies).
#[cold]
fn join<'py>(py: Python<'py>, head: &Head, bytes: &[u8], field: &Field) -> Bound<'py, PyString> {
    let name = field.name.of(bytes);
    let separator: &[u8] = if name.eq_ignore_ascii_case(b"cookie") { b"; " } else { b", " };
    let until = head.fields.iter().position(|other| other == field).unwrap_or(0);
    let mut values: Vec<&[u8]> = head.fields[..=until]
        .iter()
        .filter(|other| other.name.of(bytes).eq_ignore_ascii_case(name))
        .map(|other| other.value.of(bytes))
        .collect();
    if name.eq_ignore_ascii_case(b"content-type") {
        // Content-Type is not a list: repeated equal values count once.
        values.dedup();
    }
    native(py, &values.join(separator))
}

/// A WSGI "native string": bytes decoded as Latin-1.
#[inline]
fn native<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    match PyString::from_bytes(py, bytes) {
        Ok(text) if bytes.is_ascii() => text,
        _ => PyString::new(py, &bytes.iter().copied().map(char::from).collect::<String>()),
    }
}

#[inline]
fn set_client(environ: &Bound<'_, PyDict>, address: IpAddr, port: Option<u16>) -> PyResult<()> {
    thread_local! {
        /// Behind a proxy, most requests have the same address.
        static LAST: RefCell<Option<(IpAddr, Py<PyString>)>> = const { RefCell::new(None) };
    }
    let py = environ.py();
    let known = LAST.with_borrow(|last| match last {
        Some((last, text)) if *last == address => Some(text.clone_ref(py)),
        _ => None,
    });
    let text = known.unwrap_or_else(|| {
        let text = native(py, &AddressText::of(address)).unbind();
        LAST.replace(Some((address, text.clone_ref(py))));
        text
    });
    environ.set_item(intern!(py, "REMOTE_ADDR"), text)?;
    match port {
        Some(port) => environ.set_item(intern!(py, "REMOTE_PORT"), decimal(py, port)),
        None => Ok(()),
    }
}

fn decimal(py: Python<'_>, number: impl itoa::Integer) -> Bound<'_, PyString> {
    PyString::new(py, itoa::Buffer::new().format(number))
}

/// A thread's cache of environ keys by name as sent. It is cleared when full, which removes rare names.
pub(crate) type Keys<K> = RefCell<FxHashMap<Box<[u8]>, K>>;

/// Number of cached names.
const MOST_KEYS: usize = 256;
/// Bytes of the longest cached name.
const LONGEST_KEY: usize = 64;

/// The cached key for a name, made if necessary.
#[inline]
pub(crate) fn cached<K>(
    keys: &'static LocalKey<Keys<K>>,
    name: &[u8],
    copy: impl Fn(&K) -> K,
    make: impl FnOnce() -> K,
) -> K {
    if let Some(key) = keys.with_borrow(|keys| keys.get(name).map(&copy)) {
        return key;
    }
    let key = make();
    if name.len() <= LONGEST_KEY {
        keys.with_borrow_mut(|keys| {
            if keys.len() == MOST_KEYS {
                keys.clear();
            }
            keys.insert(name.into(), copy(&key));
        });
    }
    key
}

/// The key for a variable of a gateway protocol.
fn variable_key(py: Python<'_>, name: &[u8]) -> Py<PyString> {
    thread_local! {
        static KEYS: Keys<Py<PyString>> = RefCell::default();
    }
    cached(&KEYS, name, |key| key.clone_ref(py), || native(py, name).unbind())
}

/// The key for a header field. `None`: it is not passed on.
#[inline]
fn field_key(py: Python<'_>, name: &[u8]) -> Option<Py<PyString>> {
    thread_local! {
        static KEYS: Keys<Option<Py<PyString>>> = RefCell::default();
    }
    let copy = |key: &Option<Py<PyString>>| key.as_ref().map(|key| key.clone_ref(py));
    cached(&KEYS, name, copy, || make_field_key(py, name))
}

fn make_field_key(py: Python<'_>, name: &[u8]) -> Option<Py<PyString>> {
    // `X_A` and `X-A` have the same key, and a proxy may have set or removed only the latter.
    if name.contains(&b'_') {
        return None;
    }
    let upper: String =
        name.iter().map(|&byte| if byte == b'-' { '_' } else { char::from(byte.to_ascii_uppercase()) }).collect();
    let key = match upper.as_str() {
        "CONTENT_TYPE" | "CONTENT_LENGTH" => upper,
        // The body is decoded already. Programs take HTTP_PROXY for their proxy (CVE-2016-5385).
        "TRANSFER_ENCODING" | "PROXY" => return None,
        _ => format!("HTTP_{upper}"),
    };
    Some(PyString::new(py, &key).unbind())
}
