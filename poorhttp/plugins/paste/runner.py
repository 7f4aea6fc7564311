"""Serves the application of a file of PasteDeploy: the runner of its section `[server:main]`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from poorhttp.api import serve_settings
from poorhttp.config.options.option import ON_COMMAND_LINE
from poorhttp.config.settings import Settings, in_file, option_suggestion
from poorhttp.errors import ConfigError
from poorhttp.process.standard_streams import open_standard_streams
from poorhttp.targets.wsgi import refuse_asgi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def serve_paste(
    app: WSGIApplication, global_conf: Mapping[str, str] | None = None, **texts: str
) -> None:
    """Serve an application of PasteDeploy until TERM or INT: `use = egg:poorhttpd#main`.

    Args:
        app: the application, which is loaded already.
        global_conf: options of the section `[DEFAULT]`.
        texts: options of the section, as in an ini file of ours: a repeatable one has a line for
            each value. The address may be in `host` and `port` or in `listen` instead of `bind`.

    Raises:
        poorhttp.errors.Failure: an option is wrong, or the address cannot be used.
    """
    open_standard_streams()
    file = os.path.basename((global_conf or {}).get("__file__", "")) or "[server:main]"
    settings = Settings()
    # As in a file, with those of earlier releases.
    options = in_file()
    for name, given in _addresses(texts).items():
        option = options.get(name)
        place = f"{file}: {name}"
        if option is None:
            meant = option_suggestion(name, {name: name for name in options})
            raise ConfigError(f'{file}: unknown option "{name}"{meant}')
        if option.name == "target" or option.available == ON_COMMAND_LINE:
            raise ConfigError(f"{place}: leave it out; the application of this file is served")
        lines = [line.strip() for line in given.strip().split("\n")]
        settings.set(option.name, [(place, line) for line in lines])
    if settings.mode == "gevent":
        _check_patched(settings)
    refuse_asgi(app, "the application")
    serve_settings(settings, app)


def _addresses(texts: Mapping[str, str]) -> dict[str, str]:
    """Return options with `bind` in place of the names that waitress has for it."""
    options = dict(texts)
    if "listen" in options:
        options["bind"] = "\n".join(options.pop("listen").split())
    elif "host" in options or "port" in options:
        host = options.pop("host", "127.0.0.1")
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        options["bind"] = f"{host}:{options.pop('port', '8080')}"
    return options


def _check_patched(settings: Settings) -> None:
    """Raise a ConfigError unless gevent has patched the standard library.

    An application that is loaded already has locks and sockets that would block the hub.
    """
    gevent = sys.modules.get("gevent.monkey")
    if gevent is None or not gevent.is_module_patched("socket"):
        raise ConfigError(
            f"{settings.origin('mode')}: gevent has to patch the standard library before the "
            "application is loaded: write python -m gevent.monkey --module pyramid.scripts.pserve "
            "FILE, or poorhttp serve paste:FILE --mode gevent"
        )
