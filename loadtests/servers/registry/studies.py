"""The list of servers of each study that has its own: `memory`, `loops` and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadtests.servers.registry.apache import EVENT, PREFORK, SOCKET, apache, cgi
from loadtests.servers.registry.apache import PHP as APACHE_PHP
from loadtests.servers.registry.commands import (
    GUNICORN,
    LOOPBACK,
    MODULE,
    WAITRESS,
    backend,
    begun,
    configured,
    ours,
    php_fpm,
    script,
    serve,
)
from loadtests.servers.registry.content import CONNECTIONS, PHP, STATIC, nginx, programs
from loadtests.servers.registry.content import SERVERS as CONTENT
from loadtests.servers.registry.listed import LISTED
from loadtests.servers.registry.proxied import PROXIED
from loadtests.servers.registry.server import Server, chosen
from loadtests.servers.registry.wsgi import SERVERS, WSGI, ours_serving

_BACKENDS = range(4)
_PLACES = ",\n".join(f'    ("socket" => "$folder/{number}")' for number in _BACKENDS)
MEMORY: Sequence[Server] = (
    ours("single alone", "#5b8fd0", "single --supervisor off"),
    *chosen(SERVERS, ["poorhttp single"]),
    ours("single × 4", "#083a75", "single --workers 4"),
    ours("single × 4 + preload", "#3d74b8", "single --workers 4 --preload"),
    *chosen(SERVERS, ("poorhttp forking 1", "poorhttp forking 2", "poorhttp forking 4")),
    ours("forking 4 + preload", "#0e5a6b", "forking --workers 4 --preload"),
    *chosen(SERVERS, ["poorhttp threading 8"]),
    ours("threading 8 × 2", "#136190", "threading --threads 8 --workers 2"),
    ours("threading 8 × 4", "#0d4466", "threading --threads 8 --workers 4"),
    ours("threading 8 × 4 + preload", "#4b9cc9", "threading --threads 8 --workers 4 --preload"),
    *chosen(SERVERS, ["poorhttp gevent"]),
    ours("gevent × 4", "#5fb3cd", "gevent --workers 4"),
    ours("gevent × 4 + preload", "#a5dcec", "gevent --workers 4 --preload"),
    *chosen(PROXIED, ["lighttpd + single"]),
    # At Unix sockets, as in the study of 2010.
    Server(
        "lighttpd + 4 × single",
        "#f0a592",
        script(
            "".join(backend(str(number), f"unix:{{folder}}/{number}") for number in _BACKENDS)
            + "exec {lighttpd} -D -f {folder}/lighttpd.conf"
        ),
        "poorhttp",
        programs=("sh", "lighttpd"),
        files=(("lighttpd.conf", configured("lighttpd-backends.conf", BACKENDS=_PLACES)),),
    ),
    *(one for one in WSGI if not one.ours and "poll" not in one.name),
)
"""Each mode with one worker and with several, behind a proxy, and other servers.

Only `alone` has no main process beside its worker.
"""

FIVE_PAGES: Sequence[Server] = (
    *ours_serving("static:{root}"),
    *chosen(STATIC, ("Apache event", "Apache prefork", "lighttpd", "nginx")),
    *chosen(STATIC, ("granian", "webfsd", "mini_httpd")),
    *(replace(one, name=f"{one.name}, WSGI") for one in chosen(WSGI, ["poorhttp single"])),
    *chosen(WSGI, ("gunicorn sync 2", "gunicorn gthread 8")),
    *chosen(WSGI, ("waitress 8 threads", "cheroot 8 threads")),
)
"""As files: ours, those of the study and of its kind; and as an application."""

FLOOR = CONTENT["floor"]
FILES: Sequence[Server] = (
    *ours_serving("static:{root}"),
    *chosen(STATIC, ("nginx", "lighttpd", "Apache event", "Apache prefork")),
    *chosen(STATIC, ("webfsd", "mini_httpd", "busybox httpd")),
)
"""Servers of files, one of a kind; those in Debian 12 that are like Boa come last."""

[_WEBFSD] = chosen(STATIC, ["webfsd"])
# It runs the programs of a folder below the one that it serves.
_BELOW = _WEBFSD.command.replace("{root}", "{folder}") + " -x /cgi-bin"
CGI: Sequence[Server] = (
    *ours_serving("cgi:{root}"),
    *chosen(programs(1), ["lighttpd"]),
    apache("Apache event", "#e6a817", EVENT, cgi("cgid", f'ScriptSock "{SOCKET}"')),
    apache("Apache prefork", "#a97c00", PREFORK, cgi("cgi")),
    replace(
        _WEBFSD,
        command=script(f"ln -s {{root}} {{folder}}/cgi-bin && exec {_BELOW}"),
        programs=("sh", *_WEBFSD.programs),
        target="/cgi-bin",
    ),
)
NOT_CGI = ("mini_httpd", "busybox httpd")
"""They hand on a program's head with the line ends that it has, and so do not answer in HTTP."""

# Room for as many connections to PHP as clients, in nginx.
_FEW, _MANY = (f"worker_connections {count}" for count in (CONNECTIONS, 2 * CONNECTIONS))
TEMPLATES: Sequence[Server] = (
    *ours_serving("pages:{root} --pages-reload off", "mako"),
    *(
        replace(one, files=tuple((name, text.replace(_FEW, _MANY)) for name, text in one.files))
        for one in PHP
    ),
    php_fpm(
        *("Apache event + php-fpm", "#d9a514", apache("", "", EVENT, APACHE_PHP)),
        *(SOCKET, "listen.mode = 0666"),
    ),
)
_ORDERED = (FLOOR, *FILES, *CGI, *TEMPLATES)
ORDERED: Sequence[Server] = [
    next(one for one in _ORDERED if one.name == name)
    for name in dict.fromkeys(one.name for one in _ORDERED)
]
"""All that take part in `ordered`, each once: as it serves files, if it does."""

EIGHT_THREADS: Sequence[Server] = (
    *chosen(SERVERS, ("poorhttp threading 8", "gunicorn gthread 8", "waitress 8 threads")),
    LISTED["granian 1 thread"].varied("threads 1", "threads 8", name="granian 8 threads"),
    *chosen(SERVERS, ["uWSGI 8 threads"]),
)
"""One process each."""

FOLLOWS = ours("auto", "#0b4f9e", "threading --threads auto")
_FIXED = {2: "#d6e6f0", 4: "#b3d1e3", 8: "#8ab8d3", 16: "#5f9cc0", 32: "#3a7fa9", 64: "#1f5f85"}
AUTO: Sequence[Server] = (
    FOLLOWS,
    *(ours(f"threads {n}", hue, f"threading --threads {n}") for n, hue in _FIXED.items()),
    ours("forking auto", "#2ca6c4", "forking --workers auto"),
    Server("gunicorn", "#8c5a2b", f"{GUNICORN}{MODULE}", "gunicorn"),
    Server("gunicorn 5 × 4", "#c39a6b", f"{GUNICORN} -w 5 --threads 4{MODULE}", "gunicorn"),
    *chosen(SERVERS, ["granian"]),
    LISTED["uWSGI 8 threads"].varied(
        "--threads 8", "--processes 8 --cheaper 2", name="uWSGI cheaper"
    ),
    Server("waitress", "#c03a78", f"{WAITRESS}{MODULE}", "waitress"),
)
"""Threads that follow the load, fixed numbers of them, and others by default or as advised."""

LIMITED = 16
"""Requests that nginx passes on at once: one is run by each thread, and one waits for it."""
_FIRST = "127.0.0.1:{first}"


def _limited(name: str, colour: str, application: str, package: str) -> Server:
    """nginx with `limit_conn` in front of a server, which has written its pidfile by then."""
    proxy = nginx("", "", configured("nginx/limit-conn.conf", LIMITED=LIMITED))
    return replace(
        proxy,
        name=f"nginx limit_conn + {name}",
        colour=colour,
        # gunicorn listens a moment later.
        command=script(f"{begun(application, 'first')}; sleep 0.3; exec {proxy.command}"),
        package=package,
        programs=("sh", *proxy.programs),
    )


_THREADING = serve(
    "threading --threads 8", bind=_FIRST, options="--queue-timeout 0 --backlog 2048 --pidfile"
)
_GTHREAD = (
    f"{GUNICORN} --log-level error --worker-class gthread --threads 8{MODULE} --pid"
).replace(LOOPBACK, _FIRST)
OVERLOADED: Sequence[Server] = (
    *chosen(SERVERS, ("poorhttp single", "poorhttp forking 2", "poorhttp threading 8")),
    *chosen(SERVERS, ["poorhttp gevent"]),
    *EIGHT_THREADS[1:],
    *chosen(SERVERS, ["bjoern"]),
    _limited("poorhttp threading 8", "#00695c", _THREADING, "poorhttp"),
    _limited("gunicorn gthread 8", "#7cb342", _GTHREAD, "gunicorn"),
)
"""Ours behind nginx refuses nothing itself."""
