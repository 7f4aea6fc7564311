"""Loads a WSGI application from a target, each kind of which is a file here or in a plug-in.

target.py          the class `Target`: a kind of target
routes.py          which application or folder answers, by host and path
mounts.py          combines several applications by host and prefix
wsgi.py            `package.module:callable`
module.py          imports the module of an application
static.py          `static:FOLDER`
tcp.py             `tcp:module:handler`

A target is `package.module:callable`, `path/to/file.py:callable`, or `SCHEME:rest`. Schemes are
entries of the registry in the group `targets`; that of a plug-in is a `Target`, or only a function
that takes the rest and returns an application.
"""

from __future__ import annotations

import os
from contextlib import suppress

from poorhttp.config.registry import Entry, registry
from poorhttp.config.settings import Settings
from poorhttp.config.suggestions import nearest
from poorhttp.errors import ApplicationError, ConfigError, Failure
from poorhttp.targets import wsgi
from poorhttp.targets.module import describe
from poorhttp.targets.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

#: The kind of a target without a scheme.
MODULE = Target(wsgi.load, "")

#: A random key, with which targets sign data of clients. The main process creates it when it
#: imports this module, so that all workers have the same, also after a reload.
SECRET = os.urandom(32)


def load(target: str, settings: Settings | None = None) -> WSGIApplication:
    """Load the application that a target names.

    Schemes of the server come first, then existing modules and files, then plug-ins of others,
    which never replace a module. But `wsgi:application` names a module `wsgi` if there is one,
    because many projects have a `wsgi.py`, and the meaning is the same.

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
    entry = _entry(target)
    if entry is not None and not _is_module_wsgi(scheme, rest):
        return _load(entry, target, settings)
    if colon and scheme.isidentifier() and not wsgi.names_module(scheme, rest):
        near = nearest(scheme, registry.names("targets"))
        if near is not None:
            raise ApplicationError(
                f'there is neither a module nor a scheme "{scheme}" (in {target}); '
                f'did you mean "{near}:{rest}"?'
            )
        unnamed = registry.unnamed("targets", scheme)
        if unnamed:
            raise ApplicationError(f'there is no module "{scheme}" (in {target}); {unnamed}')
    return wsgi.load(target, settings.mode if settings is not None else "")


def find(target: str) -> Target:
    """Return the kind of a target, whose plug-in is loaded for that; `MODULE` without a scheme."""
    entry = _entry(target)
    return _kind(entry, target) if entry is not None else MODULE


def whole_body(target: str) -> str:
    """Return why an application cannot receive a body while it runs; mostly empty.

    Before modules can be imported, so that of a plug-in of others only if that is named.
    """
    entry = registry.known("targets", target.partition(":")[0])
    with suppress(Failure):
        return "" if entry is None else _kind(entry, target).whole_body
    return ""


def _is_module_wsgi(scheme: str, rest: str) -> bool:
    name = rest.partition("(")[0]
    return scheme == "wsgi" and name.isidentifier() and wsgi.names_module(scheme, name)


def _entry(target: str) -> Entry | None:
    """Return the entry of the scheme of a target; None for a module or a file."""
    scheme, colon, rest = target.partition(":")
    known = registry.known("targets", scheme) if colon else None
    if known is not None and not known.plugin:
        return known
    if not (colon and scheme.isidentifier()) or wsgi.names_module(scheme, rest):
        return None
    return registry.find("targets", scheme)


def _kind(entry: Entry, target: str) -> Target:
    """Return the kind of target that a scheme is; that of a plug-in may be a function alone."""
    try:
        found = entry.load()
    except ConfigError as error:
        if not entry.plugin:
            raise ApplicationError(f"{target} cannot be loaded: {error}") from error
        cause = error.__cause__
        why = f"cannot be loaded: {describe(cause)}" if cause is not None else entry.failure
        raise ApplicationError(f'the plug-in of the scheme "{entry.name}" {why}') from error
    if isinstance(found, Target):
        return found
    return Target(found)


def _load(entry: Entry, target: str, settings: Settings | None) -> WSGIApplication:
    kind, rest = _kind(entry, target), target.partition(":")[2]
    try:
        application: WSGIApplication = (
            kind.load(rest, settings) if kind.takes_settings else kind.load(rest)
        )
    except Exception as error:
        if isinstance(error, ApplicationError) or not entry.plugin:
            raise
        raise ApplicationError(f"{target} cannot be loaded: {describe(error)}") from error
    if not callable(application):
        raise ApplicationError(f"{target} is not an application: {application!r}")
    return application
