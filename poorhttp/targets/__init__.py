"""Loads a WSGI application from the text of a target.

target.py          the class `Target`: a kind of target
routes.py          which application or folder answers, by host and path
mounts.py          combines several applications by host and prefix
wsgi.py            `package.module:callable`
module.py          imports the module of an application
static.py          `static:FOLDER`
tcp.py             `tcp:module:handler`
folder.py          checks the folder of a target

A target is `package.module:callable`, `path/to/file.py:callable`, or `SCHEME:rest`. Schemes are
entries of the registry in the group `targets`; that of a plug-in is a `Target`, or only a function
that takes the rest and returns an application.
"""

from __future__ import annotations

import os

from poorhttp.config.registry import registry
from poorhttp.config.settings import Settings
from poorhttp.config.suggestions import nearest
from poorhttp.errors import ApplicationError, ConfigError
from poorhttp.targets import wsgi
from poorhttp.targets.module import describe
from poorhttp.targets.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

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
    own = of(target)
    if own is not None and not _is_module_wsgi(scheme, rest):
        application: WSGIApplication = (
            own.load(rest, settings) if own.takes_settings else own.load(rest)
        )
        return application
    if colon and scheme.isidentifier() and not wsgi.names_module(scheme, rest):
        entry = registry.find("targets", scheme)
        if entry is not None:
            return _load_plugin(scheme, rest, settings)
        near = nearest(scheme, registry.names("targets"))
        if near is not None:
            raise ApplicationError(
                f'there is neither a module nor a scheme "{scheme}" (in {target}); '
                f'did you mean "{near}:{rest}"?'
            )
        unnamed = registry.unnamed("targets", scheme)
        if unnamed:
            raise ApplicationError(f'there is no module "{scheme}" (in {target}); {unnamed}')
    return wsgi.load(target)


def _is_module_wsgi(scheme: str, rest: str) -> bool:
    name = rest.partition("(")[0]
    return scheme == "wsgi" and name.isidentifier() and wsgi.names_module(scheme, name)


def of(target: str) -> Target | None:
    """Return the kind of a target by its scheme, if the server itself has that scheme.

    Raises:
        ApplicationError: the plug-in of the server with this scheme is not installed.
    """
    scheme, colon, _ = target.partition(":")
    entry = registry.known("targets", scheme) if colon else None
    if entry is None or entry.plugin:
        return None
    try:
        found: Target = entry.load()
    except ConfigError as error:
        raise ApplicationError(f"{target} cannot be loaded: {error}") from error
    return found


def takes_settings(target: str) -> bool:
    """Tell whether loading a target depends on options, which may differ between hosts."""
    own = of(target) or _of_others(target)
    return own is not None and own.takes_settings


def kind(target: str) -> str:
    """Return what the rest of a target names; empty if it has no scheme that is known."""
    own = of(target) or _of_others(target)
    return own.kind if own is not None else ""


def _of_others(target: str) -> Target | None:
    """Return the kind of a target whose scheme a plug-in of others has."""
    scheme, colon, rest = target.partition(":")
    if not (colon and scheme.isidentifier()) or wsgi.names_module(scheme, rest):
        return None
    return _of_plugin(scheme) if registry.find("targets", scheme) else None


def _of_plugin(scheme: str) -> Target:
    """Return the target of a plug-in of others, whose entry is found."""
    entry = registry.entries["targets"][scheme]
    try:
        found = entry.load()
    except ConfigError as error:
        cause = error.__cause__
        why = f"cannot be loaded: {describe(cause)}" if cause is not None else entry.failure
        raise ApplicationError(f'the plug-in of the scheme "{scheme}" {why}') from error
    if isinstance(found, Target):
        return found
    if not callable(found):
        raise ApplicationError(f'the plug-in of the scheme "{scheme}" is not a function: {found!r}')
    return Target(found)


def _load_plugin(scheme: str, rest: str, settings: Settings | None) -> WSGIApplication:
    own = _of_plugin(scheme)
    try:
        application: WSGIApplication = (
            own.load(rest, settings) if own.takes_settings else own.load(rest)
        )
    except ApplicationError:
        raise
    except Exception as error:
        raise ApplicationError(f"{scheme}:{rest} cannot be loaded: {describe(error)}") from error
    if not callable(application):
        raise ApplicationError(f"{scheme}:{rest} is not an application: {application!r}")
    return application
