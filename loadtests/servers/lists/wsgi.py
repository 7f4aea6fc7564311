"""Servers of WSGI applications: ours and others."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.servers.apache import DAEMON, EMBEDDED, EVENT, PREFORK, apache
from loadtests.servers.registry import Server, named

_GUNICORN = (
    "{python} -m gunicorn --bind 127.0.0.1:{port} --backlog {backlog} --keep-alive 75 "
    "--log-level error "
)
_UWSGI = (
    "{scripts}/uwsgi --http11-socket 127.0.0.1:{port} --listen {backlog} --master --die-on-term "
    "--disable-logging --pythonpath . --module {module}:{callable} "
)
_WERKZEUG = (
    "import~logging,{module};from~werkzeug.serving~import~run_simple;"
    "logging.getLogger('werkzeug').setLevel(logging.ERROR);"
    "run_simple('127.0.0.1',{port},{module}.{callable},threaded=True)"
)
_WSGIREF = (
    "import~{module};from~wsgiref~import~simple_server~as~s;"
    "s.WSGIServer.request_queue_size={backlog};"
    "s.WSGIRequestHandler.log_message=lambda~*words:None;"
    "s.make_server('127.0.0.1',{port},{module}.{callable}).serve_forever()"
)


def _known(name: str) -> Server:
    return named([name])[0]


_WAITRESS = _known("waitress 8 threads")

OURS: Sequence[Server] = [
    _known(f"poorhttp {mode}") for mode in ("single", "forking 2", "threading 8", "gevent")
]
APACHE: Sequence[Server] = (
    apache("Apache mod_wsgi prefork", "#b8860b", PREFORK, EMBEDDED, programs=("mod_wsgi",)),
    apache("Apache mod_wsgi 8 threads", "#e0b84c", EVENT, DAEMON, programs=("mod_wsgi",)),
)
PEERS: Sequence[Server] = (
    Server(
        "gunicorn sync 2",
        "#6b4420",
        _GUNICORN + "--workers 2 {module}:{callable}",
        "gunicorn",
    ),
    _known("gunicorn gthread 8"),
    _known("gunicorn gevent"),
    Server("uWSGI 2 processes", "#1f5c2e", _UWSGI + "--processes 2", "uWSGI"),
    _known("uWSGI 8 threads"),
    _known("granian"),
    _WAITRESS,
    Server(
        "waitress 8 threads, poll",
        "#8e1f52",
        _WAITRESS.command.replace(" --threads", " --asyncore-use-poll --threads"),
        "waitress",
    ),
    _known("cheroot 8 threads"),
    _known("gevent pywsgi"),
    _known("bjoern"),
    _known("fastpysgi"),
    _known("fastwsgi"),
    Server("Werkzeug", "#57b894", "{python} -c " + _WERKZEUG, "werkzeug"),
    Server(
        "wsgiref",
        "#4d5560",
        "{python} -c " + _WSGIREF,
        note="one request after another, each on a connection of its own; of the standard library",
    ),
)
WSGI: Sequence[Server] = (*OURS, *APACHE, *PEERS)
