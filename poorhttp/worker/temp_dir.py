"""The folder of the server's temporary files (`temp_dir`)."""

from __future__ import annotations

import errno
import os

from poorhttp import logs
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError

#: Errors that may be gone when a file is needed: disk space, quota and descriptors.
TEMPORARY_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


def folder(settings: Settings) -> str:
    """Return the absolute path of the folder, even if the application has changed directory."""
    named = settings.temp_dir or os.environ.get("TMPDIR") or "/tmp"
    return os.path.join(logs.error_log.folder, named)


def check(settings: Settings) -> None:
    """Raise a ConfigError if no file can be created in the folder, for a reason that lasts."""
    path = folder(settings)
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        try:
            fd = os.open(path, flags | os.O_TMPFILE, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
                raise
            # Some file systems (FUSE, NFS) do not support files without names.
            name = os.path.join(path, f".poorhttp-{os.getpid()}-{os.urandom(4).hex()}")
            fd = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600)
            os.unlink(name)
        os.close(fd)
    except OSError as error:
        if error.errno not in TEMPORARY_ERRORS:
            raise ConfigError(
                f"{settings.origin('temp_dir')}: no file can be created in {path}: "
                f"{error.strerror}; name a folder for temporary files that the server may write"
            ) from None
