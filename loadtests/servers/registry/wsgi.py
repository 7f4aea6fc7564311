"""Servers of WSGI applications: ours and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadtests.servers.registry.apache import DAEMON, EMBEDDED, EVENT, PREFORK, apache
from loadtests.servers.registry.commands import GRANIAN, GUNICORN, MODULE, UWSGI, ours, serve
from loadtests.servers.registry.server import Server

FLOOR = Server("floor", "#8a8f98", "{floor} {port} {body} {content_type} {request_body}")

_BJOERN = (
    "import~bjoern,{module};"
    "bjoern.run({module}.{callable},'127.0.0.1',{port},listen_backlog={backlog})"
)
_PYWSGI = (
    "from~gevent~import~monkey;monkey.patch_all();import~socket,{module};"
    "from~gevent.pywsgi~import~WSGIServer;"
    "listener=socket.create_server(('127.0.0.1',{port}),backlog={backlog});"
    "listener.setsockopt(socket.IPPROTO_TCP,socket.TCP_NODELAY,1);"
    "WSGIServer(listener,{module}.{callable},log=None).serve_forever()"
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


def _gunicorn(name: str, colour: str, options: str, extra: str = "") -> Server:
    command = f"{GUNICORN} --backlog {{backlog}} --keep-alive 75 --log-level error {options}"
    return Server(f"gunicorn {name}", colour, command + MODULE, "gunicorn", extra)


def _granian(name: str, colour: str, options: str = "") -> Server:
    command = f"{GRANIAN} --backlog {{backlog}} --log-level error{options}"
    return Server(name, colour, command + MODULE, "granian")


def _uwsgi(name: str, colour: str, options: str) -> Server:
    command = (
        f"{UWSGI} --http11-socket 127.0.0.1:{{port}} --listen {{backlog}} {options} --master "
        "--die-on-term --disable-logging --pythonpath . --module {module}:{callable}"
    )
    return Server(f"uWSGI {name}", colour, command, "uWSGI")


def _waitress(name: str, colour: str, options: str = "") -> Server:
    command = (
        f"{{python}} -m waitress --listen 127.0.0.1:{{port}}{options} --threads 8 "
        "--backlog {backlog} --connection-limit 900"
    )
    return Server(f"waitress {name}", colour, command + MODULE, "waitress")


def _fast(name: str, colour: str) -> Server:
    command = f"{{scripts}}/{name} --host 127.0.0.1 -p {{port}} -l 0"
    return Server(name, colour, command + MODULE, name)


SERVERS = (
    FLOOR,
    ours("single", "#0b4f9e", "single"),
    replace(
        ours("single + log", "#5b8fd0", "single"),
        command=serve("single", log="--access-log {log}"),
    ),
    ours("threading 8", "#1a7fb8", "threading --threads 8"),
    ours("forking 2", "#2ca6c4", "forking --workers 2"),
    ours("gevent", "#7cc7df", "gevent"),
    replace(ours("threading 32", "#1a7fb8", "threading --threads 32"), compared=False),
    replace(ours("forking 1", "#7fd0e2", "forking --workers 1"), compared=False),
    replace(ours("forking 4", "#14788f", "forking --workers 4"), compared=False),
    _fast("fastpysgi", "#c8452c"),
    _fast("fastwsgi", "#e8843c"),
    Server("bjoern", "#d9a514", "{python} -c " + _BJOERN, "bjoern"),
    _granian("granian 1 thread", "#7a3e9d", " --blocking-threads 1"),
    _granian("granian", "#b57fd0"),
    _uwsgi("8 threads", "#3f8f3f", "--threads 8"),
    _gunicorn("gthread 8", "#8c5a2b", "--worker-class gthread --threads 8"),
    _gunicorn("gevent", "#c39a6b", "--worker-class gevent", "gevent"),
    replace(_gunicorn("sync 4", "#5e3a17", "--workers 4"), compared=False),
    _waitress("8 threads", "#c03a78"),
    Server(
        "cheroot 8 threads",
        "#e58fb4",
        "{python} -m cheroot --bind 127.0.0.1:{port} --threads 8 --request-queue-size {backlog}"
        + MODULE,
        "cheroot",
    ),
    Server(
        "gevent pywsgi",
        "#6b7a1e",
        "{python} -c " + _PYWSGI,
        "gevent",
        note="is given TCP_NODELAY, which it does not set itself: it sends head and body apart, "
        "and without it each answer waits 40 ms for the client's acknowledgement",
    ),
)
"""Servers of the benchmark, and others that single experiments of it take."""

_BY_NAME = {
    one.name: one
    for one in (
        *SERVERS,
        apache("Apache mod_wsgi prefork", "#b8860b", PREFORK, EMBEDDED, programs=("mod_wsgi",)),
        apache("Apache mod_wsgi 8 threads", "#e0b84c", EVENT, DAEMON, programs=("mod_wsgi",)),
        _gunicorn("sync 2", "#6b4420", "--workers 2"),
        _uwsgi("2 processes", "#1f5c2e", "--processes 2"),
        _waitress("8 threads, poll", "#8e1f52", " --asyncore-use-poll"),
        Server("Werkzeug", "#57b894", "{python} -c " + _WERKZEUG, "werkzeug"),
        Server(
            "wsgiref",
            "#4d5560",
            "{python} -c " + _WSGIREF,
            note="one request after another, each on a connection of its own; of the standard "
            "library",
        ),
    )
}
_OURS = ("poorhttp single", "poorhttp forking 2", "poorhttp threading 8", "poorhttp gevent")
OURS: Sequence[Server] = [_BY_NAME[name] for name in _OURS]
WSGI: Sequence[Server] = [
    _BY_NAME[name]
    for name in (
        *_OURS,
        *("Apache mod_wsgi prefork", "Apache mod_wsgi 8 threads"),
        *("gunicorn sync 2", "gunicorn gthread 8", "gunicorn gevent"),
        *("uWSGI 2 processes", "uWSGI 8 threads", "granian"),
        *("waitress 8 threads", "waitress 8 threads, poll", "cheroot 8 threads"),
        *("gevent pywsgi", "bjoern", "fastpysgi", "fastwsgi", "Werkzeug", "wsgiref"),
    )
]
"""Servers of the studies, in the order of their tables."""
