"""The user's application: how it is started, and its configuration file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.advise.configuration import NAMES, Configuration
from loadtests.clients.connection import Answer
from loadtests.errors import LabError
from loadtests.measure.waiting import patience
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
LOADING_SECONDS = patience(20)


@dataclass(frozen=True)
class Own(Application):
    """An application of which nothing is known but that it is to answer."""

    folder: str = "."
    module: str = ""

    @property
    def path(self) -> Path:
        return Path.cwd()

    def answer(self, target: str, body: bytes) -> Answer:
        return Answer(0, "", b"")

    def accepts(self, answer: Answer, right: Answer) -> bool:
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
            file = str(self.file) if self.file else None
            services = loader.load(self._values(), os.environ, file)
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
        try:
            done = subprocess.run(
                checking,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                errors="replace",
                check=False,
                env={**os.environ, "PYTHONPATH": self.python_path()},
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
            *(sys.executable, "-m", "poorhttp", "serve", *filter(None, [self.text])),
            *(["-c", str(self.file)] if self.file else []),
            *given,
            f"--bind=127.0.0.1:{port}",
            *HARMLESS,
            *configuration.arguments(),
        ]

    def python_path(self) -> str:
        """Our poorhttp, then what the user has set."""
        return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

    def ini(self, configuration: Configuration, why: Sequence[str] = ()) -> str:
        """The file to paste: that of the user, if there is one, with what is advised."""
        given = self._values()
        lines = _kept(self.file, {*NAMES, *given}) if self.file else ["[http]"]
        head = lines.index("[http]") + 1
        written = [f"# {line}" for line in why]
        for name, texts in given.items():
            written.append(f"{name} = {texts[0]}" if len(texts) == 1 else f"{name} =")
            written += [f"    {text}" for text in texts if len(texts) > 1]
        written += [f"{name} = {text}" for name, text in configuration.values().items()]
        return "\n".join([*lines[:head], *written, *lines[head:]]) + "\n"


def _kept(file: Path, replaced: set[str]) -> list[str]:
    """The lines of a file without these options of its section [http], which comes first."""
    lines = file.read_text(encoding="utf-8-sig").split("\n")
    spellings = {name for n in replaced for name in (n, OPTIONS[n].ini_name) if name}
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
