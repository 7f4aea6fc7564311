"""What can be served: a target's text becomes a WSGI application.

A target is `package.module:callable`, `path/to/file.py:callable`, or `SCHEME:rest`. A scheme of
somebody else's is an entry point of the group `poorhttp.targets`: a function that takes the rest
and returns an application.
"""

from __future__ import annotations

import importlib

from ..errors import ApplicationError
from ..spelling import nearest
from . import wsgi
from .module import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from _typeshed.wsgi import WSGIApplication

    Loader: TypeAlias = Callable[[str], WSGIApplication]

GROUP = "poorhttp.targets"

#: Our own schemes and the module of each, whose `load` takes the rest. They are entry points too,
#: but reading those costs more memory than serving.
SCHEMES = {
    "dispatch": "poorhttp.targets.dispatch",
    "wsgi": "poorhttp.targets.wsgi",
}


def load(target: str) -> WSGIApplication:
    """Load the application that a target names.

    A scheme of our own comes first, then a module or file that exists, then the schemes of others:
    an installed plug-in never takes the place of somebody's module.

    Raises:
        ApplicationError: with one message that says what was wrong, where, and what would be right.
    """
    if not target.strip():
        raise ApplicationError(
            "no application is named: say package.module:callable, path/to/file.py:callable "
            "or dispatch:FOLDER"
        )
    scheme, colon, rest = target.partition(":")
    if colon and scheme in SCHEMES:
        own: Loader = importlib.import_module(SCHEMES[scheme]).load
        return own(rest)
    if colon and scheme.isidentifier() and not wsgi.names_module(scheme, rest):
        foreign = _entry_point(scheme)
        if foreign is not None:
            return _load_foreign(foreign, scheme, rest)
        near = nearest(scheme, SCHEMES)
        if near is not None:
            raise ApplicationError(
                f'there is neither a module nor a scheme "{scheme}" (in {target}); '
                f'did you mean "{near}:{rest}"?'
            )
    return wsgi.load(target)


def _entry_point(scheme: str) -> Callable[[], object] | None:
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=scheme):
        return point.load
    return None


def _load_foreign(point: Callable[[], object], scheme: str, rest: str) -> WSGIApplication:
    try:
        loader = point()
    except Exception as error:
        raise ApplicationError(
            f'the plug-in of the scheme "{scheme}" cannot be loaded: {told(error)}'
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
        raise ApplicationError(f"{scheme}:{rest} cannot be loaded: {told(error)}") from error
    if not callable(application):  # whatever the plug-in promised
        raise ApplicationError(f"{scheme}:{rest} is not an application: {application!r}")
    return application
