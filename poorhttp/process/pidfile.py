"""The file with the process ID of the main process."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from sys import byteorder

from poorhttp.errors import ConfigError
from poorhttp.process import fork
from poorhttp.process.safe_open import parent_folder

#: Attempts to write the file, if other processes change it meanwhile.
TRIES = 10


class PidFile:
    """A PID file, locked by the server that has written it, so that a stale one is recognised.

    The lock is one of fcntl(2): it ends with this process, also if others have the file open, and
    children do not inherit it. The number alone proves nothing: another process may have it by now.

    Attributes:
        path: absolute.
        place: where the option was set, for messages.
    """

    def __init__(self, path: str, place: str = "pidfile") -> None:
        self.path = os.path.abspath(path)
        self.place = place
        self._fd = -1
        self._pid = 0

    def check(self, is_ours: Callable[[int], bool] = lambda pid: False) -> None:
        """Check that the file can be written, long before it is.

        `is_ours` tells whether the process that holds it, by its ID, may do so.

        Raises:
            ConfigError: another server holds it, or it cannot be written.
        """
        # Closing the file releases the lock, so this must not be called once it is ours.
        with self._existing() as fd:
            if fd is not None:
                try:
                    self._lock(fd)
                except ConfigError:
                    pid = self._read(fd)
                    if not (pid and is_ours(int(pid))):
                        raise
            folder = os.path.dirname(self.path)
            if not os.access(folder, os.W_OK | os.X_OK):
                code = errno.EACCES if os.path.isdir(folder) else errno.ENOENT
                raise OSError(code, os.strerror(code))

    def write(self) -> None:
        """Write the process ID, also over that of a server that has ended; errors as of `check`."""
        for _ in range(TRIES):
            with self._existing() as fd:
                if fd is not None:
                    self._lock(fd)
                if self._put(over=fd):
                    return
        raise ConfigError(f"{self.place}: {self.path}: other processes keep changing it")

    def replace(self) -> None:
        """Write the process ID over that of the previous main process; errors as of `check`."""
        with self._existing() as fd:
            if fd is not None:
                self._read(fd)
            self._put(over=-1)

    def remove(self) -> None:
        """Remove the file, if this process has written it; never fails."""
        if self._fd < 0 or self._pid != os.getpid():
            return
        with suppress(OSError), parent_folder(self.path, follow=False) as (folder, name):
            if _same(os.lstat(name, dir_fd=folder), os.fstat(self._fd)):
                os.unlink(name, dir_fd=folder)
        fork.close_own(self._fd)
        self._fd = -1

    @contextmanager
    def _existing(self) -> Iterator[int | None]:
        """Open the file if it exists, and turn errors of the system into `ConfigError`."""
        fd = None
        try:
            fd = self._open()
            yield fd
        except OSError as error:
            folder = os.path.dirname(self.path)
            hint = "" if os.path.isdir(folder) else f"; there is no folder {folder}"
            raise ConfigError(
                f"{self.place}: cannot write {self.path}: {error.strerror}{hint}"
            ) from error
        finally:
            if fd is not None:
                os.close(fd)

    def _open(self) -> int | None:
        """Open the file without following a link; return `None` if there is none."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
        try:
            with parent_folder(self.path, follow=False) as (folder, name):
                fd = os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ConfigError(
                    f"{self.place}: {self.path} is a symbolic link, and was left alone; name the "
                    "file itself"
                ) from None
            raise
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ConfigError(
                f"{self.place}: {self.path} is not a regular file, and was left alone"
            )
        return fd

    def _lock(self, fd: int) -> None:
        """Lock a stale file, so that only one of several servers that find it replaces it."""
        pid = self._read(fd)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # No server has a lock for reading, which needs no right to write the file.
            found = fcntl.fcntl(fd, fcntl.F_GETLK, fcntl.F_WRLCK.to_bytes(2, byteorder) + bytes(30))
            if int.from_bytes(found[:2], byteorder) == fcntl.F_WRLCK:
                raise ConfigError(
                    f"{self.place}: {self.path} is held by process {pid}, which is running; stop "
                    "it, or choose another file"
                ) from None

    def _read(self, fd: int) -> str:
        """Return the process ID in a file; a file with anything else is no PID file."""
        text = os.pread(fd, 64, 0).strip()
        if not (text.isdigit() or not text):
            raise ConfigError(
                f"{self.place}: {self.path} does not hold a process ID, and "
                "was left alone; choose another file"
            )
        return text.decode()

    def _put(self, over: int | None) -> bool:
        """Put a complete new file in place; return `False` if another process was faster.

        `over`: descriptor of the file to replace; -1 for any, `None` for none.
        """
        # F_SETLK needs write access. Other users may read the file when it is complete.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with parent_folder(self.path, follow=False) as (folder, name):
            new = f"{name}.{os.urandom(6).hex()}"
            fd = os.open(new, flags, 0o600, dir_fd=folder)
            try:
                os.write(fd, f"{os.getpid()}\n".encode())
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.fchmod(fd, 0o644)
                if over is None:
                    os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder)
                elif over < 0 or _same(os.lstat(name, dir_fd=folder), os.fstat(over)):
                    os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    raise FileExistsError
            except BaseException as error:
                os.close(fd)
                if isinstance(error, (FileExistsError, FileNotFoundError)):
                    return False
                raise
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(new, dir_fd=folder)
        if self._fd >= 0:
            fork.close_own(self._fd)
        # The application in a child could write another process ID.
        fork.keep_from_children(fd)
        self._fd, self._pid = fd, os.getpid()
        return True


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
