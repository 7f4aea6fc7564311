"""Reads other servers from `servers.ini` and `develop.ini`, each with its command line."""

from __future__ import annotations

from collections.abc import Iterator
from configparser import SectionProxy

from loadtests.sections import sections, texts
from loadtests.servers.registry.server import Server


def listed(name: str) -> Iterator[tuple[Server, SectionProxy]]:
    """The servers of a file, each with its section: it may have more than all servers have."""
    for section in sections(__file__, name):
        if section.name != "commands":
            yield _server(section), section


def _server(section: SectionProxy) -> Server:
    own = texts(section)
    if "program" in own:
        # "~" is a space within a word.
        program = ";".join(section["program"].splitlines()).replace(" ", "~")
        own["command"] = f"{{python}} -c {program}"
    return Server(
        section.name,
        *(own["colour"], own["command"], own.get("package", ""), own.get("extra", "")),
        compared=section.getboolean("compared", True),
        note=own.get("note", ""),
        programs=tuple(own.get("programs", "").split()),
        forks=section.getboolean("forks", False),
    )


LISTED = {server.name: server for server, _ in listed("servers.ini")}
"""By name."""
