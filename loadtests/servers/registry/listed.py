"""Servers that `servers.ini` lists: others' that need no more than a command."""

from __future__ import annotations

from configparser import ConfigParser, ExtendedInterpolation, SectionProxy
from pathlib import Path

from loadtests.servers.registry.server import Server


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


def _listed() -> dict[str, Server]:
    read = ConfigParser(delimiters="=", comment_prefixes="#", interpolation=ExtendedInterpolation())
    read.read(Path(__file__).with_name("servers.ini"), encoding="utf-8")
    return {name: _server(read[name]) for name in read.sections() if name != "commands"}


LISTED = _listed()
"""By name."""
