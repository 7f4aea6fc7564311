"""From the tool of a framework to `poorhttp dev`: what was written there, and then its process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from poorhttp.config import address, loader
from poorhttp.config.command_line import Arguments
from poorhttp.config.settings import OPTIONS
from poorhttp.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class DevCommand:
    """What stands behind the tool's own word: options of `poorhttp dev`, and an address maybe."""

    def __init__(self, words: Sequence[str], tool: str) -> None:
        """Read it.

        Args:
            words: what stands there.
            tool: how it is called, for messages: `manage.py dev`.

        Raises:
            poorhttp.errors.Failure: something of it cannot be.
        """
        self.line = Arguments()
        self.line.read(["dev", *words])
        for place in self.line.values.pop("target", []):
            self.line.values.setdefault("bind", []).append(_address(place, tool))
        # What cannot be is said by the tool that was asked, and not by a process that follows it.
        if not self.wants_help:
            self._services = loader.load(self.line.values, os.environ, self.line.file)

    @property
    def wants_help(self) -> bool:
        """Whether only the help is asked for."""
        return bool(self.line.information)

    @property
    def serves(self) -> bool:
        """Whether a file or the environment names something else to be served."""
        return any(settings.serves for settings in self._services)

    def words(self, target: str, pythonpath: Sequence[str] = ()) -> list[str]:
        """Return the command line of `poorhttp dev`.

        Args:
            target: to be served; empty has `dev` find it.
            pythonpath: where its modules are.
        """
        if pythonpath:
            # What is given replaces what stands elsewhere.
            settings = self._services[0]
            paths = [*settings.written("pythonpath"), *pythonpath]
            self.line.values["pythonpath"] = list(dict.fromkeys(paths))
        words = ["dev"]
        if self.line.file is not None:
            words.append(f"--config={self.line.file}")
        for name, texts in self.line.values.items():
            words += [f"{OPTIONS[name].flag}={text}" for text in texts]
        return [*words, "--", target] if target else words

    def execute(self, target: str, pythonpath: Sequence[str] = ()) -> NoReturn:
        """Become `poorhttp dev`: nothing that the tool has loaded stays."""
        sys.stdout.flush()
        sys.stderr.flush()
        # Options of Python itself (-X, -W) are for the server as well.
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        words = self.words(target, pythonpath)
        os.execv(sys.executable, [sys.executable, *flags, "-m", "poorhttp", *words])


def _address(text: str, tool: str) -> str:
    """Return an address as `bind` takes it, of what runserver takes: `8000`, `0:8000`.

    Raises:
        UsageError: it is none.
    """
    host, colon, port = text.rpartition(":")
    if port.isdigit() and not (colon and not host):
        host = {"": "127.0.0.1", "0": "0.0.0.0"}.get(host, host)
        try:
            return str(address.parse(f"{host}:{port}"))
        except ValueError as error:
            raise UsageError(str(error)) from None
    raise UsageError(
        f'"{text}" is no address; write {tool} 8000, or 0.0.0.0:8000; what is served is known here'
    )
