"""Unit files with their drop-ins, as systemd.unit(5) has them."""

from __future__ import annotations

import shlex
from pathlib import Path

FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system")


class UnitError(Exception):
    """A unit that cannot be used, and why."""


class Unit:
    """A service or a socket.

    Attributes:
        name: its name with the suffix.
        path: its file.
        values: the values of each setting, by `Section.Setting`, in order.
    """

    def __init__(self, name: str) -> None:
        self.name = name if "." in name else f"{name}.service"
        self.stem, _, self.kind = self.name.rpartition(".")
        self.prefix, at, self.instance = self.stem.partition("@")
        file = f"{self.prefix}@.{self.kind}" if at else self.name
        found = [Path(folder, name) for folder in FOLDERS for name in (self.name, file)]
        paths = [path for path in found if path.exists()]
        if not paths:
            raise UnitError(f"Unit {self.name} not found.")
        self.path = paths[0]
        self.values: dict[str, list[str]] = {}
        for path in [self.path, *self.drop_ins()]:
            self._read(path)

    def drop_ins(self) -> list[Path]:
        """The files of its folders `NAME.d`."""
        folders = [Path(folder, f"{self.name}.d") for folder in FOLDERS]
        return sorted(path for folder in folders for path in folder.glob("*.conf"))

    def _read(self, path: Path) -> None:
        section = ""
        for line in map(str.strip, path.read_text().replace("\\\n", " ").splitlines()):
            if line.startswith("["):
                section = line.strip("[]")
            elif line and line[0] not in "#;":
                name, _, value = line.partition("=")
                values = self.values.setdefault(f"{section}.{name.strip()}", [])
                if value.strip():
                    values.append(self._expand(value.strip()))
                else:
                    values.clear()

    def _expand(self, value: str) -> str:
        pairs = {"n": self.name, "N": self.stem, "p": self.prefix, "i": self.instance, "%": "%"}
        pairs |= {"I": self.instance, "t": "/run", "S": "/var/lib", "L": "/var/log", "h": "/root"}
        text = ""
        parts = iter(value)
        for character in parts:
            text += pairs.get(next(parts, ""), "") if character == "%" else character
        return text

    def all(self, setting: str) -> list[str]:
        """All values of a setting of its own section."""
        return self.values.get(setting if "." in setting else f"{self.kind.title()}.{setting}", [])

    def get(self, setting: str, default: str = "") -> str:
        return (self.all(setting) or [default])[-1]

    def words(self, setting: str) -> list[str]:
        """The words of all values of a setting."""
        return [word for value in self.all(setting) for word in shlex.split(value)]

    def is_on(self, setting: str) -> bool:
        return self.get(setting) in ("yes", "true", "on", "1")
