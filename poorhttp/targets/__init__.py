"""Registry of targets (`SCHEMES`); loads a WSGI application from the text of a target.

routes.py          which application or folder answers, by host and path
named.py           the file, folder or module that a target names
mounts.py          combines several applications by host and prefix
wsgi.py            `package.module:callable`
module.py          imports the module of an application
static.py          `static:FOLDER`
tcp.py             `tcp:module:handler`
paste.py           `paste:FILE#NAME`
folder.py          checks the folder of a target

A target is `package.module:callable`, `path/to/file.py:callable`, or `SCHEME:rest`. Plug-ins add
schemes by an entry point in the group `poorhttp.targets`: a function that takes the rest and
returns an application. Built-in loaders may take the settings too.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable

from poorhttp.config.settings import Settings
from poorhttp.config.suggestions import nearest
from poorhttp.errors import ApplicationError
from poorhttp.targets import wsgi
from poorhttp.targets.module import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from _typeshed.wsgi import WSGIApplication

    Loader: TypeAlias = Callable[..., WSGIApplication]

PLUGIN_GROUP = "poorhttp.targets"

# What the rest of a target names: a callable, a folder of such files, or a file that configures an
# application. The development server decides by it which files to watch, and which saves start the
# application again.
CALLABLE = "callable"
CODE = "code"
CONFIGURATION = "configuration"
FILES = "files"
PAGES = "pages"
PROGRAMS = "programs"

#: Built-in schemes. The module of the same name has a function `load`, which takes the rest of the
#: target and, if it has two parameters, the settings.
SCHEMES = {
    "cgi": PROGRAMS,
    "dispatch": CODE,
    "paste": CONFIGURATION,
    "static": FILES,
    "tcp": CALLABLE,
    "pages": PAGES,
    "wsgi": CALLABLE,
}

PLACES = {each: f"poorhttp.plugins.apps.{each}.target" for each in ("cgi", "dispatch", "pages")}

#: A random key, with which targets sign data of clients. The main process creates it when it
#: imports this module, so that all workers have the same, also after a reload.
SECRET = os.urandom(32)


def load(target: str, settings: Settings | None = None) -> WSGIApplication:
    """Load the application that a target names.

    Built-in schemes come first, then existing modules and files, then plug-ins, which never replace
    a module. But `wsgi:application` names a module `wsgi` if there is one, because many projects
    have a `wsgi.py`, and the meaning is the same.

    Args:
        target: see above.
        settings: of the service, or of the virtual host; by default those without any option set.

    Raises:
        ApplicationError: with a message that names the mistake, its place, and a correction.
    """
    if not target.strip():
        raise ApplicationError(
            "no application is named: say package.module:callable, path/to/file.py:callable "
            "or dispatch:FOLDER"
        )
    scheme, colon, rest = target.partition(":")
    if colon and scheme in SCHEMES and not _is_module_wsgi(scheme, rest):
        own = _builtin_loader(scheme)
        return own(rest, settings) if takes_settings(target) else own(rest)
    if colon and scheme.isidentifier() and not wsgi.names_module(scheme, rest):
        from importlib.metadata import entry_points

        for point in entry_points(group=PLUGIN_GROUP, name=scheme):
            return _load_plugin(point.load, scheme, rest)
        near = nearest(scheme, SCHEMES)
        if near is not None:
            raise ApplicationError(
                f'there is neither a module nor a scheme "{scheme}" (in {target}); '
                f'did you mean "{near}:{rest}"?'
            )
    return wsgi.load(target)


def _is_module_wsgi(scheme: str, rest: str) -> bool:
    name = rest.partition("(")[0]
    return scheme == "wsgi" and name.isidentifier() and wsgi.names_module(scheme, name)


def takes_settings(target: str) -> bool:
    """Tell whether loading a target depends on options, which may differ between hosts."""
    scheme, colon, _ = target.partition(":")
    return bool(colon) and scheme in SCHEMES and _builtin_loader(scheme).__code__.co_argcount > 1


def _builtin_loader(scheme: str) -> Loader:
    loader: Loader = importlib.import_module(PLACES.get(scheme, f"poorhttp.targets.{scheme}")).load
    return loader


def _load_plugin(point: Callable[[], object], scheme: str, rest: str) -> WSGIApplication:
    try:
        loader = point()
    except Exception as error:
        raise ApplicationError(
            f'the plug-in of the scheme "{scheme}" cannot be loaded: {describe(error)}'
        ) from error
    if not callable(loader):
        raise ApplicationError(
            f'the plug-in of the scheme "{scheme}" is not a function: {loader!r}'
        )
    try:
        application: WSGIApplication = loader(rest)
    except ApplicationError:
        raise
    except Exception as error:
        raise ApplicationError(f"{scheme}:{rest} cannot be loaded: {describe(error)}") from error
    if not callable(application):
        raise ApplicationError(f"{scheme}:{rest} is not an application: {application!r}")
    return application
