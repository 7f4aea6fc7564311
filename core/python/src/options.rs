//! The options of a reactor as Python gives them, one object `WorkerOptions`: its fields, and their types.
//!
//! `poorhttp/worker/options.py` declares the same fields for Python. A field that one side does not have, or that has another
//! type, is a TypeError that names it.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::path::PathBuf;

use poorhttp_files::Options as StaticOptions;
use poorhttp_reactor::Settings;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyTuple};

use crate::error_log::LogWriter;
use crate::sink::Sink;
use crate::worker_status::{SharedStatuses, WorkerStatus};

/// A type of fields.
trait FieldType: Sized {
    /// As Python annotates it.
    fn annotation() -> String;

    /// Reads a value. The error is a text: which value should be what.
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String>;
}

/// The fields of a class of Python, which a struct has too.
trait Fields: Sized {
    /// Name and annotation of each.
    fn annotations() -> Vec<(&'static str, String)>;

    /// Reads all of them. The error is a text as of [`FieldType::read`].
    fn read(object: &Bound<'_, PyAny>) -> Result<Self, String>;
}

/// Any object of Python, whose type a plug-in knows.
pub(crate) struct Object(pub(crate) Py<PyAny>);

/// A function of Python.
pub(crate) struct Callable(pub(crate) Py<PyAny>);

/// Host, path prefix, folder (`None`: the application answers) and options of the host.
pub(crate) type Route = (String, String, Option<PathBuf>, StaticOptions);

/// Implements `Fields` for a struct whose rows are field, name in Python, and type.
macro_rules! implement_fields {
    ($struct:ident { $($field:ident $name:ident: $type:ty,)* } $($defaults:tt)*) => {
        impl Fields for $struct {
            fn annotations() -> Vec<(&'static str, String)> {
                vec![$((stringify!($name), <$type as FieldType>::annotation()),)*]
            }

            fn read(object: &Bound<'_, PyAny>) -> Result<Self, String> {
                Ok($struct { $($field: field(object, stringify!($name))?,)* $($defaults)* })
            }
        }
    };
}

macro_rules! settings_fields {
    ($($(#[$text:meta])* $name:ident: $type:ty,)*) => { implement_fields! { Settings { $($name $name: $type,)* } } };
}

macro_rules! static_fields {
    ($($(#[$text:meta])* $field:ident $name:ident: $type:ty,)*) => {
        implement_fields! { StaticOptions { $($field $name: $type,)* } ..StaticOptions::default() }
    };
}

/// Declares a struct, and implements `Fields` for it.
macro_rules! declare {
    ($(#[$about:meta])* $struct:ident { $($(#[$text:meta])* $name:ident: $type:ty,)* }) => {
        $(#[$about])*
        pub(crate) struct $struct {
            $($(#[$text])* pub(crate) $name: $type,)*
        }
        implement_fields! { $struct { $($name $name: $type,)* } }
    };
}

poorhttp_reactor::with_settings!(settings_fields);
poorhttp_files::with_static_options!(static_fields);

declare! {
    /// What a reactor gets besides the options of the configuration. The class of Python says what each is.
    Given {
        error_log: Py<LogWriter>,
        access_log: Option<(Py<Sink>, String)>,
        temp_dir: PathBuf,
        accept_balance: Option<(Py<SharedStatuses>, usize)>,
        worker_status: Option<Py<WorkerStatus>>,
        takes_times: bool,
        new_event: Option<Callable>,
        external_loop: bool,
        multithread: bool,
        raw_tcp: bool,
        channel: Option<RawFd>,
        fd_handoff: Option<(RawFd, RawFd, u32)>,
        recycle_after: u64,
        interrupter: Option<Object>,
        refork: Option<(u64, Callable)>,
        offer_upgrade: Option<Callable>,
        replace_thread: Option<Callable>,
        reopen_logs: Option<Callable>,
        note_stop: Option<Callable>,
        end_line: Option<Callable>,
        routes: Vec<Route>,
        static_files: StaticOptions,
        streamed_bodies: Vec<(String, String, bool)>,
        live_reload: Option<(String, String)>,
        tls: Option<Object>,
        https_redirect: Option<u16>,
        hsts: Option<String>,
        compression: Option<Object>,
        request_context: Option<Object>,
    }
}

/// All that a reactor gets.
pub(crate) struct WorkerOptions {
    /// The options of the configuration.
    pub(crate) settings: Settings,
    pub(crate) given: Given,
}

impl Fields for WorkerOptions {
    fn annotations() -> Vec<(&'static str, String)> {
        [Settings::annotations(), Given::annotations()].concat()
    }

    fn read(object: &Bound<'_, PyAny>) -> Result<Self, String> {
        Ok(WorkerOptions { settings: Settings::read(object)?, given: Given::read(object)? })
    }
}

impl WorkerOptions {
    /// Reads an object of the class of Python.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        read_all(object).map_err(|wrong| PyTypeError::new_err(format!("WorkerOptions.{wrong}")))
    }
}

/// The fields of the classes `WorkerOptions` and `StaticOptions` that the reactor reads, each with its annotation.
#[pyfunction]
pub(crate) fn option_fields() -> BTreeMap<&'static str, Vec<(&'static str, String)>> {
    [("WorkerOptions", WorkerOptions::annotations()), ("StaticOptions", StaticOptions::annotations())].into()
}

/// Reads all fields of an object, which has no others.
fn read_all<T: Fields>(object: &Bound<'_, PyAny>) -> Result<T, String> {
    let read = T::read(object)?;
    let known = T::annotations();
    let has = object.getattr("__dict__").and_then(|fields| Ok(fields.cast_into::<PyDict>()?));
    for name in has.iter().flat_map(|fields| fields.keys()) {
        if !known.iter().any(|(known, _)| name.to_string() == *known) {
            return Err(format!("{name}: the reactor has no such field; core/python/src/options.rs lists them"));
        }
    }
    Ok(read)
}

/// Reads a field of an object.
fn field<T: FieldType>(object: &Bound<'_, PyAny>, name: &str) -> Result<T, String> {
    let annotation = T::annotation();
    let value = object.getattr(name).map_err(|error| match error.is_instance_of::<PyAttributeError>(object.py()) {
        true => format!("{name}: the field is missing; it should be {annotation}"),
        false => format!("{name}: {error}"),
    })?;
    T::read(&value).map_err(|wrong| match wrong.ends_with(&annotation) {
        true => format!("{name}: {wrong}"),
        false => format!("{name}: {wrong}; all of it should be {annotation}"),
    })
}

/// Says that a value should be something else.
fn should_be(value: &Bound<'_, PyAny>, what: &str) -> String {
    let shown = value.repr().map_or_else(|_| String::from("a value"), |text| text.to_string());
    let class = value.get_type().name().map_or_else(|_| String::new(), |name| format!(" ({name})"));
    format!("{shown}{class} should be {what}")
}

/// Types that are read as PyO3 reads them.
macro_rules! plain_types {
    ($($type:ty: $annotation:literal,)*) => {
        $(impl FieldType for $type {
            fn annotation() -> String {
                $annotation.into()
            }

            fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
                value.extract().map_err(|_| should_be(value, $annotation))
            }
        })*
    };
}

plain_types! {
    bool: "bool",
    String: "str",
    PathBuf: "str",
    Py<LogWriter>: "LogWriter",
    Py<Sink>: "Sink",
    Py<SharedStatuses>: "SharedStatuses",
    Py<WorkerStatus>: "WorkerStatus",
}

/// Numbers, of which True and False are none.
macro_rules! numbers {
    ($($type:ty: $annotation:literal,)*) => {
        $(impl FieldType for $type {
            fn annotation() -> String {
                $annotation.into()
            }

            fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
                let read = (!value.is_instance_of::<PyBool>()).then(|| value.extract().ok()).flatten();
                let between = || format!("from {} to {}, {}", <$type>::MIN, <$type>::MAX, $annotation);
                read.ok_or_else(|| should_be(value, &if $annotation == "int" { between() } else { $annotation.into() }))
            }
        })*
    };
}

numbers! { i32: "int", u16: "int", u32: "int", u64: "int", usize: "int", f64: "float", }

impl FieldType for Object {
    fn annotation() -> String {
        "object".into()
    }

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        Ok(Object(value.clone().unbind()))
    }
}

impl FieldType for Callable {
    fn annotation() -> String {
        "Callable".into()
    }

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        match value.is_callable() {
            true => Ok(Callable(value.clone().unbind())),
            false => Err(should_be(value, "Callable")),
        }
    }
}

impl FieldType for StaticOptions {
    fn annotation() -> String {
        "StaticOptions".into()
    }

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        read_all(value).map_err(|wrong| format!("StaticOptions.{wrong}"))
    }
}

impl<T: FieldType> FieldType for Option<T> {
    fn annotation() -> String {
        match T::annotation().as_str() {
            // None is one.
            "object" => "object".into(),
            annotation => format!("{annotation} | None"),
        }
    }

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        if value.is_none() { Ok(None) } else { T::read(value).map(Some) }
    }
}

impl<T: FieldType> FieldType for Vec<T> {
    fn annotation() -> String {
        format!("Sequence[{}]", T::annotation())
    }

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        let wrong = || should_be(value, &Self::annotation());
        // A text is a sequence of letters.
        let items = if value.is_instance_of::<PyString>() { None } else { value.try_iter().ok() };
        items.ok_or_else(wrong)?.map(|item| T::read(&item.map_err(|_| wrong())?)).collect()
    }
}

/// Tuples of so many items.
macro_rules! tuples {
    ($(($length:literal: $($type:ident $number:literal),*),)*) => {
        $(impl<$($type: FieldType),*> FieldType for ($($type,)*) {
            fn annotation() -> String {
                format!("tuple[{}]", [$($type::annotation()),*].join(", "))
            }

            fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
                let items = value.cast::<PyTuple>().ok().filter(|items| items.len() == $length);
                let items = items.ok_or_else(|| should_be(value, &Self::annotation()))?;
                let item = |number| items.get_item(number).map_err(|error| error.to_string());
                Ok(($($type::read(&item($number)?)?,)*))
            }
        })*
    };
}

tuples! { (2: A 0, B 1), (3: A 0, B 1, C 2), (4: A 0, B 1, C 2, D 3), }
