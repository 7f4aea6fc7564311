"""Poor HTTP: a small, fast WSGI server whose concurrency model is one word of its configuration.

import poorhttp
poorhttp.serve(application, bind="127.0.0.1:8080", mode="threading", threads=8)

__main__.py   `python -m poorhttp`
cli.py        the command `poorhttp` and its subcommands
api.py        the server as a library: `serve` and `Server`
errors.py     errors of configuration and start, and their exit codes
config/       settings from the command line, the environment and a file
supervisor/   the main process
worker/       a process that serves
modes/        single, forking, threading, gevent: how requests are scheduled
targets/      what can be served, and which request goes where
dispatch/     dispatch tables, the API of old applications
pages/        template pages
cgi/          CGI programs
net/          listening sockets
process/      what every process has: user, signals, forking, messages
logs/         the access log and the error log
dev/          the development server
"""

from __future__ import annotations

from poorhttp.config.version import VERSION

__version__ = VERSION

__all__ = ["Server", "__version__", "serve"]

# Where `poorhttp.frameworks.django` is found, which Django projects have in INSTALLED_APPS.
__path__.append(f"{__path__[0]}/dev/aliases")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.api import Server, serve


def __getattr__(name: str) -> object:
    # Imported when asked for: the command does not need it, nor does a reader of the version.
    if name in ("Server", "serve"):
        from poorhttp import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
