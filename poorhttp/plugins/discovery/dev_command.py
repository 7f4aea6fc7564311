"""Replaces the process of a framework's command (`manage.py dev`) by `poorhttp dev`."""

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
    """Arguments of a framework's command: options of `poorhttp dev`, and perhaps an address."""

    def __init__(self, words: Sequence[str], tool: str) -> None:
        """Parse the arguments.

        Args:
            words: the arguments.
            tool: name of the command, for messages: `manage.py dev`.

        Raises:
            poorhttp.errors.Failure: they are wrong.
        """
        self.line = Arguments()
        self.line.read(["dev", *words])
        for place in self.line.values.pop("target", []):
            self.line.values.setdefault("bind", []).append(_address(place, tool))
        # Checked here, so that the framework's command reports errors, not `poorhttp dev`.
        if not self.wants_help:
            self._services = loader.load(self.line.values, os.environ, self.line.file)

    @property
    def wants_help(self) -> bool:
        """Whether only help is asked for."""
        return bool(self.line.information)

    @property
    def serves(self) -> bool:
        """Whether the configuration or the environment names another target."""
        return any(settings.serves for settings in self._services)

    def words(self, target: str, pythonpath: Sequence[str] = ()) -> list[str]:
        """Return the command line of `poorhttp dev`.

        Args:
            target: to be served; if empty, `dev` finds it.
            pythonpath: folders of its modules.
        """
        if pythonpath:
            # On the command line, the option replaces other settings of it: they are repeated.
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
        """Replace this process by `poorhttp dev`."""
        sys.stdout.flush()
        sys.stderr.flush()
        # Python's own options (-X, -W) apply to the server as well.
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        words = self.words(target, pythonpath)
        os.execv(sys.executable, [sys.executable, *flags, "-m", "poorhttp", *words])


def _address(text: str, tool: str) -> str:
    """Convert an address of runserver, such as `8000` or `0:8000`, to one of `bind`.

    Raises:
        UsageError: it is not an address.
    """
    host, colon, port = text.rpartition(":")
    if port.isdigit() and not (colon and not host):
        host = {"": "127.0.0.1", "0": "0.0.0.0"}.get(host, host)
        try:
            return str(address.parse(f"{host}:{port}"))
        except ValueError as error:
            raise UsageError(str(error)) from None
    raise UsageError(
        f'"{text}" is no address; write {tool} 8000, or 0.0.0.0:8000; the target is already known'
    )
