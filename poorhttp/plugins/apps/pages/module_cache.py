"""Cache of compiled pages on disk, for the next start.

Its files are executed, so each must belong to a user who may write code for this server: its own,
the superuser, or the owner of the pages. A digest of all that a file was made from says whether it
fits its page. Times would not do: copying a folder loses them.
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
from poorhttp.process.safe_open import make_folders, parent_folder

#: Suffix added to the name of a page. It is no `.pyc` file.
SUFFIX = ".code"


class ModuleCache:
    """A folder of compiled pages, each at the whole path of its page below it."""

    def __init__(self, path: str, pages: str) -> None:
        """Take a folder, and make it if there is none.

        Args:
            path: of the folder.
            pages: the folder of the pages, whose owner is trusted.

        Raises:
            ApplicationError: it cannot be made, or other users may write to it.
        """
        self.path = os.path.abspath(path)
        self._failed = False
        try:
            make_folders(self.path, 0o755)
            self._owners = {0, os.geteuid(), os.stat(pages).st_uid}
            found = os.stat(self.path)
        except OSError as error:
            raise ApplicationError(f"pages_modules: {self.path}: {error.strerror}") from error
        if why := self._why_untrusted(found):
            raise ApplicationError(
                f"pages_modules: {self.path} {why}, and what lies there is executed; it should "
                "belong to the user of the server or to the owner of the pages, and nobody else "
                "should write there (chmod go-w)"
            )

    def load(self, uri: str, file: str, source: bytes) -> CodeType | None:
        """Return the code of a page, if it is stored and was made from this source."""
        try:
            fd = os.open(self._path_of(file), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            with open(fd, "rb") as stream:
                folder = os.stat(os.path.dirname(self._path_of(file)))
                if self._why_untrusted(os.fstat(fd)) or self._why_untrusted(folder):
                    return None
                digest = _digest(uri, file, source)
                if stream.read(len(digest)) != digest:
                    return None
                code = marshal.loads(stream.read())
        except (OSError, ValueError, EOFError, TypeError):
            return None
        return code if isinstance(code, CodeType) else None

    def store(self, uri: str, file: str, source: bytes, code: CodeType) -> None:
        """Store the code of a page, and replace an older one.

        Raises:
            OSError: it cannot be written.
        """
        place = self._path_of(file)
        make_folders(os.path.dirname(place), 0o755)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with parent_folder(place, follow=False) as (folder, name):
            draft = f"{name}.{os.getpid()}.{get_ident()}"
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)
            fd = os.open(draft, flags, 0o644, dir_fd=folder)
            try:
                with open(fd, "wb") as stream:
                    stream.write(_digest(uri, file, source) + marshal.dumps(code))
                os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(draft, dir_fd=folder)
                raise

    def try_to_store(self, uri: str, file: str, source: bytes, code: CodeType) -> None:
        """Store the code of a page; log only the first failure."""
        try:
            self.store(uri, file, source, code)
        except OSError as error:
            if not self._failed:
                logs.write("warning", f"compiled pages are not kept in {self.path}: {error}")
            self._failed = True

    def _path_of(self, file: str) -> str:
        return f"{self.path}{file}{SUFFIX}"

    def _why_untrusted(self, found: os.stat_result) -> str:
        """Return why a file or folder is not trusted; nothing if it is."""
        if found.st_uid not in self._owners:
            return f"belongs to user {user_name(found.st_uid)}"
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"may be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
        return ""


def _digest(uri: str, file: str, source: bytes) -> bytes:
    """Return the digest of all that the code of a page is made from; its file begins with it."""
    versions = f"{VERSION} {mako.__version__} {sys.implementation.name} {sys.flags.optimize}"
    parts = [MAGIC_NUMBER, versions.encode(), os.fsencode(uri), os.fsencode(file), source]
    return blake2b(b"\0".join(parts), digest_size=32).digest()
