//! Opens published folders, and passes their options on unread.

use std::path::PathBuf;
use std::sync::Arc;

use poorhttp_compress::Compression;
use poorhttp_files::{Cache, LiveReload, Options, StaticRoot};
use poorhttp_reactor::{Routes, SendfileRoots, StaticRoute};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::options::Route;

/// Opens the folders of all routes. `None`: there are no routes.
pub(crate) fn open_routes(
    routes: Vec<Route>,
    cache: &Arc<Cache>,
    live: Option<&LiveReload>,
    compression: Option<&Arc<Compression>>,
) -> PyResult<Option<Routes>> {
    if routes.is_empty() {
        return Ok(None);
    }
    let mut opened = Routes::default();
    for (host, prefix, folder, options) in routes {
        let falls_through = options.falls_through;
        let published = match folder {
            Some(folder) => Some(StaticRoute {
                root: open(
                    Options { folder, live: live.cloned(), compression: compression.cloned(), ..options },
                    cache,
                )?,
                falls_through,
            }),
            None => None,
        };
        opened.add(&host, &prefix, published);
    }
    Ok(Some(opened))
}

/// Opens the folders for `X-Sendfile`, and those for `X-Accel-Redirect` with their places.
pub(crate) fn open_sendfile_roots(
    folders: &[PathBuf],
    places: &[(String, PathBuf)],
    options: &Options,
    cache: &Arc<Cache>,
) -> PyResult<SendfileRoots> {
    let open = |folder: &PathBuf| open(Options { folder: folder.clone(), ..options.clone() }, cache);
    let mut sendfile_roots = SendfileRoots::default();
    for folder in folders {
        let absolute = std::path::absolute(folder)?;
        sendfile_roots.add_folder(&absolute.to_string_lossy(), open(folder)?);
    }
    for (prefix, folder) in places {
        sendfile_roots.add_location(prefix, open(folder)?);
    }
    Ok(sendfile_roots)
}

fn open(options: Options, cache: &Arc<Cache>) -> PyResult<StaticRoot> {
    let folder = options.folder.clone();
    StaticRoot::new(options, Arc::clone(cache))
        .map_err(|error| PyOSError::new_err((error.raw_os_error(), format!("{error}: {}", folder.display()))))
}
