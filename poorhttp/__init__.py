"""Poor HTTP: a small, fast WSGI server; one option chooses its concurrency model.

import poorhttp
poorhttp.serve(application, bind="127.0.0.1:8080", mode="threading", threads=8)

__main__.py   `python -m poorhttp`
cli.py        the command `poorhttp` and its subcommands
api.py        the server as a library: `serve` and `Server`
errors.py     errors of configuration and start, and their exit codes
config/       settings from the command line, the environment and a file
supervisor/   the main process
worker/       worker processes
modes/        single, forking, threading, gevent: how requests are scheduled
targets/      applications and folders that can be served, and their routes
net/          listening sockets
process/      privileges, signals, forking and messages of processes
logs/         the access log and the error log
plugins/      everything else: monitoring, development, setup, applications
"""

# Without `from __future__`, which `python -m poorhttp` would import from the current folder.
from poorhttp.config.version import VERSION

__version__ = VERSION

__all__ = ["Server", "__version__", "build_profile", "serve"]

# For `poorhttp.frameworks.django`, which Django projects have in INSTALLED_APPS.
__path__.append(f"{__path__[0]}/plugins/aliases")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp._core import build_profile as build_profile
    from poorhttp.api import Server, serve


def __getattr__(name: str) -> object:
    # Imported on first use: the command does not need it.
    if name == "build_profile":
        from poorhttp import _core

        return _core.build_profile
    if name in ("Server", "serve"):
        from poorhttp import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
