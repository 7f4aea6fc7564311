"""Servers that `servers.ini` and `develop.ini` list: others' that need no more than a command."""

from __future__ import annotations

from collections.abc import Iterator
from configparser import ConfigParser, ExtendedInterpolation, SectionProxy
from pathlib import Path

from loadtests.servers.registry.server import Server


def listed(name: str) -> Iterator[tuple[Server, SectionProxy]]:
    """The servers of a file, each with its section: it may have more than all servers have."""
    read = ConfigParser(delimiters="=", comment_prefixes="#", interpolation=ExtendedInterpolation())
    read.read(Path(__file__).with_name(name), encoding="utf-8")
    for section in read.sections():
        if section != "commands":
            yield _server(read[section]), read[section]


def _server(own: SectionProxy) -> Server:
    """What a section says; texts may go over several lines."""
    texts = {name: " ".join(text.split()) for name, text in own.items()}
    if "program" in own:
        # "~" is a space within a word.
        program = ";".join(own["program"].splitlines()).replace(" ", "~")
        texts["command"] = f"{{python}} -c {program}"
    return Server(
        own.name,
        *(texts["colour"], texts["command"], texts.get("package", ""), texts.get("extra", "")),
        compared=own.getboolean("compared", True),
        note=texts.get("note", ""),
        programs=tuple(texts.get("programs", "").split()),
        forks=own.getboolean("forks", False),
    )


LISTED = {server.name: server for server, _ in listed("servers.ini")}
"""By name."""
