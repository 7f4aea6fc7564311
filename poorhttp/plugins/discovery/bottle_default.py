"""Loads an application of Bottle from a module that may run Bottle's own server."""

from __future__ import annotations

from poorhttp.targets import module as modules
from poorhttp.targets import wsgi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def application(target: str) -> WSGIApplication:
    """Return the application of a target of the kind `wsgi`.

    Without a colon it is Bottle's default application, to which the module adds its routes.

    Raises:
        poorhttp.errors.ApplicationError: the module or the application cannot be loaded.
    """
    import bottle

    # `run()` in an imported module does nothing, as for Bottle's own command.
    bottle.NORUN = True
    if wsgi.split(target)[1]:
        return wsgi.load(target)
    if wsgi.is_path(target):
        modules.import_file(target)
    else:
        modules.import_by_name(target)
    default: WSGIApplication = bottle.default_app()
    return default
