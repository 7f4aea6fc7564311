"""One and two of our `single` behind a proxy, started and stopped together."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from loadtests.programs import ROOT
from loadtests.servers.registry.apache import RIGHTS
from loadtests.servers.registry.commands import backend, script
from loadtests.servers.registry.server import Server

SHIPPED = ROOT / "proxy"
PORTS = {"8000": "$port", "8080": "FIRST", "8081": "SECOND"}
"""Ports of the shipped configurations, and their replacements here."""


def rewritten(text: str, servers: int) -> str:
    """A shipped configuration with other ports, and for one server without the line of the second.

    Numbers in comments stay.
    """
    lines = []
    for line in text.replace("$", "$$").splitlines(keepends=True):
        if line.lstrip().startswith("#"):
            lines.append(line)
        elif servers == 2 or not re.search(r"\b8081\b", line):
            lines.append(re.sub(r"\b80(?:00|80|81)\b", lambda found: PORTS[found[0]], line))
    return "".join(lines)


def shipped_files(folder: str, servers: int) -> list[tuple[str, str]]:
    """The configuration of a folder of `proxy/`, before one server or two."""
    return [
        (path.name, rewritten(path.read_text(encoding="utf-8"), servers))
        for path in sorted((SHIPPED / folder).glob("*.c*f*"))
    ]


_COMMANDS = {
    "lighttpd": "{lighttpd} -D -f {folder}/balanced.conf",
    "nginx": "{nginx} -e stderr -p {folder} -c {folder}/balanced.conf",
    "apache": "{apache} -D FOREGROUND -d {folder} -f {folder}/balanced.conf",
}
# nginx gives up root's rights otherwise, and may not write into the folder any more.
_RIGHTS = {"nginx": "user root;\n" if os.geteuid() == 0 else "", "apache": RIGHTS}


def _files(proxy: str, folder: str, servers: int) -> tuple[tuple[str, str], ...]:
    files = []
    for name, text in shipped_files(folder, servers):
        filled = text.replace("FIRST", "$first").replace("SECOND", "$second")
        files.append((name, (_RIGHTS.get(proxy, "") if name == "balanced.conf" else "") + filled))
    return tuple(files)


def _before(name: str, colour: str, proxy: str, servers: int, folder: str = "") -> Server:
    started = "".join(
        backend(name, f"127.0.0.1:{{{name}}}", "--trusted-proxies 127.0.0.1 --health /-")
        for name in ("first", "second")[:servers]
    )
    return Server(
        name,
        colour,
        script(f"{started}exec {_COMMANDS[proxy]}"),
        "poorhttp",
        programs=("sh", proxy),
        files=_files(proxy, folder or proxy, servers),
    )


PROXIED: Sequence[Server] = (
    _before("lighttpd + single", "#a13c2f", "lighttpd", 1),
    _before("lighttpd + 2 × single", "#dd7a63", "lighttpd", 2),
    _before("nginx + single", "#00695c", "nginx", 1),
    _before("nginx + 2 × single", "#4db6a4", "nginx", 2),
    _before("Apache + single", "#8a6100", "apache", 1, "apache2"),
    _before("Apache + 2 × single", "#cfa04a", "apache", 2, "apache2"),
)
