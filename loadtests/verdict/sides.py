"""A and B of a comparison as servers that can be started: a command, a URL, a name, a commit."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from loadtests.commits import builds
from loadtests.errors import LabError
from loadtests.programs import COMMAND
from loadtests.servers.registry import SERVERS, Server, given, missing
from loadtests.servers.registry.server import require_release
from loadtests.studies.bench.scenarios import HELLO

FILES = (".jsonl", ".xz", ".gz")


@dataclass(frozen=True)
class Side:
    """A server and its environment."""

    server: Server
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.server.name


def is_file(word: str) -> bool:
    """Whether a word names stored results."""
    return word.endswith(FILES)


def both(words: tuple[str, str], options: argparse.Namespace) -> tuple[Side, Side]:
    """Both sides, with different names. Raises LabError for a word that nothing is known of."""
    first, second = (_side(word, options) for word in words)
    if first.name == second.name:
        first, second = (
            replace(one, server=replace(one.server, name=f"{one.name} ({letter})"))
            for one, letter in ((first, "A"), (second, "B"))
        )
    for one in (first, second):
        if why := missing(one.server):
            raise LabError(f"{one.name}: {why}")
        if not one.environ:
            require_release([one.server])
    return first, second


def _side(word: str, options: argparse.Namespace) -> Side:
    known = {one.name: one for one in SERVERS}
    try:
        if word in known:
            return Side(known[word])
        if "://" in word.partition("=")[2] or "://" in word.split(" ", maxsplit=1)[0]:
            server = given.url(word)
        elif any(mark in word for mark in " ={"):
            server = given.command(word)
        else:
            return _build(word, known[(options.servers or ["poorhttp single"])[0]])
    except argparse.ArgumentTypeError as error:
        raise LabError(str(error)) from None
    if server.own:
        server = replace(server, target=given.target(server.target, options.path))
    return Side(server)


def _build(word: str, server: Server) -> Side:
    """Our server of a commit, or of the working tree for `.`."""
    if word != "." and not builds.is_commit(word):
        raise LabError(
            f"{word!r} is no study, file of results (.jsonl), command, URL, server of "
            f"`{COMMAND} list`, or commit of Poor HTTP in a clone of it"
        )
    build = builds.working_tree() if word == "." else builds.of_commit(word)
    path = os.pathsep.join([str(build.folder), str(HELLO.path)])
    return Side(replace(server, name=f"{server.name} @ {build.name}"), environ={"PYTHONPATH": path})
