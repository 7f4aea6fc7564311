"""The user's application: how it is started, and its configuration file."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.advise.configuration import NAMES, Configuration
from loadtests.clients.connection import Answer
from loadtests.errors import LabError
from loadtests.programs import ROOT
from loadtests.servers.application import Application
from poorhttp.config import ini, loader
from poorhttp.config.settings import OPTIONS
from poorhttp.errors import Failure

HARMLESS = (
    "--pidfile=off",
    "--admin=off",
    "--access-log=off",
    "--drain-timeout=0",
    "--graceful-timeout=0.5",
)
"""What the user's own file may say otherwise, and is not to happen to a server that is measured."""
LOADING_SECONDS = 20


@dataclass(frozen=True)
class Own(Application):
    """An application of which nothing is known but that it is to answer."""

    folder: str = "."
    module: str = ""

    @property
    def path(self) -> Path:
        """Where the user is."""
        return Path.cwd()

    def answer(self, target: str, body: bytes) -> Answer:
        """Nothing is known of the right answer."""
        return Answer(0, "", b"")

    def accepts(self, answer: Answer, right: Answer) -> bool:
        """Whether an answer is no failure of the server."""
        return answer.status < 500


@dataclass(frozen=True)
class Target:
    """What `poorhttp serve` is told about the application.

    `text` is empty if `file`, a configuration of the user's, names it.
    """

    text: str = ""
    file: Path | None = None
    chdir: str = ""
    pythonpath: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises LabError if the server would not take it."""
        try:
            services = loader.load(
                self._values(), os.environ, str(self.file) if self.file else None
            )
        except Failure as failure:
            raise LabError(str(failure)) from None
        if len(services) > 1:
            raise LabError(f"{self.file} describes several services; advise one at a time")
        if not services[0].serves:
            where = f"{self.file} names no target" if self.file else "there is no target"
            raise LabError(f"{where}; say what to measure, as for poorhttp serve")
        if (services[0].target or "").startswith("tcp:"):
            raise LabError("a tcp: target speaks no HTTP, so it cannot be measured here")

    def why_not(self) -> str:
        """What is wrong with the application, as far as loading it shows."""
        serving = self.command(Configuration("single"), 0)
        checking = [*serving[:3], "check", *serving[4:]]
        environ = {**os.environ, "PYTHONPATH": self._path()}
        try:
            done = subprocess.run(
                checking,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                check=False,
                env=environ,
                timeout=LOADING_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"it is not loaded within {LOADING_SECONDS} s"
        if done.returncode == 0:
            return ""
        said = done.stderr.strip() or f"loading it ends with exit code {done.returncode}"
        return said.splitlines()[-1]

    def _values(self) -> dict[str, Sequence[str]]:
        named = {"target": [self.text], "chdir": [self.chdir], "pythonpath": self.pythonpath}
        return {name: texts for name, texts in named.items() if any(texts)}

    def command(self, configuration: Configuration, port: int) -> list[str]:
        """How it is started to be measured."""
        named = {name: texts for name, texts in self._values().items() if name != "target"}
        given = [f"{OPTIONS[name].flag}={text}" for name, texts in named.items() for text in texts]
        return [
            *(sys.executable, "-m", "poorhttp", "serve", *([self.text] if self.text else [])),
            *(["-c", str(self.file)] if self.file else []),
            *given,
            f"--bind=127.0.0.1:{port}",
            *HARMLESS,
            *configuration.arguments(),
        ]

    def environ(self) -> dict[str, str]:
        """The environment: our poorhttp, then what the user has set."""
        return {"PYTHONPATH": self._path().replace("{", "{{").replace("}", "}}")}

    def _path(self) -> str:
        return os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)

    def ini(self, configuration: Configuration, why: Sequence[str] = ()) -> str:
        """The file to paste: that of the user, if there is one, with what is advised."""
        remarks = [f"# {line}" for line in why]
        given = self._values()
        lines = _kept(self.file, {*NAMES, *given}) if self.file else ["[http]"]
        written = [line for n, ts in given.items() for line in _entry(n, ts)]
        written += [f"{name} = {text}" for name, text in configuration.values().items()]
        head = lines.index("[http]") + 1
        return "\n".join([*lines[:head], *remarks, *written, *lines[head:]]) + "\n"


def _entry(name: str, texts: Sequence[str]) -> list[str]:
    if len(texts) == 1:
        return [f"{name} = {texts[0]}"]
    return [f"{name} =", *(f"    {text}" for text in texts)]


def _kept(file: Path, replaced: set[str]) -> list[str]:
    """The lines of a file without these options of its section [http], which comes first."""
    lines = file.read_text(encoding="utf-8-sig").split("\n")
    spellings = {name for n in replaced for name in (n, OPTIONS[n].alias) if name}
    dropped = set()
    for section in ini.read(str(file)):
        if section.name == loader.SECTION:
            lines[section.line - 1] = "[http]"
        for entry in section.entries:
            if section.name == loader.SECTION and entry.name in spellings:
                dropped |= {entry.line, *(number for number, _ in entry.values)}
    kept = [line for number, line in enumerate(lines, 1) if number not in dropped]
    while kept and not kept[-1]:
        kept.pop()
    return kept if "[http]" in kept else ["[http]", *kept]


def short(reason: str) -> str:
    """A reason on one line that fits into a table."""
    return textwrap.shorten(reason, 160, placeholder="…")
