"""Compiled pages on disk, so that they need not be compiled again at the next start.

What is read here is executed, so it must be of somebody who may write code for this server: us, the
superuser, or the owner of the pages. Whether it fits its page is told by a digest of all that it
was made from, not by times: those are lost where folders are copied.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
from contextlib import suppress
from hashlib import blake2b
from importlib.util import MAGIC_NUMBER
from threading import get_ident
from types import CodeType

import mako

from poorhttp import logs
from poorhttp.config.version import VERSION
from poorhttp.errors import ApplicationError
from poorhttp.process.privileges import user_name

#: Behind the name of a page. Not `.pyc`: it is not one.
SUFFIX = ".code"


class Modules:
    """A folder for compiled pages. Each lies there at the whole path of its page."""

    def __init__(self, path: str, pages: str) -> None:
        """Take a folder, and make it if there is none.

        Args:
            path: of the folder.
            pages: the folder of the pages, whose owner is trusted.

        Raises:
            ApplicationError: it cannot be made, or others could put code there.
        """
        self.path = os.path.abspath(path)
        self._failed = False
        try:
            os.makedirs(self.path, 0o755, exist_ok=True)
            self._owners = {0, os.geteuid(), os.stat(pages).st_uid}
            found = os.stat(self.path)
        except OSError as error:
            raise ApplicationError(f"pages_modules: {self.path}: {error.strerror}") from error
        why = self._distrust(found)
        if why:
            raise ApplicationError(
                f"pages_modules: {self.path} {why}, and what lies there is executed; it should "
                "belong to the user of the server or to the owner of the pages, and nobody else "
                "should write there (chmod go-w)"
            )

    def find(self, uri: str, file: str, source: bytes) -> CodeType | None:
        """The code of a page, if it is kept and was made of this source."""
        try:
            fd = os.open(self._place(file), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            with open(fd, "rb") as stream:
                folder = os.stat(os.path.dirname(self._place(file)))
                if self._distrust(os.fstat(fd)) or self._distrust(folder):
                    return None
                digest = _digest(uri, file, source)
                if stream.read(len(digest)) != digest:
                    return None
                code = marshal.loads(stream.read())
        except (OSError, ValueError, EOFError, TypeError):
            return None
        return code if isinstance(code, CodeType) else None

    def keep(self, uri: str, file: str, source: bytes, code: CodeType) -> None:
        """Keep the code of a page, in the place of what was there.

        Raises:
            OSError: it cannot be written.
        """
        place = self._place(file)
        os.makedirs(os.path.dirname(place), 0o755, exist_ok=True)
        draft = f"{place}.{os.getpid()}.{get_ident()}"
        with suppress(FileNotFoundError):
            os.unlink(draft)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            with open(fd, "wb") as stream:
                stream.write(_digest(uri, file, source) + marshal.dumps(code))
            os.rename(draft, place)
        except BaseException:
            os.unlink(draft)
            raise

    def try_to_keep(self, uri: str, file: str, source: bytes, code: CodeType) -> None:
        """The same while a request waits: what cannot be written is told once, in the log."""
        try:
            self.keep(uri, file, source, code)
        except OSError as error:
            if not self._failed:
                logs.write("warning", f"compiled pages are not kept in {self.path}: {error}")
            self._failed = True

    def _place(self, file: str) -> str:
        return f"{self.path}{file}{SUFFIX}"

    def _distrust(self, found: os.stat_result) -> str:
        """Why a file or folder is not to be trusted; nothing if it is."""
        if found.st_uid not in self._owners:
            return f"belongs to user {user_name(found.st_uid)}"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"may be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
        return ""


def _digest(uri: str, file: str, source: bytes) -> bytes:
    """What a page's code begins with: it stands for all that the code was made from."""
    versions = f"{VERSION} {mako.__version__} {sys.implementation.name} {sys.flags.optimize}"
    parts = [MAGIC_NUMBER, versions.encode(), os.fsencode(uri), os.fsencode(file), source]
    return blake2b(b"\0".join(parts), digest_size=32).digest()
