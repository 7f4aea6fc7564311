"""The folder of the server's temporary files (`temp_dir`)."""

from __future__ import annotations

import errno
import os

from poorhttp import logs
from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings

#: What may be better when the folder is needed: disk space, quota and descriptors.
TEMPORARY_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


def folder(settings: Settings) -> str:
    """Return the absolute path of the folder, wherever the application has gone by now."""
    named = settings.temp_dir or os.environ.get("TMPDIR") or "/tmp"
    return os.path.join(logs.error_log.folder, named)


def check(settings: Settings) -> None:
    """See to it that this process can create files in the folder.

    Raises:
        ConfigError: it cannot, for a reason that does not pass by itself.
    """
    path = folder(settings)
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        try:
            fd = os.open(path, flags | os.O_TMPFILE, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
                raise
            # Some file systems (FUSE, NFS) have only files with names.
            name = os.path.join(path, f".poorhttp-{os.getpid()}-{os.urandom(4).hex()}")
            fd = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600)
            os.unlink(name)
        os.close(fd)
    except OSError as error:
        if error.errno in TEMPORARY_ERRORS:
            return
        raise ConfigError(
            f"{settings.origin('temp_dir')}: no file can be created in {path}: {error.strerror}; "
            "name a folder for temporary files that the server may write"
        ) from None
