"""Proxies as configured in `proxy/`, each before one or two servers of ours in mode `single`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

from loadtests.errors import LabError
from loadtests.programs import ROOT
from loadtests.servers.registry.apache import RIGHTS
from loadtests.servers.registry.commands import backend, script
from loadtests.servers.registry.server import Server

SHIPPED = ROOT / "proxy"
PORTS = {"8000": "$port", "8080": "$first", "8081": "$second"}
"""Ports of the shipped configurations, and their replacements here."""
# nginx gives up root's rights otherwise, and may not write into the folder any more.
_ROOT = "user root;\n" if os.geteuid() == 0 else ""
_PROXIES = {
    "lighttpd": ("lighttpd", "{lighttpd} -D -f {folder}/balanced.conf", ""),
    "nginx": ("nginx", "{nginx} -e stderr -p {folder} -c {folder}/balanced.conf", _ROOT),
    "HAProxy": ("haproxy", "{haproxy} -db -f {folder}/common.cfg -f {folder}/balanced.cfg", ""),
    "Apache": ("apache2", "{apache} -D FOREGROUND -d {folder} -f {folder}/balanced.conf", RIGHTS),
}
"""Folder, command, and the beginning of `balanced.conf`."""


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


def shipped(name: str, servers: int) -> Server:
    """A proxy before one server or two, which listen at the ports $first and $second.

    Raises LabError if its configuration is missing.
    """
    folder, command, beginning = _PROXIES[name]
    files = {
        path.name: rewritten(path.read_text(encoding="utf-8"), servers)
        for path in sorted((SHIPPED / folder).glob("*.c*f*"))
    }
    if not any(file.startswith("balanced.") for file in files):
        raise LabError(f"proxy/{folder} has no balanced.* configuration")
    if beginning:
        files["balanced.conf"] = beginning + files["balanced.conf"]
    return Server(name, "", command, programs=(name.lower(),), files=tuple(files.items()))


def _before(proxy: str, servers: int, colour: str) -> Server:
    started = "".join(
        backend(name, f"127.0.0.1:{{{name}}}", "--trusted-proxies 127.0.0.1 --health /-")
        for name in ("first", "second")[:servers]
    )
    alone = shipped(proxy, servers)
    return replace(
        alone,
        name=f"{proxy} + {'2 × ' if servers == 2 else ''}single",
        colour=colour,
        command=script(f"{started}exec {alone.command}"),
        package="poorhttp",
        programs=("sh", *alone.programs),
    )


PROXIED: Sequence[Server] = tuple(
    _before(proxy, servers, colour)
    for proxy, colours in (
        ("lighttpd", ("#a13c2f", "#dd7a63")),
        ("nginx", ("#00695c", "#4db6a4")),
        ("Apache", ("#8a6100", "#cfa04a")),
    )
    for servers, colour in enumerate(colours, 1)
)
"""Started and stopped together."""
