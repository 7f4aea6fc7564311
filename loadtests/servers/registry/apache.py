"""Apache as a measured server: its processes, content and start, from `configurations/apache/`."""

from __future__ import annotations

import os

from loadtests.servers.registry.commands import configured
from loadtests.servers.registry.server import Server

RIGHTS = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
"""Apache does not serve as root."""
# Whom root's Apache serves as does not come into $folder.
SOCKET = "$root/../$port.socket"


def prefork(processes: int, most: int) -> str:
    """Processes with a connection each: so many begin and wait, and so many may be."""
    return configured("apache/prefork.conf", PROCESSES=processes, MOST=most)


def cgi(module: str, more: str = "", options: str = "ExecCGI") -> str:
    """The folder as CGI programs, run by mod_cgi or mod_cgid."""
    return configured("apache/cgi.conf", MODULE=module, MORE=more, OPTIONS=options)


PREFORK = prefork(10, 220)
"""As in the study of 2010."""
EVENT = configured("apache/event.conf")
"""As many connections are served at once as there may be workers."""
FILES = configured("apache/files.conf")
PHP = configured("apache/php.conf", SOCKET=SOCKET)
# An extension module like our core is of one interpreter only.
EMBEDDED = configured("apache/embedded.conf")
DAEMON = EMBEDDED + configured("apache/daemon.conf")


def apache(name: str, colour: str, *parts: str, programs: tuple[str, ...] = ()) -> Server:
    """Apache with a configuration of these parts."""
    return Server(
        name,
        colour,
        "{apache} -D FOREGROUND -f {folder}/apache.conf",
        programs=("apache", *programs),
        files=(("apache.conf", RIGHTS + configured("apache/common.conf") + "".join(parts)),),
        forks=True,
    )
