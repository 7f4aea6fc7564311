//! Published folders, as Python describes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use poorhttp_files::{Cache, Live, Options, Site};
use poorhttp_reactor::{Deliveries, Published, Routes};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::reactor::option;

/// Host, prefix, folder (or none, where the application answers) and settings of the host.
pub(crate) type Route<'py> = (String, String, Option<PathBuf>, Bound<'py, PyAny>);

/// Opens the folders of all routes. `None`: there are no routes.
pub(crate) fn open_routes(routes: Vec<Route<'_>>, cache: &Arc<Cache>, live: Option<&Live>) -> PyResult<Option<Routes>> {
    if routes.is_empty() {
        return Ok(None);
    }
    let mut opened = Routes::new();
    for (host, prefix, folder, settings) in routes {
        let published = match folder {
            Some(folder) => Some(Published {
                site: open(Options { live: live.cloned(), ..describe(folder, &settings)? }, cache)?,
                falls_through: option(&settings, "static_fallthrough")?,
            }),
            None => None,
        };
        opened.add(&host, &prefix, published);
    }
    Ok(Some(opened))
}

/// Opens the folders from which an application may have files sent.
pub(crate) fn open_deliveries(settings: &Bound<'_, PyAny>, cache: &Arc<Cache>) -> PyResult<Deliveries> {
    let mut deliveries = Deliveries::new();
    for folder in option::<Vec<PathBuf>>(settings, "x_sendfile")? {
        let absolute = std::path::absolute(&folder)?;
        let site = open(describe(folder, settings)?, cache)?;
        deliveries.add_folder(&absolute.to_string_lossy(), site);
    }
    for (prefix, folder) in option::<Vec<(String, PathBuf)>>(settings, "x_accel_redirect")? {
        deliveries.add_location(&prefix, open(describe(folder, settings)?, cache)?);
    }
    Ok(deliveries)
}

fn describe(folder: PathBuf, settings: &Bound<'_, PyAny>) -> PyResult<Options> {
    Ok(Options {
        folder,
        index: option(settings, "static_index")?,
        listing: option(settings, "static_listing")?,
        not_found: option(settings, "static_not_found")?,
        fields: option(settings, "static_header")?,
        types: option(settings, "static_type")?,
        charset: option(settings, "static_charset")?,
        precompressed: option(settings, "static_precompressed")?,
        hidden: option(settings, "static_hidden")?,
        live: None,
    })
}

fn open(options: Options, cache: &Arc<Cache>) -> PyResult<Site> {
    let folder = options.folder.clone();
    Site::new(options, Arc::clone(cache)).map_err(|error| explain(&folder, &error))
}

fn explain(folder: &Path, error: &std::io::Error) -> PyErr {
    PyOSError::new_err((error.raw_os_error(), format!("{error}: {}", folder.display())))
}
