//! Published folders, opened from Python settings.

use std::path::PathBuf;
use std::sync::Arc;

use poorhttp_compress::Compression;
use poorhttp_files::{Cache, LiveReload, Options, StaticRoot};
use poorhttp_reactor::{Routes, SendfileRoots, StaticRoute};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::settings::option;

/// Host, path prefix, folder (`None`: the application answers) and settings of the host.
pub(crate) type Route<'py> = (String, String, Option<PathBuf>, Bound<'py, PyAny>);

/// Opens the folders of all routes. `None`: there are no routes.
pub(crate) fn open_routes(
    routes: Vec<Route<'_>>,
    cache: &Arc<Cache>,
    live: Option<&LiveReload>,
    compression: Option<&Arc<Compression>>,
) -> PyResult<Option<Routes>> {
    if routes.is_empty() {
        return Ok(None);
    }
    let mut opened = Routes::default();
    for (host, prefix, folder, settings) in routes {
        let published = match folder {
            Some(folder) => Some(StaticRoute {
                root: open(folder, &settings, cache, live, compression)?,
                falls_through: option(&settings, "static_fallthrough")?,
            }),
            None => None,
        };
        opened.add(&host, &prefix, published);
    }
    Ok(Some(opened))
}

/// Opens the folders for `X-Sendfile` and `X-Accel-Redirect`.
pub(crate) fn open_sendfile_roots(settings: &Bound<'_, PyAny>, cache: &Arc<Cache>) -> PyResult<SendfileRoots> {
    let mut sendfile_roots = SendfileRoots::default();
    for folder in option::<Vec<PathBuf>>(settings, "x_sendfile")? {
        let absolute = std::path::absolute(&folder)?;
        sendfile_roots.add_folder(&absolute.to_string_lossy(), open(folder, settings, cache, None, None)?);
    }
    for (prefix, folder) in option::<Vec<(String, PathBuf)>>(settings, "x_accel_redirect")? {
        sendfile_roots.add_location(&prefix, open(folder, settings, cache, None, None)?);
    }
    Ok(sendfile_roots)
}

fn open(
    folder: PathBuf,
    settings: &Bound<'_, PyAny>,
    cache: &Arc<Cache>,
    live: Option<&LiveReload>,
    compression: Option<&Arc<Compression>>,
) -> PyResult<StaticRoot> {
    let options = Options {
        folder: folder.clone(),
        index: option(settings, "static_index")?,
        listing: option(settings, "static_listing")?,
        fallback: option(settings, "static_fallback")?,
        not_found: option(settings, "static_not_found")?,
        fields: option(settings, "static_header")?,
        immutable: option(settings, "static_immutable")?,
        types: option(settings, "static_type")?,
        charset: option(settings, "static_charset")?,
        precompressed: option(settings, "static_precompressed")?,
        hidden: option(settings, "static_hidden")?,
        live: live.cloned(),
        compression: compression.cloned(),
    };
    StaticRoot::new(options, Arc::clone(cache))
        .map_err(|error| PyOSError::new_err((error.raw_os_error(), format!("{error}: {}", folder.display()))))
}
