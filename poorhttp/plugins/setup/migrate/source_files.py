"""Reads the files of a configuration, also as root in folders that other users may write.

As root, links of other users are not followed (`poorhttp.process.safe_open`, which the command
passes), and a file that another file names is read only if both have the same owner. Otherwise a
user could have root write what only root may read into an ini file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from poorhttp.errors import ConfigError

#: Largest configuration file, in bytes.
LARGEST = 1024 * 1024

#: Files that are read, at most.
MOST_FILES = 100

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Opener = Callable[[str, int], int]


class ParentFolder(Protocol):
    """Opens the folder that holds a file: `poorhttp.process.safe_open.parent_folder`."""

    def __call__(
        self, path: str, *, follow: bool = True
    ) -> AbstractContextManager[tuple[int, str]]:
        """Yield the descriptor of the folder and the name of the file."""


@contextmanager
def _parent_folder(path: str, *, follow: bool = True) -> Iterator[tuple[int, str]]:
    path = os.path.realpath(path) if follow else path
    folder = os.open(os.path.dirname(path) or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder, os.path.basename(path)
    finally:
        os.close(folder)


class SourceFiles:
    """Reads configuration files.

    Args:
        open_file: opens a file as `os.open` does; by default for users who are not root.
        parent_folder: opens the folder of a file.
    """

    def __init__(
        self, open_file: Opener = os.open, parent_folder: ParentFolder = _parent_folder
    ) -> None:
        self._open = open_file
        self._parent_folder = parent_folder
        self._owners: dict[str, int] = {}
        self._read = 0

    def read(self, path: str, named_in: str = "") -> str:
        """Return the text of a configuration file, which is UTF-8 and at most 1 MiB.

        Args:
            path: of the file.
            named_in: path of the file that names it, if a file does, which was read before.

        Raises:
            ConfigError: it cannot be read, or is something else.
        """
        self._read += 1
        if self._read > MOST_FILES:
            raise ConfigError(f"{path}: would be file number {self._read}, which is too many")
        content = b""
        try:
            fd = self._open(path, _READ)
            with open(fd, "rb") as file:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode):
                    raise ConfigError(f"{path}: cannot be read: it is not a regular file")
                self._check_owner(path, found.st_uid, named_in)
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise ConfigError(f"{path}: is larger than 1 MiB, which no configuration file is")
            if b"\0" in content:
                raise ConfigError(f"{path}: is not a text file")
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise ConfigError(f"{path}:{line}: is not UTF-8 text") from None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise ConfigError(f"{path}: cannot be read: {why}") from None

    def open_folder(self, path: str) -> int:
        """Return a descriptor of the folder of a file (O_PATH)."""
        with self._parent_folder(path) as (folder, _):
            return os.dup(folder)

    def _check_owner(self, path: str, owner: int, named_in: str) -> None:
        namer = self._owners.get(named_in, 0)
        if os.geteuid() == 0 and named_in and namer not in (0, owner):
            raise ConfigError(
                f"{path}: is not read by root, because {named_in}, which names it, belongs to "
                "another user"
            )
        self._owners[path] = owner
