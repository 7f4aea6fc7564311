"""Servers of static files."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence

from loadtests.servers.registry.apache import EVENT, FILES, PREFORK, apache
from loadtests.servers.registry.commands import configured
from loadtests.servers.registry.content import SERVERS
from loadtests.servers.registry.server import Server
from loadtests.servers.registry.wsgi import ours_serving

NOT_PACKAGED = ("boa", "thttpd", "bozohttpd", "darkhttpd")
"""Of their kind, but not in Debian 12."""

_USER = "root" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name

STATIC: Sequence[Server] = (
    *ours_serving("static:{root}"),
    *(SERVERS[name] for name in ("nginx", "nginx + open_file_cache", "lighttpd")),
    apache("Apache event", "#e6a817", EVENT, FILES),
    apache("Apache prefork", "#a97c00", PREFORK, FILES),
    *(SERVERS[name] for name in ("granian", "uWSGI", "uWSGI + router")),
    Server(
        "webfsd",
        "#00838f",
        "{webfsd} -F -4 -i 127.0.0.1 -p {port} -c 1024 -r {root}",
        programs=("webfsd",),
    ),
    Server(
        "mini_httpd",
        "#5d4fa2",
        "{mini_httpd} -D -h 127.0.0.1 -p {port} -d {root} -i {folder}/pid -l /dev/null",
        programs=("mini_httpd",),
        note="a process for each request, and a connection for each",
        forks=True,
    ),
    Server(
        "micro-httpd under xinetd",
        "#9b8fd0",
        "{xinetd} -dontfork -f {folder}/xinetd.conf -pidfile {folder}/pid",
        programs=("xinetd", "micro_httpd"),
        files=(("xinetd.conf", configured("xinetd.conf", USER=_USER)),),
        note="a program started for each request, and a connection for each",
        forks=True,
    ),
    Server(
        "busybox httpd",
        "#78909c",
        "{busybox} httpd -f -p 127.0.0.1:{port} -h {root}",
        programs=("busybox",),
        note="a process for each connection, and a connection for each request",
        forks=True,
    ),
    Server(
        "python -m http.server",
        "#37474f",
        "{python} -m http.server {port} --bind 127.0.0.1 --directory {root}",
        note="a thread for each connection, and a connection for each request; writes a line to "
        "its log for each, which cannot be switched off",
    ),
    Server(
        "php -S",
        "#6a6fb5",
        "{php} -S 127.0.0.1:{port} -t {root}",
        programs=("php",),
        note="PHP's server for development: one request after another",
    ),
)
