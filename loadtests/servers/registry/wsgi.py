"""Servers of WSGI applications: ours and others."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.servers.registry.apache import DAEMON, EMBEDDED, EVENT, PREFORK, apache
from loadtests.servers.registry.commands import CALLABLE, ours
from loadtests.servers.registry.listed import LISTED
from loadtests.servers.registry.server import Server, chosen

FLOOR = Server("floor", "#8a8f98", "{floor} {port} {body} {content_type} {request_body}")

_ADMIN = "--admin unix:{folder}/admin"
_IDS = "--request-id on --error-log-format json"

SERVERS = (
    FLOOR,
    ours("single", "#0b4f9e", "single"),
    ours("single + log", "#5b8fd0", "single", log="--access-log {log}"),
    ours("threading 8", "#1a7fb8", "threading --threads 8"),
    ours("forking 2", "#2ca6c4", "forking --workers 2"),
    ours("gevent", "#7cc7df", "gevent"),
    *(
        ours(name, colour, mode, options=options, compared=False)
        for name, colour, mode, options in (
            ("single, no monitoring", "#8a8f98", "single", "--proc-name off"),
            ("single + admin", "#7a3e9d", "single", f"--proc-name off {_ADMIN}"),
            ("single + monitoring", "#3f8f3f", "single", f"{_ADMIN} {_IDS}"),
            ("threading 32", "#1a7fb8", "threading --threads 32", ""),
            ("forking 1", "#7fd0e2", "forking --workers 1", ""),
            ("forking 4", "#14788f", "forking --workers 4", ""),
        )
    ),
    *chosen(
        LISTED.values(),
        (
            *("fastpysgi", "fastwsgi", "bjoern", "granian 1 thread", "granian"),
            *("uWSGI 8 threads", "gunicorn gthread 8", "gunicorn gevent", "gunicorn sync 4"),
            *("waitress 8 threads", "cheroot 8 threads", "gevent pywsgi"),
        ),
    ),
)
"""Servers of the benchmark, and others that single experiments of it take."""

_OTHERS = (
    apache("Apache mod_wsgi prefork", "#b8860b", PREFORK, EMBEDDED, programs=("mod_wsgi",)),
    apache("Apache mod_wsgi 8 threads", "#e0b84c", EVENT, DAEMON, programs=("mod_wsgi",)),
    *LISTED.values(),
)
OURS: Sequence[Server] = chosen(
    SERVERS, ("poorhttp single", "poorhttp forking 2", "poorhttp threading 8", "poorhttp gevent")
)
WSGI: Sequence[Server] = [
    *OURS,
    *chosen(
        (*SERVERS, *_OTHERS),
        (
            *("Apache mod_wsgi prefork", "Apache mod_wsgi 8 threads"),
            *("gunicorn sync 2", "gunicorn gthread 8", "gunicorn gevent"),
            *("uWSGI 2 processes", "uWSGI 8 threads", "granian"),
            *("waitress 8 threads", "waitress 8 threads, poll", "cheroot 8 threads"),
            *("gevent pywsgi", "bjoern", "fastpysgi", "fastwsgi", "Werkzeug", "wsgiref"),
        ),
    ),
]
"""Servers of the studies, in the order of their tables."""


def ours_serving(target: str, extra: str = "") -> list[Server]:
    """Ours with another target than an application, and a distribution that it needs."""
    return [one.varied(CALLABLE, target, extra=extra or one.extra) for one in OURS]
