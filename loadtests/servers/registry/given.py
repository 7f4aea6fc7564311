"""Servers that the command line names: by a command, or by the URL of a server that runs."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from urllib.parse import urlsplit

from loadtests.errors import LabError
from loadtests.servers.application import OWN
from loadtests.servers.registry.server import Server

_NAMED = re.compile(r"([A-Za-z0-9][\w.+-]*)=(.*)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SERVES_OURS = re.compile(r"\{(module|callable|root|body)\}")


@dataclass(frozen=True)
class Given(Server):
    """A server of the person who runs the lab; `listens` is the port of one that runs already.

    A command with {module} or {root} serves what the lab asks for. Any other serves an application
    of its own: each request of the lab goes to `target` of it instead.
    """

    compared: bool = False
    listens: int = 0

    @property
    def given(self) -> bool:
        """True: the failure of such a server is an error of the run."""
        return True

    @property
    def is_told_its_port(self) -> bool:
        """Whether the port is known before it listens; else its processes are searched for it."""
        return bool(self.listens) or "{port}" in self.command

    @property
    def movable(self) -> bool:
        """Whether the command says where {host} goes."""
        return "{host}" in self.command

    def argv(self, values: Mapping[str, object], ip: str) -> list[str]:
        """The words of the command as a shell splits them; unknown words in braces stay."""

        def fill(found: re.Match[str]) -> str:
            return str({**values, "host": ip}.get(found[1], found[0]))

        return [_PLACEHOLDER.sub(fill, word) for word in shlex.split(self.command)]


def command(text: str) -> Given:
    """Reads `COMMAND` or `NAME=COMMAND`; the default name is the first word of the command."""
    named = _NAMED.fullmatch(text)
    name, line = (named[1].strip(), named[2]) if named else ("", text)
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a command: {error}") from None
    if not words:
        raise argparse.ArgumentTypeError(f"{text!r} has no command")
    if not _PLACEHOLDER.match(words[0]) and shutil.which(words[0]) is None:
        raise argparse.ArgumentTypeError(f"{text!r}: there is no program {words[0]!r}")
    application = None if _SERVES_OURS.search(line) else OWN
    return Given(name or PurePath(words[0]).name, "", line, application=application)


def url(text: str) -> Given:
    """Reads `URL` or `NAME=URL` of a server on this machine; the default name is host and port."""
    named = re.fullmatch(r"([^/:=]+)=(.*)", text)
    name, address = (named[1].strip(), named[2]) if named else ("", text)
    parts = urlsplit(address)
    try:
        port = parts.port or 80
    except ValueError:
        port = 0
    if parts.scheme != "http" or not parts.hostname or not port:
        raise argparse.ArgumentTypeError(f"{text!r} is not http://HOST:PORT/PATH")
    try:
        here = socket.gethostbyname(parts.hostname) == "127.0.0.1"
    except OSError:
        here = False
    if not here:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not on 127.0.0.1: the lab reads what the processes of a server use"
        )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Given(name or parts.netloc, "", address, application=OWN, target=target, listens=port)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that name such servers, and what they are asked for."""
    add_options(parser)
    told = "what commands are asked for, and URLs without a path (default /)"
    parser.add_argument("--path", metavar="/PATH", help=told)


def target(own: str, asked: str | None) -> str:
    """What is requested, by the path of a URL and by --path. Raises LabError if they differ."""
    if asked and own not in ("", "/", asked):
        raise LabError(
            f"the URL has the path {own}, and --path says {asked}: leave out one of them"
        )
    return asked or own or "/"


def add_options(parser: argparse.ArgumentParser, words: str = "") -> None:
    """Adds the options that name such servers; `words` say more of a command."""
    title = "servers of your own, each as often as you like"
    add = parser.add_argument_group(title, words or None).add_argument
    told = "start this command: {port} is where it has to listen, on {host}"
    add("--command", dest="given", action="append", type=command, metavar="[NAME=]CMD", help=told)
    told = "measure a server that listens on this machine"
    add("--url", dest="given", action="append", type=url, metavar="[NAME=]URL", help=told)


def chosen(options: argparse.Namespace, taken: Iterable[str] = ()) -> Sequence[Given]:
    """Those that the command line names, each with a name that no other has, and a target."""
    return [
        replace(one, target=target(one.target, options.path) if one.own else "")
        for one in named(options, taken)
    ]


def named(options: argparse.Namespace, taken: Iterable[str] = ()) -> Sequence[Given]:
    """Those that the command line names, each with a name that no other has."""
    names, found = set(taken), []
    for one in options.given or ():
        name, number = one.name, 1
        while name in names:
            number += 1
            name = f"{one.name} {number}"
        names.add(name)
        found.append(replace(one, name=name))
    return found
