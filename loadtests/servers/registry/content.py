"""Commands to start each server for each kind of content.

One worker each, no access log, and what its documentation recommends for the job.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from dataclasses import replace

from loadtests.servers.registry.apache import EVENT, PREFORK, apache, cgi, prefork
from loadtests.servers.registry.apache import FILES as APACHE_FILES
from loadtests.servers.registry.commands import (
    GRANIAN,
    LOOPBACK,
    PHP_CHILDREN,
    UWSGI,
    configured,
    ours,
    php_fpm,
)
from loadtests.servers.registry.listed import LISTED
from loadtests.servers.registry.server import Server
from loadtests.servers.registry.wsgi import FLOOR, ours_serving

CONNECTIONS = 2048
APACHE_SPARE = 4


def nginx(name: str, colour: str, http: str) -> Server:
    """nginx with one process that logs nothing but errors, and lets go of no connection.

    `http` is what else stands in `http`, indented.
    """
    text = configured("nginx/common.conf", CONNECTIONS=CONNECTIONS, HTTP=http.rstrip("\n"))
    command = "{nginx} -e stderr -c {folder}/nginx.conf"
    return Server(name, colour, command, programs=("nginx",), files=(("nginx.conf", text),))


def _nginx(name: str, colour: str, more: str = "", location: str = "") -> Server:
    return nginx(name, colour, configured("nginx/files.conf", MORE=more, LOCATION=location))


def _lighttpd(name: str, colour: str, more: str = "", programs: tuple[str, ...] = ()) -> Server:
    return Server(
        name,
        colour,
        "{lighttpd} -D -f {folder}/lighttpd.conf",
        programs=("lighttpd", *programs),
        files=(("lighttpd.conf", configured("lighttpd/common.conf") + more),),
    )


def _uwsgi(name: str, colour: str, http: str, more: str = "", note: str = "") -> Server:
    command = (
        f"{UWSGI} {http} --listen {{backlog}} --threads 8 --master --die-on-term "
        f"--disable-logging {more}--static-map /={{root}}"
    )
    return Server(name, colour, command, "uWSGI", note=note)


FILES: Sequence[Server] = (
    # It says what the others say besides: about as many octets as lighttpd and nginx send.
    replace(
        FLOOR,
        command=FLOOR.command + " Last-Modified:~Fri,~02~Oct~2009~12:00:00~GMT "
        "ETag:~6b009629-600 Accept-Ranges:~bytes",
    ),
    ours("single", "#0b4f9e", "single", "static:{root}"),
    ours("threading", "#1a7fb8", "threading", "static:{root}"),
    _nginx("nginx", "#2f7d32"),
    _nginx("nginx + open_file_cache", "#7cb342", "open_file_cache max=1000;"),
    _lighttpd("lighttpd", "#c8452c"),
    Server(
        "granian",
        "#b57fd0",
        f"{GRANIAN} --backlog {{backlog}} --log-level error --static-path-route= "
        "--static-path-mount {root} loadtests.apps.echo:application",
        "granian",
    ),
    _uwsgi(
        "uWSGI",
        "#3f8f3f",
        f"--http-socket {LOOPBACK}",
        "--offload-threads 1 ",
        note="closes each connection after a file: its clients connect anew for each request",
    ),
    _uwsgi("uWSGI + router", "#7cc38f", f"--http {LOOPBACK} --http-keepalive=75 --tcp-nodelay"),
)

_PHP_CGI = configured("lighttpd/php-cgi.conf", PROCESSES=PHP_CHILDREN)
_FPM = configured("lighttpd/php-fpm.conf")
_LOCATION = configured("nginx/php-fpm.conf").rstrip("\n")
PHP: Sequence[Server] = (
    _lighttpd("lighttpd + php-cgi", "#c8452c", _PHP_CGI, ("php_cgi",)),
    php_fpm("lighttpd + php-fpm", "#e8843c", _lighttpd("", "", _FPM)),
    php_fpm("nginx + php-fpm", "#2f7d32", _nginx("", "", location=_LOCATION)),
)
# PHP looks for a change every two seconds, ours each time or never.
_TEMPLATES = "pages:{root} --pages-reload off"
PAGES: Sequence[Server] = (
    ours("pages, single", "#0b4f9e", "single", _TEMPLATES, extra="mako"),
    ours("pages, threading", "#1a7fb8", "threading", _TEMPLATES, extra="mako"),
)
FLASK: Sequence[Server] = (
    ours("Flask, single", "#5b8fd0", "single", extra="flask"),
    ours("Flask, threading", "#7cc7df", "threading", extra="flask"),
)


def programs(at_once: int) -> Sequence[Server]:
    """Servers of CGI programs. Apache has a process for each request, and some that still close."""
    processes = at_once + APACHE_SPARE
    folder = cgi("cgi", options="ExecCGI FollowSymLinks")
    return (
        ours("single", "#0b4f9e", "single", "cgi:{root}"),
        ours("threading", "#1a7fb8", "threading", "cgi:{root}"),
        _lighttpd("lighttpd", "#c8452c", configured("lighttpd/cgi.conf")),
        apache("Apache", "#d9a514", prefork(processes, processes), folder),
    )


SERVERS = {one.name: one for one in (*FILES, *programs(1), *PAGES, *FLASK, *PHP)}
"""By name. What is called the same is the same server, with other content."""

_USER = "root" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name

STATIC: Sequence[Server] = (
    *ours_serving("static:{root}"),
    *(SERVERS[name] for name in ("nginx", "nginx + open_file_cache", "lighttpd")),
    apache("Apache event", "#e6a817", EVENT, APACHE_FILES),
    apache("Apache prefork", "#a97c00", PREFORK, APACHE_FILES),
    *(SERVERS[name] for name in ("granian", "uWSGI", "uWSGI + router")),
    *(LISTED[name] for name in ("webfsd", "mini_httpd")),
    Server(
        "micro-httpd under xinetd",
        "#9b8fd0",
        "{xinetd} -dontfork -f {folder}/xinetd.conf -pidfile {folder}/pid",
        programs=("xinetd", "micro_httpd"),
        files=(("xinetd.conf", configured("xinetd.conf", USER=_USER)),),
        note="a program started for each request, and a connection for each",
        forks=True,
    ),
    *(LISTED[name] for name in ("busybox httpd", "python -m http.server", "php -S")),
)
"""Servers of static files."""
