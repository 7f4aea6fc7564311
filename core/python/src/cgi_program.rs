//! A CGI program as Python sees it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use poorhttp_cgi::{Fault, Input, Limits, NotFound, Piece, find};
use poorhttp_reactor::Level;
use pyo3::exceptions::{
    PyFileNotFoundError, PyIsADirectoryError, PyNotImplementedError, PyOSError, PyPermissionError, PyRuntimeError,
    PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error_log::LogWriter;
use crate::ffi::duplicate;
use crate::meta_variables::add_request;

/// After that Python looks for signals, and whether the client is still there.
const SLICE: Duration = Duration::from_millis(100);

/// Status, fields, and the body if it is complete.
type Answer = (Option<String>, Vec<(String, String)>, Option<Py<PyBytes>>);

/// Finds the program that a path means.
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

/// The path, decoded, and the query of a local redirect.
#[pyfunction]
pub(crate) fn split_target<'py>(
    py: Python<'py>,
    target: &[u8],
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (path, query) = poorhttp_http::split_target(target).map_err(|reject| PyValueError::new_err(reject.reason))?;
    Ok((PyBytes::new(py, &path), PyBytes::new(py, query)))
}

/// The standard input of a program.
#[derive(FromPyObject)]
enum Body<'py> {
    Memory(Bound<'py, PyBytes>),
    File(i32),
}

/// Whom to tell that a program has been reaped: Python, by who has the interpreter anyway, if anybody is about to.
struct Done {
    tell: Py<PyAny>,
    /// Somebody waits for the program, and will have the interpreter in a moment.
    awaited: AtomicBool,
    /// It has been reaped, and is to be told.
    due: AtomicBool,
}

impl Done {
    /// It has been reaped.
    fn note(&self) {
        match self.awaited.load(Ordering::Acquire) {
            true => self.due.store(true, Ordering::Release),
            // When Python has ended, nobody waits.
            false => _ = Python::try_attach(|py| self.tell(py)),
        }
    }

    /// Nobody hears of an exception.
    fn tell(&self, py: Python<'_>) {
        let _ = self.tell.call0(py);
    }

    /// Does something that may reap it while others may run Python.
    fn detached<T: Send>(&self, py: Python<'_>, deed: impl Send + FnOnce() -> T) -> T {
        self.awaited.store(true, Ordering::Release);
        let done = py.detach(deed);
        self.awaited.store(false, Ordering::Release);
        if self.due.swap(false, Ordering::AcqRel) {
            self.tell(py);
        }
        done
    }
}

/// What was heard of a head.
type Heard = Result<Option<(poorhttp_cgi::Head, Option<Vec<u8>>)>, Fault>;

/// Waits for the head, for a moment.
fn hear(program: &mut poorhttp_cgi::Program) -> Heard {
    Ok(program.head(SLICE)?.map(|head| (head, program.whole())))
}

/// A CGI program that runs.
#[pyclass(frozen, module = "poorhttp._core")]
pub(crate) struct CgiProgram {
    inner: Mutex<Option<poorhttp_cgi::Program>>,
    /// What was heard when it was started, for who asks first: most programs have ended by then.
    heard: Mutex<Option<Heard>>,
    done: Arc<Done>,
}

impl CgiProgram {
    /// Does something with it while others may run Python.
    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        deed: impl Send + FnOnce(&mut poorhttp_cgi::Program) -> Result<T, Fault>,
    ) -> PyResult<T> {
        let done =
            self.done.detached(py, || self.inner.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(deed));
        match done {
            Some(done) => done.map_err(|fault| explain(&fault)),
            None => Err(PyValueError::new_err("this program was closed")),
        }
    }
}

fn explain(fault: &Fault) -> PyErr {
    match fault {
        Fault::Silent => PyTimeoutError::new_err(format!("{fault} (cgi_timeout)")),
        Fault::Late => PyTimeoutError::new_err(format!("{fault} (cgi_time_limit)")),
        _ => PyRuntimeError::new_err(fault.to_string()),
    }
}

#[pymethods]
impl CgiProgram {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "for Python, which names them")]
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
    ) -> PyResult<Self> {
        let input = match &body {
            None => Input::Nothing,
            Some(Body::Memory(octets)) => Input::Memory(octets.as_bytes()),
            Some(Body::File(fd)) => Input::File(duplicate(*fd)?),
        };
        let mut environment: Vec<_> =
            variables.into_iter().map(|(name, value)| (OsString::from_vec(name), OsString::from_vec(value))).collect();
        add_request(&mut environment, environ)?;
        let seconds =
            |time| Duration::try_from_secs_f64(time).map_err(|error| PyValueError::new_err(error.to_string()));
        let limits = Limits { silence: seconds(limits.0)?, total: limits.1.map(seconds).transpose()? };
        let error_log = Arc::clone(&error_log.get().inner);
        let report = Box::new(move |line: &str| error_log.write(Level::Error, &format!("{label}: {line}")));
        let done = Arc::new(Done { tell: done, awaited: AtomicBool::new(false), due: AtomicBool::new(false) });
        let note = Box::new({
            let done = Arc::clone(&done);
            move || done.note()
        });
        let file = Path::new(OsStr::from_bytes(file));
        // Both at once: the interpreter is given up and taken back once less.
        let started = done.detached(py, || {
            let mut program = poorhttp_cgi::Program::start(file, environment, input, limits, report, note)?;
            let heard = hear(&mut program);
            Ok((program, heard))
        });
        let (program, heard) = started.map_err(|error: io::Error| match error.raw_os_error() {
            Some(code) => PyOSError::new_err((code, error.to_string())),
            None => PyValueError::new_err(error.to_string()),
        })?;
        Ok(CgiProgram { inner: Mutex::new(Some(program)), heard: Mutex::new(Some(heard)), done })
    }

    /// Waits for the head, for a moment.
    fn head(&self, py: Python<'_>) -> PyResult<Option<Answer>> {
        let first = self.heard.lock().unwrap_or_else(PoisonError::into_inner).take();
        let heard = match first {
            Some(heard) => heard.map_err(|fault| explain(&fault))?,
            None => self.detached(py, hear)?,
        };
        Ok(heard.map(|(head, whole)| (head.status, head.fields, whole.map(|body| PyBytes::new(py, &body).unbind()))))
    }

    /// Waits for the next piece of the body, for a moment.
    fn piece<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(match self.detached(py, |program| program.piece(SLICE))? {
            Piece::Content(octets) => Some(PyBytes::new(py, &octets)),
            Piece::Nothing => Some(PyBytes::new(py, b"")),
            Piece::End => None,
        })
    }

    #[getter]
    fn exit_code(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        // Nobody else waits for it, as a rule, so there is nothing to wait for.
        if let Ok(inner) = self.inner.try_lock()
            && let Some(program) = &*inner
        {
            return Ok(program.exit_code());
        }
        self.detached(py, |program| Ok(program.exit_code()))
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        if let Ok(mut inner) = self.inner.try_lock()
            && inner.as_ref().is_none_or(poorhttp_cgi::Program::has_ended)
        {
            return drop(inner.take());
        }
        py.detach(|| drop(self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
