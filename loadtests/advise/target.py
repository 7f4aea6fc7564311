"""The user's application: how it is started, and its configuration file."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from loadtests.advise import ini_file
from loadtests.advise.configuration import NAMES, Configuration
from loadtests.clients.native.replay import Request
from loadtests.errors import LabError
from loadtests.measure.waiting import patience
from loadtests.python_path import lab_folder, server_command
from loadtests.servers.application import Own
from loadtests.servers.registry import Server
from loadtests.servers.running import Running

HARMLESS = (
    "--pidfile=off",
    "--admin=off",
    "--access-log=off",
    "--drain-timeout=0",
    "--graceful-timeout=0.5",
)
"""What the user's own file may say otherwise, and is not to happen to a server that is measured."""
LOADING_SECONDS = patience(20)
FOLDER = Path(__file__).parent
WRONG_CONFIGURATION = (2, 3)
"""Exit codes of `poorhttp check` for a wrong command line and for a wrong file."""
SERVED = ("target", "mount", "static")
"""Options that name what is served, the target first."""


@dataclass(frozen=True)
class Target:
    """What `poorhttp serve` is told about the application.

    `text` is empty if `file`, a configuration of the user's, names it.
    """

    text: str = ""
    file: Path | None = None
    chdir: str = ""
    pythonpath: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return self.text or str(self.file)

    @property
    def lines(self) -> Mapping[str, str]:
        """The command, as results have it."""
        return {"poorhttp": f"poorhttp serve {self.text or f'-c {self.file}'}"}

    def check(self) -> None:
        """Raises LabError if the server would not take it."""
        targets = self._targets()
        if len(targets) > 1:
            raise LabError(f"{self.file} describes several services; advise one at a time")
        # With something else as the target, the application is not loaded for it.
        checked = replace(self, text=f"static:{FOLDER}")._checked()
        if checked and checked.returncode in WRONG_CONFIGURATION:
            raise LabError(_last_words(checked))
        if not any(targets):
            where = f"{self.file} names no target" if self.file else "there is no target"
            raise LabError(f"{where}; say what to measure, as for poorhttp serve")
        if targets[0].startswith("tcp:"):
            raise LabError("a tcp: target speaks no HTTP, so it cannot be measured here")

    def _targets(self) -> list[str]:
        """The target of each service, or what stands for it: a mounted one. Raises LabError."""
        told = (os.environ.get(f"POORHTTP_{name.upper()}") for name in SERVED)
        given = self.text or next(filter(None, told), "")
        if self.file is None:
            return [given]
        try:
            sections = ini_file.sections(self.file.read_text(encoding="utf-8-sig"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise LabError(f"{self.file}: cannot be read: {reason}") from None
        served = {
            section.name: next(filter(None, map(section.values.get, SERVED)), "")
            for section in sections
        }
        hosts = [name for name in served if name.startswith("host:")]
        common = given or served.get("http") or " ".join(hosts)
        services = [name for name in served if name.startswith("service:")]
        return [given or served[name] or common for name in services] or [common]

    def why_not(self) -> str:
        """What is wrong with the application, as far as loading it shows."""
        checked = self._checked()
        if checked is None:
            return f"it is not loaded within {LOADING_SECONDS} s"
        return _last_words(checked) if checked.returncode else ""

    def _checked(self) -> subprocess.CompletedProcess[str] | None:
        """What `poorhttp check` says; None if the application is not loaded in time."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                self.command(Configuration("single"), 0, "check"),
                capture_output=True,
                stdin=subprocess.DEVNULL,
                errors="replace",
                check=False,
                env={**os.environ, "PYTHONPATH": self.python_path()},
                timeout=LOADING_SECONDS,
            )
        return None

    def _values(self) -> dict[str, Sequence[str]]:
        named = {"target": [self.text], "chdir": [self.chdir], "pythonpath": self.pythonpath}
        return {name: texts for name, texts in named.items() if any(texts)}

    def command(self, configuration: Configuration, port: int, verb: str = "serve") -> list[str]:
        """How it is started to be measured, or checked."""
        named = {name: texts for name, texts in self._values().items() if name != "target"}
        given = [f"--{name}={text}" for name, texts in named.items() for text in texts]
        return [
            *(*server_command(), verb, *filter(None, [self.text])),
            *(["-c", str(self.file)] if self.file else []),
            *given,
            f"--bind=127.0.0.1:{port}",
            *HARMLESS,
            *configuration.arguments(),
        ]

    def running(self, configuration: Configuration, first: Request) -> Running:
        """The server, ready to be started; it has to answer this request."""
        # Braces would be filled in.
        path = self.python_path().replace("{", "{{").replace("}", "}}")
        how: dict[str, Any] = {
            "target": first.target,
            "request": first.octets(),
            "environ": {"PYTHONPATH": path},
        }
        one = Running(Server(configuration.name, "", "", "poorhttp"), Own(), **how)
        one.command = self.command(configuration, one.port)
        return one

    def start(self, file: str) -> str:
        """How a file with what is advised is used."""
        return f"poorhttp serve --config {file}"

    def python_path(self) -> str:
        """Our poorhttp, then what the user has set."""
        return os.pathsep.join(filter(None, [lab_folder(), os.environ.get("PYTHONPATH")]))

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


def _last_words(checked: subprocess.CompletedProcess[str]) -> str:
    """The last line of what a check said about a failure."""
    code = checked.returncode
    return (checked.stderr.strip() or f"loading it ends with exit code {code}").splitlines()[-1]


def _kept(file: Path, replaced: set[str]) -> list[str]:
    """The lines of a file without these options of its section [http], which comes first."""
    text = file.read_text(encoding="utf-8-sig")
    lines = text.split("\n")
    spellings = {*replaced, *(["type"] if "mode" in replaced else [])}
    dropped = set()
    for section in ini_file.sections(text):
        if section.name == "http":
            lines[section.line - 1] = "[http]"
            dropped |= {number for name in spellings for number in section.lines.get(name, ())}
    kept = [line for number, line in enumerate(lines, 1) if number not in dropped]
    while kept and not kept[-1]:
        kept.pop()
    return kept if "[http]" in kept else ["[http]", *kept]
