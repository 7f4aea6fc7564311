"""The file with the key that signs sessions."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from poorhttp.errors import ApplicationError
from poorhttp.process.privileges import user_name

#: Fewest bytes of a key that cannot be guessed.
MIN_KEY = 16


def read_key(path: str) -> bytes:
    """Return the key in a file, which is made if it does not exist.

    Several processes may do that at once: all get the same key.

    Raises:
        ApplicationError: it cannot be read or made, others can read it, or it is too short.
    """
    path = os.path.abspath(path)
    try:
        if not os.path.exists(path):
            _make(path)
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            key = file.read(4096).strip()
    except OSError as error:
        raise ApplicationError(
            f"session_key: {path}: {error.strerror}, as user {user_name(os.geteuid())}"
        ) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ApplicationError(
            f"session_key: {path} can be accessed by its group or by others (mode {mode:04o}), who "
            f"could forge sessions: chmod 600 {path}"
        )
    if len(key) < MIN_KEY:
        raise ApplicationError(
            f"session_key: the key in {path} has {len(key)} bytes; {MIN_KEY} is the minimum; "
            "remove the file, and the server creates a new one"
        )
    return key


def _make(path: str) -> None:
    draft = f"{path}.{os.getpid()}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "w", encoding="ascii") as file:
            file.write(os.urandom(32).hex() + "\n")
        # Unlike renaming, it does not replace a file that another worker has made.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.unlink(draft)
