"""Servers of WSGI applications: ours and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loadtests.servers.registry.apache import DAEMON, EMBEDDED, EVENT, PREFORK, apache
from loadtests.servers.registry.commands import CALLABLE, GRANIAN, GUNICORN, MODULE, UWSGI, ours
from loadtests.servers.registry.server import Server, chosen

FLOOR = Server("floor", "#8a8f98", "{floor} {port} {body} {content_type} {request_body}")

_COMMANDS = {
    "bjoern": "{python} -c import~bjoern,{module};"
    "bjoern.run({module}.{callable},'127.0.0.1',{port},listen_backlog={backlog})",
    "cheroot": "{python} -m cheroot --bind 127.0.0.1:{port} --threads 8 "
    "--request-queue-size {backlog}" + MODULE,
    "fastpysgi": "{scripts}/fastpysgi --host 127.0.0.1 -p {port} -l 0" + MODULE,
    "fastwsgi": "{scripts}/fastwsgi --host 127.0.0.1 -p {port} -l 0" + MODULE,
    "gevent": "{python} -c from~gevent~import~monkey;monkey.patch_all();import~socket,{module};"
    "from~gevent.pywsgi~import~WSGIServer;"
    "listener=socket.create_server(('127.0.0.1',{port}),backlog={backlog});"
    "listener.setsockopt(socket.IPPROTO_TCP,socket.TCP_NODELAY,1);"
    "WSGIServer(listener,{module}.{callable},log=None).serve_forever()",
    "granian": f"{GRANIAN} --backlog {{backlog}} --log-level error OPTIONS{MODULE}",
    "gunicorn": f"{GUNICORN} --backlog {{backlog}} --keep-alive 75 --log-level error OPTIONS"
    f"{MODULE}",
    "uWSGI": f"{UWSGI} --http11-socket 127.0.0.1:{{port}} --listen {{backlog}} OPTIONS --master "
    "--die-on-term --disable-logging --pythonpath . --module {module}:{callable}",
    "waitress": "{python} -m waitress --listen 127.0.0.1:{port} OPTIONS --threads 8 "
    "--backlog {backlog} --connection-limit 900" + MODULE,
    "werkzeug": "{python} -c import~logging,{module};"
    "from~werkzeug.serving~import~run_simple;"
    "logging.getLogger('werkzeug').setLevel(logging.ERROR);"
    "run_simple('127.0.0.1',{port},{module}.{callable},threaded=True)",
    "": "{python} -c import~{module};from~wsgiref~import~simple_server~as~s;"
    "s.WSGIServer.request_queue_size={backlog};"
    "s.WSGIRequestHandler.log_message=lambda~*words:None;"
    "s.make_server('127.0.0.1',{port},{module}.{callable}).serve_forever()",
}
"""Commands of the others, by package; that of the standard library has none."""


def _peer(
    package: str, name: str, colour: str, options: str = "", extra: str = "", **more: Any
) -> Server:
    command = _COMMANDS[package].replace(" OPTIONS", f" {options}" if options else "")
    return Server(name, colour, command, package, extra, **more)


_ADMIN = "--admin unix:{folder}/admin"
_IDS = "--request-id on --error-log-format json"

SERVERS = (
    FLOOR,
    ours("single", "#0b4f9e", "single"),
    ours("single + log", "#5b8fd0", "single", log="--access-log {log}"),
    ours("threading 8", "#1a7fb8", "threading --threads 8"),
    ours("forking 2", "#2ca6c4", "forking --workers 2"),
    ours("gevent", "#7cc7df", "gevent"),
    ours("single, no monitoring", "#8a8f98", "single", options="--proc-name off", compared=False),
    ours(
        *("single + admin", "#7a3e9d", "single"),
        options=f"--proc-name off {_ADMIN}",
        compared=False,
    ),
    ours(
        *("single + monitoring", "#3f8f3f", "single"),
        options=f"{_ADMIN} {_IDS}",
        compared=False,
    ),
    ours("threading 32", "#1a7fb8", "threading --threads 32", compared=False),
    ours("forking 1", "#7fd0e2", "forking --workers 1", compared=False),
    ours("forking 4", "#14788f", "forking --workers 4", compared=False),
    _peer("fastpysgi", "fastpysgi", "#c8452c"),
    _peer("fastwsgi", "fastwsgi", "#e8843c"),
    _peer("bjoern", "bjoern", "#d9a514"),
    _peer("granian", "granian 1 thread", "#7a3e9d", "--blocking-threads 1"),
    _peer("granian", "granian", "#b57fd0"),
    _peer("uWSGI", "uWSGI 8 threads", "#3f8f3f", "--threads 8"),
    _peer("gunicorn", "gunicorn gthread 8", "#8c5a2b", "--worker-class gthread --threads 8"),
    _peer("gunicorn", "gunicorn gevent", "#c39a6b", "--worker-class gevent", "gevent"),
    _peer("gunicorn", "gunicorn sync 4", "#5e3a17", "--workers 4", compared=False),
    _peer("waitress", "waitress 8 threads", "#c03a78"),
    _peer("cheroot", "cheroot 8 threads", "#e58fb4"),
    _peer(
        "gevent",
        "gevent pywsgi",
        "#6b7a1e",
        note="is given TCP_NODELAY, which it does not set itself: it sends head and body "
        "separately, and without it each answer waits 40 ms for the client's acknowledgement",
    ),
)
"""Servers of the benchmark, and others that single experiments of it take."""

_OTHERS = (
    apache("Apache mod_wsgi prefork", "#b8860b", PREFORK, EMBEDDED, programs=("mod_wsgi",)),
    apache("Apache mod_wsgi 8 threads", "#e0b84c", EVENT, DAEMON, programs=("mod_wsgi",)),
    _peer("gunicorn", "gunicorn sync 2", "#6b4420", "--workers 2"),
    _peer("uWSGI", "uWSGI 2 processes", "#1f5c2e", "--processes 2"),
    _peer("waitress", "waitress 8 threads, poll", "#8e1f52", "--asyncore-use-poll"),
    _peer("werkzeug", "Werkzeug", "#57b894"),
    _peer(
        "",
        "wsgiref",
        "#4d5560",
        note="one request after another, each on a connection of its own; of the standard library",
    ),
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
    return [
        replace(one, command=one.command.replace(CALLABLE, target), extra=extra or one.extra)
        for one in OURS
    ]
