"""Servers of static files."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence

from loadtests.servers.registry.apache import EVENT, FILES, PREFORK, apache
from loadtests.servers.registry.commands import configured
from loadtests.servers.registry.content import SERVERS
from loadtests.servers.registry.listed import LISTED
from loadtests.servers.registry.server import Server
from loadtests.servers.registry.wsgi import ours_serving

_USER = "root" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name

STATIC: Sequence[Server] = (
    *ours_serving("static:{root}"),
    *(SERVERS[name] for name in ("nginx", "nginx + open_file_cache", "lighttpd")),
    apache("Apache event", "#e6a817", EVENT, FILES),
    apache("Apache prefork", "#a97c00", PREFORK, FILES),
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
