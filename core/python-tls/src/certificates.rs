//! The certificates of a service and the contents of their files, as Python classes; keys in a sealed memfd_create(2).

use std::fmt::Display;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use poorhttp_tls::{Certificate, Pem, Settings, Version};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use rustix::fs::{FileType, MemfdFlags, Mode, SealFlags};
use rustix::fs::{fchmod, fcntl_add_seals, fstat, memfd_create};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::errors::{os_error, value_error};
use crate::ffi;

/// Contents of a service's files, as they were read; wiped when Python drops this. No key is in memory of Python.
#[pyclass(frozen, module = "poorhttp.plugins.tls._tls")]
pub(crate) struct TlsSettings {
    inner: Settings,
}

#[pymethods]
impl TlsSettings {
    #[new]
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (certificates, keys, ocsp = Vec::new(), client_ca = None, *, opener, client_auth_required = false, only_tls13 = false, session_timeout = 0, kernel = false, http2 = false))]
    fn new(
        certificates: Vec<PathBuf>,
        keys: Vec<PathBuf>,
        ocsp: Vec<PathBuf>,
        client_ca: Option<PathBuf>,
        opener: Bound<'_, PyAny>,
        client_auth_required: bool,
        only_tls13: bool,
        session_timeout: u32,
        kernel: bool,
        http2: bool,
    ) -> PyResult<Self> {
        let pem = |path: &PathBuf, most| {
            PyResult::Ok(Pem { name: path.to_string_lossy().into_owned(), bytes: read(path, most, &opener)? })
        };
        let mut ocsp = ocsp.iter();
        let pairs = certificates.iter().zip(&keys).map(|(certificate, key)| {
            let ocsp = ocsp.next().map(|path| pem(path, MOST_OCSP)).transpose()?;
            PyResult::Ok(Certificate { certificate: pem(certificate, MOST_PEM)?, key: pem(key, MOST_PEM)?, ocsp })
        });
        let inner = Settings {
            certificates: pairs.collect::<PyResult<_>>()?,
            client_ca: client_ca.as_ref().map(|path| pem(path, MOST_CA)).transpose()?,
            client_auth_required,
            min_version: if only_tls13 { Version::Tls13 } else { Version::Tls12 },
            session_timeout,
            kernel,
            http2,
        };
        Ok(TlsSettings { inner })
    }
}

#[pyclass(frozen, module = "poorhttp.plugins.tls._tls")]
pub(crate) struct TlsConfig {
    inner: Arc<poorhttp_tls::TlsConfig>,
}

type Described = (String, Vec<String>, i64, i64, String);

#[pymethods]
impl TlsConfig {
    #[new]
    fn new(settings: &TlsSettings) -> PyResult<Self> {
        Ok(TlsConfig { inner: Arc::new(poorhttp_tls::TlsConfig::new(&settings.inner).map_err(value_error)?) })
    }

    fn replace(&self, settings: &TlsSettings) -> PyResult<RawFd> {
        let fd = shared(&settings.inner).map_err(os_error)?;
        self.inner.replace(&settings.inner).map_err(value_error)?;
        Ok(fd.into_raw_fd())
    }

    #[getter]
    fn shared<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        ffi::capsule(py, &self.inner)
    }

    #[getter]
    fn certificates(&self) -> Vec<Described> {
        let describe = |info: &poorhttp_tls::Info| {
            let hex = info.fingerprint.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
            (info.file.clone(), info.names.clone(), info.not_before, info.not_after, hex)
        };
        self.inner.certificates().iter().map(describe).collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings().to_vec()
    }
}

/// Bytes of a file with certificates or a key. A chain has 10 KB; a key of RSA 8192, 6 KB.
const MOST_PEM: usize = 1 << 20;
/// Bytes of a file with issuers of clients: revocation lists of large issuers have some 10 MB.
const MOST_CA: usize = 64 << 20;
/// Bytes of an OCSP response: those of public issuers have less than 2 KB.
const MOST_OCSP: usize = 64 << 10;
/// Bytes for which there is room at least: a file may say that it has none, and have some.
const LEAST_ROOM: usize = 16 << 10;

/// Reads a regular file of at most so many bytes, which `opener` opens: it knows which links may be followed.
fn read(path: &Path, most: usize, opener: &Bound<'_, PyAny>) -> PyResult<Zeroizing<Vec<u8>>> {
    let refused = |reason: &dyn Display| value_error(format_args!("{}: cannot be read: {reason}", path.display()));
    let fd = opener.call1((path.as_os_str(),)).map_err(|error| {
        // An exception that is no error of the system has no such attribute.
        let reason = error.value(opener.py()).getattr("strerror").and_then(|text| text.extract::<String>());
        reason.map_or(error, |reason| refused(&reason))
    })?;
    let file = ffi::adopt(fd.extract()?)?;
    let found = fstat(&file).map_err(|error| refused(&reason_of(error)))?;
    if !FileType::from_raw_mode(found.st_mode).is_file() {
        return Err(refused(&"it is not a regular file"));
    }
    let too_large = || refused(&format_args!("it has more than {most} bytes, which no such file has"));
    let size = usize::try_from(found.st_size).unwrap_or(usize::MAX);
    if size > most {
        return Err(too_large());
    }
    // Not grown while a key is in it: each copy that a growing vector leaves behind would have to be wiped.
    let mut bytes = Zeroizing::new(vec![0; size.max(LEAST_ROOM).min(most) + 1]);
    let mut length = 0;
    while length < bytes.len() {
        match rustix::io::read(&file, &mut bytes[length..]) {
            Ok(0) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            Ok(more) => length += more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(refused(&reason_of(error))),
        }
    }
    Err(if length > most { too_large() } else { refused(&"it grows while it is read") })
}

/// The text of an error, without its number.
fn reason_of(error: Errno) -> String {
    let text = std::io::Error::from(error).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Memory with settings, which another process can read only if it gets the descriptor.
fn shared(settings: &Settings) -> rustix::io::Result<OwnedFd> {
    let fd = memfd_create("poorhttp-tls", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    // An application that sends any file its client names must not send this one from /proc/self/fd.
    fchmod(&fd, Mode::empty())?;
    let bytes = settings.encode();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&fd, rest)?..];
    }
    fcntl_add_seals(&fd, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(fd)
}

/// Makes a certificate for these hosts and addresses, valid around `year`; returns it and its key in PEM.
#[pyfunction]
pub(crate) fn self_signed(names: Vec<String>, year: i32) -> PyResult<(String, String)> {
    let made = poorhttp_tls::self_signed(names, year).map_err(value_error)?;
    Ok((made.certificate, made.key.to_string()))
}

/// Wipes keys of session tickets whose time is over.
#[pyfunction]
pub(crate) fn advance_tickets() {
    poorhttp_tls::advance_tickets();
}
