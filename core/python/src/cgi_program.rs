//! A CGI program, as a Python class.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use poorhttp_cgi::{Fault, Input, Limits, NotFound, Piece, find};
use poorhttp_http::reason_phrase;
use poorhttp_reactor::{Level, Message};
use pyo3::exceptions::{
    PyFileNotFoundError, PyIsADirectoryError, PyNotImplementedError, PyPermissionError, PyRuntimeError, PyTimeoutError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error_log::LogWriter;
use crate::errors::{os_error, value_error};
use crate::ffi::duplicate;
use crate::lock;
use crate::meta_variables::add_request;
use crate::request_name::RequestName;

/// Time after which Python checks for signals and disconnected clients.
const SLICE: Duration = Duration::from_millis(100);

/// Status, fields, and the whole body if the program has ended.
type Answer = (Option<String>, Vec<(String, String)>, Option<Py<PyBytes>>);

/// Finds the program of a path.
#[pyfunction]
pub(crate) fn find_program<'py>(
    py: Python<'py>,
    folder: &[u8],
    path: &[u8],
) -> PyResult<(Bound<'py, PyBytes>, Option<usize>)> {
    let bytes = |file: PathBuf| PyBytes::new(py, file.as_os_str().as_bytes());
    match py.detach(|| find(Path::new(OsStr::from_bytes(folder)), path)) {
        Ok(found) => Ok((bytes(found.file), found.named_by)),
        Err(NotFound::Slashless) => Err(PyIsADirectoryError::new_err(())),
        Err(NotFound::Missing) => Err(PyFileNotFoundError::new_err(())),
        Err(NotFound::Outside(file)) => Err(PyFileNotFoundError::new_err((bytes(file).unbind(),))),
        Err(NotFound::NotExecutable(file)) => Err(PyPermissionError::new_err((bytes(file).unbind(),))),
        Err(NotFound::NonParsed(file)) => Err(PyNotImplementedError::new_err((bytes(file).unbind(),))),
    }
}

/// The decoded path and the query of a local redirect.
#[pyfunction]
pub(crate) fn split_target<'py>(
    py: Python<'py>,
    target: &[u8],
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (path, query) = poorhttp_http::split_target(target).map_err(|reject| value_error(reject.reason))?;
    Ok((PyBytes::new(py, &path), PyBytes::new(py, query)))
}

/// Standard input of a program: bytes or a descriptor.
#[derive(FromPyObject)]
enum Body<'py> {
    Memory(Bound<'py, PyBytes>),
    File(i32),
}

/// Calls Python after a program was reaped; if a thread waits for the program, then in that thread, which takes the
/// interpreter back anyway.
struct Done {
    callback: Py<PyAny>,
    /// Whether a thread waits for the program.
    awaited: AtomicBool,
    /// Whether that thread has to call `callback`.
    due: AtomicBool,
}

impl Done {
    /// The program was reaped.
    fn on_reaped(&self) {
        match self.awaited.load(Ordering::Acquire) {
            true => self.due.store(true, Ordering::Release),
            false => _ = Python::try_attach(|py| self.call(py)),
        }
    }

    /// Ignores exceptions.
    fn call(&self, py: Python<'_>) {
        let _ = self.callback.call0(py);
    }

    /// Does `work`, which may reap the program, with the interpreter released.
    fn detached<T: Send>(&self, py: Python<'_>, work: impl Send + FnOnce() -> T) -> T {
        self.awaited.store(true, Ordering::Release);
        let done = py.detach(work);
        self.awaited.store(false, Ordering::Release);
        if self.due.swap(false, Ordering::AcqRel) {
            self.call(py);
        }
        done
    }
}

/// A head, and the whole body if the program has ended.
type HeadResult = Result<Option<(poorhttp_cgi::Head, Option<Vec<u8>>)>, Fault>;

/// Waits up to [`SLICE`] for the head.
fn read_head(program: &mut poorhttp_cgi::Program) -> HeadResult {
    Ok(program.head(SLICE)?.map(|head| (head, program.whole())))
}

/// A running CGI program.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct CgiProgram {
    inner: Mutex<Option<poorhttp_cgi::Program>>,
    /// Head read while it was started, for the first call of `head`.
    first_head: Mutex<Option<HeadResult>>,
    done: Arc<Done>,
}

impl CgiProgram {
    /// Does `work` with the program and the interpreter released.
    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Send + FnOnce(&mut poorhttp_cgi::Program) -> Result<T, Fault>,
    ) -> PyResult<T> {
        let done = self.done.detached(py, || lock(&self.inner).as_mut().map(work));
        done.ok_or_else(|| value_error("this program was closed"))?.map_err(explain)
    }
}

/// The status with its reason phrase, if the program has written the code alone, as RFC 3875 section 6.3.3 allows.
fn with_reason(status: String) -> String {
    let phrase = Some(&status).filter(|status| status.len() == 3).and_then(|code| reason_phrase(code.parse().ok()?));
    phrase.map(|phrase| format!("{status} {phrase}")).unwrap_or(status)
}

fn explain(fault: Fault) -> PyErr {
    match fault {
        Fault::Silent => PyTimeoutError::new_err(format!("{fault} (cgi_timeout)")),
        Fault::Late => PyTimeoutError::new_err(format!("{fault} (cgi_time_limit)")),
        _ => PyRuntimeError::new_err(fault.to_string()),
    }
}

#[pymethods]
impl CgiProgram {
    #[new]
    #[pyo3(signature = (file, variables, environ, body, limits, error_log, label, done, request = None))]
    #[expect(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn new(
        py: Python<'_>,
        file: &[u8],
        variables: Vec<(Vec<u8>, Vec<u8>)>,
        environ: &Bound<'_, PyDict>,
        body: Option<Body<'_>>,
        limits: (f64, Option<f64>),
        error_log: &Bound<'_, LogWriter>,
        label: String,
        done: Py<PyAny>,
        request: Option<Bound<'_, RequestName>>,
    ) -> PyResult<Self> {
        let input = match &body {
            None => Input::Nothing,
            Some(Body::Memory(bytes)) => Input::Memory(bytes.as_bytes()),
            Some(Body::File(fd)) => Input::File(duplicate(*fd)?),
        };
        let mut environment: Vec<_> =
            variables.into_iter().map(|(name, value)| (OsString::from_vec(name), OsString::from_vec(value))).collect();
        add_request(&mut environment, environ)?;
        let seconds = |time| Duration::try_from_secs_f64(time).map_err(value_error);
        let limits = Limits { silence: seconds(limits.0)?, total: limits.1.map(seconds).transpose()? };
        let error_log = Arc::clone(&error_log.get().inner);
        let request = request.map(|request| request.get().0.clone());
        let report = Box::new(move |line: &str| {
            let text = format!("{label}: {line}");
            let request = request.as_ref();
            error_log.write_message(&Message { level: Level::Error, text: &text, request, ..Message::default() });
        });
        let done = Arc::new(Done { callback: done, awaited: AtomicBool::new(false), due: AtomicBool::new(false) });
        let on_reaped = Box::new({
            let done = Arc::clone(&done);
            move || done.on_reaped()
        });
        let file = Path::new(OsStr::from_bytes(file));
        // Starts it and reads its head in one go, to release the interpreter only once.
        let started = done.detached(py, || {
            let mut program = poorhttp_cgi::Program::start(file, environment, input, limits, report, on_reaped)?;
            let first_head = read_head(&mut program);
            Ok((program, first_head))
        });
        let (program, first_head) = started.map_err(|error: std::io::Error| match error.raw_os_error() {
            Some(_) => os_error(error),
            None => value_error(error),
        })?;
        Ok(CgiProgram { inner: Mutex::new(Some(program)), first_head: Mutex::new(Some(first_head)), done })
    }

    /// Waits up to [`SLICE`] for the head.
    fn head(&self, py: Python<'_>) -> PyResult<Option<Answer>> {
        let first = lock(&self.first_head).take();
        let head = first.map_or_else(|| self.detached(py, read_head), |head| head.map_err(explain))?;
        Ok(head.map(|(head, whole)| {
            let status = head.status.map(with_reason);
            (status, head.fields, whole.map(|body| PyBytes::new(py, &body).unbind()))
        }))
    }

    /// Waits up to [`SLICE`] for the next piece of the body.
    fn piece<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(match self.detached(py, |program| program.piece(SLICE))? {
            Piece::Content(bytes) => Some(PyBytes::new(py, &bytes)),
            Piece::Nothing => Some(PyBytes::new(py, b"")),
            Piece::End => None,
        })
    }

    #[getter]
    fn exit_code(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        // The lock is normally free.
        if let Ok(inner) = self.inner.try_lock()
            && let Some(program) = &*inner
        {
            return Ok(program.exit_code());
        }
        self.detached(py, |program| Ok(program.exit_code()))
    }

    fn close(&self, py: Python<'_>) {
        if let Ok(mut inner) = self.inner.try_lock()
            && inner.as_ref().is_none_or(poorhttp_cgi::Program::has_ended)
        {
            return drop(inner.take());
        }
        py.detach(|| drop(lock(&self.inner).take()));
    }
}
