"""Other servers for which `advise` searches settings, by their command lines or URLs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loadtests.advise.configuration import Configuration, of_command
from loadtests.clients.native.replay import Request
from loadtests.errors import LabError
from loadtests.network.port import LOOPBACK
from loadtests.servers.application import Own
from loadtests.servers.registry.given import Given
from loadtests.servers.running import Running

PLACEHOLDERS = ("workers", "threads")
SHOWN = {"host": LOOPBACK, "port": "8000", "python": sys.executable}
"""What stands for the others in a command that is advised."""


@dataclass(frozen=True)
class Commands:
    """In place of a `Target`: the name of a server is the mode of its configurations."""

    servers: Sequence[Given]

    @property
    def words(self) -> str:
        return ", ".join(one.name for one in self.servers)

    @property
    def lines(self) -> Mapping[str, str]:
        """The commands, as results have them."""
        return {one.name: one.command for one in self.servers}

    def check(self) -> None:
        """Raises LabError for a command that would serve pages of the lab's."""
        if wrong := [one.name for one in self.servers if not one.own]:
            raise LabError(
                f"{wrong[0]}: advise measures your application, so name it in place of {{module}}"
            )

    def candidates(self, cores: int, workers: int, threads: int) -> list[Configuration]:
        """All that the placeholders of the commands allow, smaller ones first."""
        found = []
        for one in self.servers:
            told = tuple(name for name in PLACEHOLDERS if f"{{{name}}}" in one.command)
            found += of_command(one.name, told, cores, workers, threads)
        return sorted(found, key=lambda one: one.size)

    def why_not(self) -> str:
        """Nothing: what a server says when it does not start is known."""
        return ""

    def line(self, configuration: Configuration) -> str:
        """The command of a configuration; {host} and {port} stay."""
        text = self.lines[configuration.mode]
        for name in PLACEHOLDERS:
            text = text.replace(f"{{{name}}}", str(getattr(configuration, name)))
        return text

    def running(self, configuration: Configuration, first: Request) -> Running:
        """The server, ready to be started; it has to answer this request."""
        server = next(one for one in self.servers if one.name == configuration.mode)
        line = self.line(configuration)
        one = Running(replace(server, name=configuration.name, command=line, target=first.target))
        one.request, one.application = first.octets(), Own()
        return one

    def ini(self, configuration: Configuration, why: Sequence[str] = ()) -> str:
        """What is advised, to be pasted: the command."""
        text = self.line(configuration)
        for name, value in SHOWN.items():
            text = text.replace(f"{{{name}}}", value)
        return "\n".join([*(f"# {line}" for line in why), text]) + "\n"

    def start(self, file: str) -> str:
        """How a file with what is advised is used."""
        return f"sh {file}"
