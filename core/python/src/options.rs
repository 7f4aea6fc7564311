//! Converts `WorkerOptions` of `poorhttp/worker/options.py` by the names of its fields: a new option needs no line here.
//!
//! `poorhttp/worker/options.py` declares the same fields for Python. A field that one side does not have, or that has another
//! type, is a TypeError that names it.

use std::collections::BTreeMap;
use std::fmt;
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

/// A type of fields, which is shown as Python annotates it.
enum Annotation {
    Plain(&'static str),
    Optional(&'static Annotation),
    Sequence(&'static Annotation),
    Tuple(&'static [Annotation]),
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Annotation::Plain(name) => f.write_str(name),
            // None is one.
            Annotation::Optional(Annotation::Plain("object")) => f.write_str("object"),
            Annotation::Optional(inner) => write!(f, "{inner} | None"),
            Annotation::Sequence(item) => write!(f, "Sequence[{item}]"),
            Annotation::Tuple(items) => {
                f.write_str("tuple[")?;
                for (number, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if number == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Type of a field in Rust.
trait FieldType: Sized {
    const ANNOTATION: Annotation;

    /// Reads a value. The error is a text: which value should be what.
    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String>;
}

/// Name and annotation of a field.
type Field = (&'static str, Annotation);

/// The fields of a class of Python, which a struct has too.
trait Fields: Sized {
    /// Name and annotation of each, in groups.
    const FIELDS: &'static [&'static [Field]];

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
            const FIELDS: &'static [&'static [Field]] =
                &[&[$((stringify!($name), <$type as FieldType>::ANNOTATION),)*]];

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
        http2: Option<(String, u32, u32, u32)>,
        auto_threads: Option<(usize, usize, usize, Vec<(PathBuf, u64)>)>,
        request_context: Option<Object>,
        lazy_environ: Option<bool>,
    }
}

/// All that a reactor gets.
pub(crate) struct WorkerOptions {
    /// The options of the configuration.
    pub(crate) settings: Settings,
    pub(crate) given: Given,
}

impl Fields for WorkerOptions {
    const FIELDS: &'static [&'static [Field]] = &[Settings::FIELDS[0], Given::FIELDS[0]];

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
    let shown = |groups: &[&'static [Field]]| {
        groups.iter().copied().flatten().map(|(name, annotation)| (*name, annotation.to_string())).collect()
    };
    [("WorkerOptions", shown(WorkerOptions::FIELDS)), ("StaticOptions", shown(StaticOptions::FIELDS))].into()
}

/// Reads all fields of an object, which has no others.
fn read_all<T: Fields>(object: &Bound<'_, PyAny>) -> Result<T, String> {
    let read = T::read(object)?;
    refuse_others(object, T::FIELDS)?;
    Ok(read)
}

/// Names an attribute of an object that is none of these fields, as an error.
fn refuse_others(object: &Bound<'_, PyAny>, fields: &[&[Field]]) -> Result<(), String> {
    let has = object.getattr("__dict__").and_then(|fields| Ok(fields.cast_into::<PyDict>()?));
    for name in has.iter().flat_map(|has| has.keys()) {
        if !fields.iter().copied().flatten().any(|(known, _)| name.to_string() == *known) {
            return Err(format!("{name}: the reactor has no such field; core/python/src/options.rs lists them"));
        }
    }
    Ok(())
}

/// Reads a field of an object. What does not depend on the type is not compiled for each of them: see the two functions below.
fn field<T: FieldType>(object: &Bound<'_, PyAny>, name: &str) -> Result<T, String> {
    T::read(&attribute(object, name, &T::ANNOTATION)?).map_err(|wrong| wrong_field(name, &wrong, &T::ANNOTATION))
}

/// The value of a field.
fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &str,
    annotation: &Annotation,
) -> Result<Bound<'py, PyAny>, String> {
    object.getattr(name).map_err(|error| match error.is_instance_of::<PyAttributeError>(object.py()) {
        true => format!("{name}: the field is missing; it should be {annotation}"),
        false => format!("{name}: {error}"),
    })
}

/// Says what all of a field should be, if the text about a part of it does not.
#[cold]
fn wrong_field(name: &str, wrong: &str, annotation: &Annotation) -> String {
    match wrong.ends_with(&annotation.to_string()) {
        true => format!("{name}: {wrong}"),
        false => format!("{name}: {wrong}; all of it should be {annotation}"),
    }
}

/// Says that a value should be something else.
#[cold]
fn should_be(value: &Bound<'_, PyAny>, what: &Annotation) -> String {
    should_be_text(value, &what.to_string())
}

#[cold]
fn should_be_text(value: &Bound<'_, PyAny>, what: &str) -> String {
    let shown = value.repr().map_or_else(|_| String::from("a value"), |text| text.to_string());
    let class = value.get_type().name().map_or_else(|_| String::new(), |name| format!(" ({name})"));
    format!("{shown}{class} should be {what}")
}

/// Types that are read as PyO3 reads them.
macro_rules! plain_types {
    ($($type:ty: $annotation:literal,)*) => {
        $(impl FieldType for $type {
            const ANNOTATION: Annotation = Annotation::Plain($annotation);

            fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
                value.extract().map_err(|_| should_be(value, &Self::ANNOTATION))
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

/// Which whole numbers a field takes.
#[cold]
fn between(least: &dyn fmt::Display, most: &dyn fmt::Display) -> String {
    format!("from {least} to {most}, int")
}

/// Numbers, of which True and False are none.
macro_rules! numbers {
    ($($type:ty: $annotation:literal,)*) => {
        $(impl FieldType for $type {
            const ANNOTATION: Annotation = Annotation::Plain($annotation);

            fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
                let read = (!value.is_instance_of::<PyBool>()).then(|| value.extract().ok()).flatten();
                read.ok_or_else(|| match $annotation {
                    "int" => should_be_text(value, &between(&<$type>::MIN, &<$type>::MAX)),
                    annotation => should_be_text(value, annotation),
                })
            }
        })*
    };
}

numbers! { i32: "int", u16: "int", u32: "int", u64: "int", usize: "int", f64: "float", }

impl FieldType for Object {
    const ANNOTATION: Annotation = Annotation::Plain("object");

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        Ok(Object(value.clone().unbind()))
    }
}

impl FieldType for Callable {
    const ANNOTATION: Annotation = Annotation::Plain("Callable");

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        match value.is_callable() {
            true => Ok(Callable(value.clone().unbind())),
            false => Err(should_be(value, &Self::ANNOTATION)),
        }
    }
}

impl FieldType for StaticOptions {
    const ANNOTATION: Annotation = Annotation::Plain("StaticOptions");

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        read_all(value).map_err(|wrong| format!("StaticOptions.{wrong}"))
    }
}

impl<T: FieldType> FieldType for Option<T> {
    const ANNOTATION: Annotation = Annotation::Optional(&T::ANNOTATION);

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        if value.is_none() { Ok(None) } else { T::read(value).map(Some) }
    }
}

impl<T: FieldType> FieldType for Vec<T> {
    const ANNOTATION: Annotation = Annotation::Sequence(&T::ANNOTATION);

    fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
        let wrong = || should_be(value, &Self::ANNOTATION);
        // A text is a sequence of letters.
        let items = if value.is_instance_of::<PyString>() { None } else { value.try_iter().ok() };
        items.ok_or_else(wrong)?.map(|item| T::read(&item.map_err(|_| wrong())?)).collect()
    }
}

/// Tuples of so many items.
macro_rules! tuples {
    ($(($length:literal: $($type:ident $number:literal),*),)*) => {
        $(impl<$($type: FieldType),*> FieldType for ($($type,)*) {
            const ANNOTATION: Annotation = Annotation::Tuple(&[$($type::ANNOTATION),*]);

            fn read(value: &Bound<'_, PyAny>) -> Result<Self, String> {
                let items = value.cast::<PyTuple>().ok().filter(|items| items.len() == $length);
                let items = items.ok_or_else(|| should_be(value, &Self::ANNOTATION))?;
                let item = |number| items.get_item(number).map_err(|error| error.to_string());
                Ok(($($type::read(&item($number)?)?,)*))
            }
        })*
    };
}

tuples! { (2: A 0, B 1), (3: A 0, B 1, C 2), (4: A 0, B 1, C 2, D 3), }
