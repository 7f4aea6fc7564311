"""Servers that the studies of WebSocket, TLS, HTTP/2, uploads and compression measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loadtests.servers.application import Application
from loadtests.servers.registry.commands import (
    CALLABLE,
    GUNICORN,
    LOOPBACK,
    MODES,
    MODULE,
    configured,
    ours,
)
from loadtests.servers.registry.content import nginx
from loadtests.servers.registry.listed import LISTED
from loadtests.servers.registry.server import Server, chosen

SOCKETS = Application("loadtests/apps", "sockets")
_PACKAGE = "simple-websocket"
UPGRADED = 6_000
"""Threads for WebSockets, where each has one."""
_GRANIAN = (
    "{python} -m granian --host 127.0.0.1 --port {port} --backlog {backlog} --log-level error"
)
_GUNICORN = f"{GUNICORN} --backlog {{backlog}} --keep-alive 75 --log-level error"
_FOLDER = "--static-path-route= --static-path-mount {root} loadtests.apps.echo:application"


def _gunicorn(name: str, colour: str, options: str) -> Server:
    command = f"{_GUNICORN} {options} --worker-connections 10000{MODULE}"
    return Server(name, colour, command, "gunicorn", _PACKAGE, application=SOCKETS)


def _granian(name: str, options: str, **fields: Any) -> Server:
    return Server(name, "#b57fd0", f"{_GRANIAN} {options}", "granian", **fields)


WEBSOCKET: Sequence[Server] = (
    ours(
        *("threading", "#1a7fb8", "threading --threads 8"),
        options=f"--upgraded-threads {UPGRADED}",
        extra=_PACKAGE,
        application=SOCKETS,
    ),
    ours("gevent", "#7cc7df", "gevent", application=SOCKETS),
    _gunicorn("gunicorn gthread", "#8c5a2b", f"--worker-class gthread --threads {UPGRADED}"),
    _gunicorn("gunicorn gevent", "#c39a6b", "--worker-class gevent"),
    replace(LISTED["Werkzeug"], extra=_PACKAGE, application=SOCKETS),
    _granian(
        "granian ASGI",
        f"--interface asgi{MODULE}",
        application=Application("loadtests/apps", "sockets_asgi", view=SOCKETS),
    ),
)
"""All but granian run simple-websocket, with two threads or greenlets for each WebSocket."""

_CERTIFICATE, _KEY = "{folder}/cert.pem", "{folder}/key.pem"
"""Files that the study `tls` adds; `both.pem` has both."""
_OURS_TLS = f"--tls-certificate {_CERTIFICATE} --tls-key {_KEY}"
_TWO = {mode: MODES[mode] for mode in ("single", "threading --threads 8")}
_GRANIAN_TLS = f"--ssl-certificate {_CERTIFICATE} --ssl-keyfile {_KEY}"
TLS: Sequence[Server] = (
    *(
        ours(
            *(mode.split()[0], colour, mode, "static:{root}", _OURS_TLS),
            bind=f"https://{LOOPBACK}",
            tls=True,
        )
        for mode, colour in _TWO.items()
    ),
    replace(nginx("nginx", "#2f7d32", configured("nginx/tls.conf")), tls=True),
    Server(
        "HAProxy",
        "#5c6b9e",
        "{haproxy} -db -f {folder}/haproxy.cfg",
        programs=("haproxy",),
        files=(("haproxy.cfg", configured("haproxy-tls.cfg")),),
        tls=True,
        note="answers from its memory, and has no large files",
    ),
    _granian(
        "granian", f"--interface wsgi {_GRANIAN_TLS} --ssl-protocol-min tls1.2 {_FOLDER}", tls=True
    ),
)
"""Files of a folder over TLS, one worker each."""


def http2(*, files: bool, secure: bool) -> Sequence[Server]:
    """Servers of HTTP/2 and HTTP/1.1 at {port}, over TLS if `secure`: of a folder or a program.

    nginx speaks HTTP/2 at {first}: it takes no other protocol there without TLS.
    """
    target, bind = ("static:{root}" if files else CALLABLE), f"https://{LOOPBACK}"
    options = f"--http2 on {_OURS_TLS}" if secure else "--http2 on"
    modes = (
        ours(mode.split()[0], colour, mode, target, options, bind if secure else LOOPBACK)
        for mode, colour in MODES.items()
    )
    granian = f"{_GRANIAN_TLS} " if secure else ""
    other = _granian("granian", f"--interface wsgi {granian}{_FOLDER if files else MODULE.strip()}")
    if files:
        pair = f"ssl_certificate {_CERTIFICATE}; ssl_certificate_key {_KEY};" if secure else ""
        words = {"SECRETS": pair.replace("{folder}", "$folder"), "TLS": "ssl" if secure else ""}
        last = nginx("nginx", "#2f7d32", configured("nginx/http2.conf", **words))
    else:
        command = f"{_GUNICORN} {_GTHREAD} --http-protocols h2,h1 --http2-cleartext both"
        command += f" --certfile {_CERTIFICATE} --keyfile {_KEY}" if secure else ""
        last = Server("gunicorn gthread", "#8c5a2b", command + MODULE, "gunicorn", "h2")
    return [replace(one, tls=secure) for one in (*modes, other, last)]


_WSGI_INTERFACE, _GTHREAD = "--interface wsgi", "--worker-class gthread --threads 8"
HTTP2: Sequence[Server] = list(
    {one.name: one for files in (False, True) for one in http2(files=files, secure=False)}.values()
)
"""Each once, for its name."""

_THREADED = {one.name: one for one in http2(files=False, secure=False)}
_MANY = 250
"""Threads of those that run each of 200 streams on one."""


def _streaming(name: str, like: str, old: str, new: str, **fields: str) -> Server:
    """A server with other options in its command; all of them allow as many streams as ours."""
    allowing = f"{new} --http2-max-concurrent-streams {_MANY}"
    return _THREADED[like].varied(old, allowing, name=name, **fields)


EVENTS: Sequence[Server] = (
    _THREADED["poorhttp threading"],
    _THREADED["poorhttp gevent"],
    *(
        _streaming(f"{name} {threads}{words}", name, old, new.format(threads))
        for threads in (8, _MANY)
        for name, words, old, new in (
            ("granian", " threads", _WSGI_INTERFACE, f"{_WSGI_INTERFACE} --blocking-threads {{}}"),
            ("gunicorn gthread", "", _GTHREAD, "--worker-class gthread --threads {}"),
        )
    ),
    _streaming(
        *("gunicorn gevent", "gunicorn gthread", _GTHREAD, "--worker-class gevent"), extra="gevent"
    ),
)
"""Servers of event streams over HTTP/1.1 and HTTP/2 without TLS, one worker each."""

_LARGE = "--max-body 4G"
_STREAMED = f"{_LARGE} --stream-request-body on"
UPLOADS: Sequence[Server] = (
    ours("single", "#0b4f9e", "single", options=_STREAMED),
    ours("threading", "#1a7fb8", "threading --threads 8", options=_STREAMED),
    ours("forking", "#2ca6c4", "forking --workers 2", options=_STREAMED),
    ours("gevent", "#7cc7df", "gevent", options=_STREAMED),
    ours("threading, whole body first", "#5b8fd0", "threading --threads 8", options=_LARGE),
    *chosen(LISTED.values(), ("gunicorn sync 2", "gunicorn gthread 8", "cheroot 8 threads")),
)

RECORDS = Application("loadtests/apps", "records")
_FLASK: dict[str, Any] = {
    "extra": "flask-compress",
    "application": Application("loadtests/apps", "records_flask", view=RECORDS),
}
COMPRESSED: Sequence[Server] = (
    *(
        ours(mode.split()[0], colour, mode, options="--compress on", application=RECORDS)
        for mode, colour in _TWO.items()
    ),
    *(
        nginx(f"nginx, level {level}", colour, configured("nginx/gzip.conf", LEVEL=level))
        for level, colour in ((1, "#7cb342"), (6, "#2f7d32"))
    ),
    replace(LISTED["gunicorn gthread 8"], name="gunicorn + Flask-Compress", **_FLASK),
    ours("single + Flask-Compress", "#5b8fd0", "single", **_FLASK),
)
"""nginx has the same as files. Without an application: what the study makes."""
