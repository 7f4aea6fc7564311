"""What can be served: a target's text becomes a WSGI application.

routes.py          which application or folder answers, by host and path
mounts.py          several applications as one
wsgi.py            `package.module:callable`
module.py          imports the module of an application
source/            reads source without running it
dispatch.py        `dispatch:FOLDER`
static.py          `static:FOLDER`
cgi.py             `cgi:FOLDER`
pages.py           `pages:FOLDER`
compile_pages.py   the command `poorhttp compile`
tcp.py             `tcp:module:handler`
folder.py          the folder that was probably meant

A target is `package.module:callable`, `path/to/file.py:callable`, or `SCHEME:rest`. A scheme of
somebody else's is an entry point of the group `poorhttp.targets`: a function that takes the rest
and returns an application. Loaders of our own may take the settings as well.
"""

from __future__ import annotations

import importlib
import os

from poorhttp.config.suggestions import nearest

from ..errors import ApplicationError
from . import wsgi
from .module import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from _typeshed.wsgi import WSGIApplication

    from poorhttp.config.settings import Settings

    Loader: TypeAlias = Callable[..., WSGIApplication]

PLUGIN_GROUP = "poorhttp.targets"

#: Our own schemes and the module of each, whose `load` takes the rest and, if it is made for two
#: arguments, the settings. They are entry points too, but reading those costs more memory than
#: serving.
SCHEMES = {
    "cgi": "poorhttp.targets.cgi",
    "dispatch": "poorhttp.targets.dispatch",
    "static": "poorhttp.targets.static",
    "tcp": "poorhttp.targets.tcp",
    "pages": "poorhttp.targets.pages",
    "wsgi": "poorhttp.targets.wsgi",
}

#: A secret of this server, for targets that sign what they give to clients. It is made by the main
#: process when it imports this, so that all its workers have it, those of a reload too.
SECRET = os.urandom(32)


def load(target: str, settings: Settings | None = None) -> WSGIApplication:
    """Load the application that a target names.

    A scheme of our own comes first, then a module or file that exists, then the schemes of others:
    an installed plug-in never takes the place of somebody's module. But `wsgi:application` is for
    a module of that name where there is one: many have a `wsgi.py`, and it says the same.

    Args:
        target: see above.
        settings: of the service, or of the virtual host; by default every option has its default.

    Raises:
        ApplicationError: with one message that says what was wrong, where, and what would be right.
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
        plugin = _entry_point(scheme)
        if plugin is not None:
            return _load_plugin(plugin, scheme, rest)
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
    """Tell whether there are options for what a target names, so that hosts may differ in it."""
    scheme, colon, _ = target.partition(":")
    return bool(colon) and scheme in SCHEMES and _builtin_loader(scheme).__code__.co_argcount > 1


def _builtin_loader(scheme: str) -> Loader:
    loader: Loader = importlib.import_module(SCHEMES[scheme]).load
    return loader


def _entry_point(scheme: str) -> Callable[[], object] | None:
    from importlib.metadata import entry_points

    for point in entry_points(group=PLUGIN_GROUP, name=scheme):
        return point.load
    return None


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
    if not callable(application):  # whatever the plug-in promised
        raise ApplicationError(f"{scheme}:{rest} is not an application: {application!r}")
    return application
