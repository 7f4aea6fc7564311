"""Servers that the studies of WebSocket, TLS, HTTP/2, uploads and compression measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadtests.servers.application import Application
from loadtests.servers.registry.commands import (
    CALLABLE,
    GUNICORN,
    LOOPBACK,
    MODULE,
    configured,
    ours,
)
from loadtests.servers.registry.content import nginx
from loadtests.servers.registry.server import Server, chosen
from loadtests.servers.registry.wsgi import SERVERS, WSGI

SOCKETS = Application("loadtests/apps", "sockets")
_ASGI = Application("loadtests/apps", "sockets_asgi", view=SOCKETS)
_PACKAGE = "simple-websocket"
UPGRADED = 6_000
"""Threads for WebSockets, where each has one."""
_GRANIAN = (
    "{python} -m granian --host 127.0.0.1 --port {port} --backlog {backlog} --log-level error"
)


def _gunicorn(name: str, colour: str, options: str, extra: str = _PACKAGE) -> Server:
    command = f"{GUNICORN} --backlog {{backlog}} --keep-alive 75 --log-level error {options}"
    return Server(name, colour, command + MODULE, "gunicorn", extra, application=SOCKETS)


[_WERKZEUG] = chosen(WSGI, ["Werkzeug"])
WEBSOCKET: Sequence[Server] = (
    replace(
        ours(
            *("threading", "#1a7fb8", "threading --threads 8"),
            options=f"--upgraded-threads {UPGRADED}",
            extra=_PACKAGE,
        ),
        application=SOCKETS,
    ),
    replace(ours("gevent", "#7cc7df", "gevent"), application=SOCKETS),
    _gunicorn(
        "gunicorn gthread",
        "#8c5a2b",
        f"--worker-class gthread --threads {UPGRADED} --worker-connections 10000",
    ),
    _gunicorn("gunicorn gevent", "#c39a6b", "--worker-class gevent --worker-connections 10000"),
    replace(_WERKZEUG, extra=_PACKAGE, application=SOCKETS),
    Server(
        "granian ASGI",
        "#b57fd0",
        f"{_GRANIAN} --interface asgi {MODULE.strip()}",
        "granian",
        application=_ASGI,
    ),
)
"""All but granian run simple-websocket, with two threads or greenlets for each WebSocket."""

_CERTIFICATE, _KEY = "{folder}/cert.pem", "{folder}/key.pem"
"""Files that the study `tls` adds; `both.pem` has both."""


def _ours_tls(mode: str, colour: str) -> Server:
    server = ours(
        *(mode.partition(" ")[0], colour, mode, "static:{root}"),
        bind=f"https://{LOOPBACK}",
        options=f"--tls-certificate {_CERTIFICATE} --tls-key {_KEY}",
    )
    return replace(server, tls=True)


TLS: Sequence[Server] = (
    _ours_tls("single", "#0b4f9e"),
    _ours_tls("threading --threads 8", "#1a7fb8"),
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
    Server(
        "granian",
        "#b57fd0",
        f"{_GRANIAN} --interface wsgi --ssl-certificate {_CERTIFICATE} --ssl-keyfile {_KEY} "
        "--ssl-protocol-min tls1.2 "
        "--static-path-route= --static-path-mount {root} loadtests.apps.echo:application",
        "granian",
        tls=True,
    ),
)
"""Files of a folder over TLS, one worker each."""

_H2_MODES = {
    "single": ("single", "#0b4f9e"),
    "forking": ("forking --workers 2", "#2ca6c4"),
    "threading": ("threading --threads 8", "#1a7fb8"),
    "gevent": ("gevent", "#7cc7df"),
}


def http2(*, files: bool, secure: bool) -> Sequence[Server]:
    """Servers of HTTP/2 and HTTP/1.1 at {port}, over TLS if `secure`: of a folder or a program.

    nginx speaks HTTP/2 at {first}: it takes no other protocol there without TLS.
    """
    pair = _CERTIFICATE, _KEY
    own = "--tls-certificate {} --tls-key {}".format(*pair) if secure else ""
    modes = (
        ours(
            name,
            colour,
            mode,
            "static:{root}" if files else CALLABLE,
            options=f"--http2 on {own}",
            bind=f"https://{LOOPBACK}" if secure else LOOPBACK,
        )
        for name, (mode, colour) in _H2_MODES.items()
    )
    granian = "--ssl-certificate {} --ssl-keyfile {} ".format(*pair) if secure else ""
    granian += "--static-path-route= --static-path-mount {root} " if files else ""
    callable_ = "loadtests.apps.echo:application" if files else MODULE.strip()
    others = [
        Server("granian", "#b57fd0", f"{_GRANIAN} --interface wsgi {granian}{callable_}", "granian")
    ]
    if files:
        secrets = f"ssl_certificate {_CERTIFICATE}; ssl_certificate_key {_KEY};" if secure else ""
        words = {"SECRETS": secrets.replace("{folder}", "$folder"), "TLS": "ssl" if secure else ""}
        others.append(nginx("nginx", "#2f7d32", configured("nginx/http2.conf", **words)))
    else:
        secrets = f"--certfile {pair[0]} --keyfile {pair[1]} " if secure else ""
        others.append(
            Server(
                "gunicorn gthread",
                "#8c5a2b",
                f"{GUNICORN} --worker-class gthread --threads 8 --backlog {{backlog}} "
                "--keep-alive 75 --log-level error --http-protocols h2,h1 --http2-cleartext both "
                f"{secrets}{MODULE.strip()}",
                "gunicorn",
                "h2",
            )
        )
    return [replace(one, tls=secure) for one in (*modes, *others)]


HTTP2: Sequence[Server] = list(
    {one.name: one for files in (False, True) for one in http2(files=files, secure=False)}.values()
)
"""Each once, for its name."""

_THREADED = {one.name: one for one in http2(files=False, secure=False)}
_MANY = 250
"""Threads of those that run each of 200 streams on one."""
_STREAMS_ALLOWED = f"--http2-max-concurrent-streams {_MANY}"


def _varied(name: str, like: str, old: str, new: str, extra: str = "") -> Server:
    """A server with other options in its command; all of them allow as many streams as ours."""
    server = _THREADED[like]
    command = server.command.replace(old, f"{new} {_STREAMS_ALLOWED}", 1)
    return replace(server, name=name, command=command, extra=extra or server.extra)


_WSGI_INTERFACE, _GTHREAD = "--interface wsgi", "--worker-class gthread --threads 8"
EVENTS: Sequence[Server] = (
    _THREADED["poorhttp threading"],
    _THREADED["poorhttp gevent"],
    *(
        server
        for threads in (8, _MANY)
        for server in (
            _varied(
                *(f"granian {threads} threads", "granian", _WSGI_INTERFACE),
                f"{_WSGI_INTERFACE} --blocking-threads {threads}",
            ),
            _varied(
                *(f"gunicorn gthread {threads}", "gunicorn gthread", _GTHREAD),
                f"--worker-class gthread --threads {threads}",
            ),
        )
    ),
    _varied("gunicorn gevent", "gunicorn gthread", _GTHREAD, "--worker-class gevent", "gevent"),
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
    *chosen(WSGI, ("gunicorn sync 2", "gunicorn gthread 8", "cheroot 8 threads")),
)

RECORDS = Application("loadtests/apps", "records")
_FLASK = Application("loadtests/apps", "records_flask", view=RECORDS)
COMPRESSED: Sequence[Server] = (
    *(
        replace(
            ours(*(mode.partition(" ")[0], colour, mode), options="--compress on"),
            application=RECORDS,
        )
        for mode, colour in (("single", "#0b4f9e"), ("threading --threads 8", "#1a7fb8"))
    ),
    *(
        nginx(f"nginx, level {level}", colour, configured("nginx/gzip.conf", LEVEL=level))
        for level, colour in ((1, "#7cb342"), (6, "#2f7d32"))
    ),
    replace(
        chosen(SERVERS, ["gunicorn gthread 8"])[0],
        name="gunicorn + Flask-Compress",
        extra="flask-compress",
        application=_FLASK,
    ),
    replace(
        ours("single + Flask-Compress", "#5b8fd0", "single", extra="flask-compress"),
        application=_FLASK,
    ),
)
"""nginx has the same as files. Without an application: what the study makes."""
