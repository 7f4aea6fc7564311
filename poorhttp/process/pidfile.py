"""The file that tells others the number of the main process."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress

from poorhttp.errors import ConfigError
from poorhttp.process.safe_open import parent_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from poorhttp.config.settings import Settings

#: How often a file may change under our hands before we give up.
TRIES = 10


class PidFile:
    """A pidfile. Who has written it holds a lock on it, so that nobody is fooled by a stale one.

    The lock is one of fcntl(2): it ends with this process, whoever else has the file open, and
    children do not inherit it. A number alone tells nothing, since it may belong to another process
    by now.

    Attributes:
        path: absolute.
        place: where it was set, for messages.
    """

    def __init__(self, path: str, place: str = "pidfile") -> None:
        self.path = os.path.abspath(path)
        self.place = place
        self._fd = -1
        self._pid = 0

    @classmethod
    def of(cls, settings: Settings) -> PidFile | None:
        """Return the one that the settings ask for, `None` if they ask for none."""
        return cls(settings.pidfile, settings.origin("pidfile")) if settings.pidfile else None

    def check(self, is_ours: Callable[[int], bool] = lambda pid: False) -> None:
        """Find out whether it can be written, long before it is.

        Args:
            is_ours: asked about the process that holds it, which may be if so.

        Raises:
            ConfigError: another server holds it, or it cannot be written.
        """
        try:
            old = self._open()
            if old is not None:
                # Closing it gives the lock back; if it is ours already, it must not be opened.
                try:
                    self._claim(old)
                except ConfigError:
                    pid = self._read(old)
                    if not (pid and is_ours(int(pid))):
                        raise
                finally:
                    os.close(old)
            folder = os.path.dirname(self.path)
            if not os.access(folder, os.W_OK | os.X_OK):
                missing = not os.path.isdir(folder)
                code = errno.ENOENT if missing else errno.EACCES
                raise OSError(code, os.strerror(code))
        except OSError as error:
            raise self._unwritable(error) from error

    def write(self) -> None:
        """Write our number; a file that is left over is replaced.

        Raises:
            ConfigError: another server holds it, or it cannot be written.
        """
        try:
            for _ in range(TRIES):
                old = self._open()
                try:
                    if old is not None:
                        self._claim(old)
                    if self._put(over=old):
                        return
                finally:
                    if old is not None:
                        os.close(old)
        except OSError as error:
            raise self._unwritable(error) from error
        raise ConfigError(f"{self.place}: {self.path}: other processes keep changing it")

    def replace(self) -> None:
        """Write our number over that of a process which lives, and whom we succeed.

        Raises:
            ConfigError: it cannot be written.
        """
        try:
            old = self._open()
            if old is not None:
                try:
                    self._read(old)
                finally:
                    os.close(old)
            self._put(over=-1)
        except OSError as error:
            raise self._unwritable(error) from error

    def remove(self) -> None:
        """Remove it, if it is still ours; never fails."""
        if self._fd < 0 or self._pid != os.getpid():
            return
        with suppress(OSError), parent_folder(self.path, follow=False) as (folder, name):
            if _same(os.lstat(name, dir_fd=folder), os.fstat(self._fd)):
                os.unlink(name, dir_fd=folder)
        os.close(self._fd)
        self._fd = -1

    def _open(self) -> int | None:
        """Open what is there, without following a link; `None` if nothing is."""
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
            raise ConfigError(f"{self.place}: {self.path} is no file, and was left alone")
        return fd

    def _claim(self, fd: int) -> None:
        """Lock what is there, so that only one of several who find it stale replaces it."""
        pid = self._read(fd)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{self.place}: {self.path} is held by process {pid}, which is running; stop it, "
                "or choose another file"
            ) from None

    def _read(self, fd: int) -> str:
        """Return the number in a file, of which we must be sure that it is a pidfile."""
        text = os.pread(fd, 64, 0).strip()
        if not (text.isdigit() or not text):
            raise ConfigError(
                f"{self.place}: {self.path} holds something else than the number of a process, and "
                "was left alone; choose another file"
            )
        return text.decode()

    def _put(self, over: int | None) -> bool:
        """Put a new file there: it is never half written. Tell whether nobody was faster.

        Args:
            over: the file to replace; -1 for any, `None` for none.
        """
        with parent_folder(self.path, follow=False) as (folder, name):
            fd = self._put_into(folder, name, over)
        if fd < 0:
            return False
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        self._pid = os.getpid()
        return True

    def _put_into(self, folder: int, name: str, over: int | None) -> int:
        """Put a new file into the folder; return its descriptor, -1 if somebody was faster."""
        new = f"{name}.{os.urandom(6).hex()}"
        # Readable, because F_SETLK wants to write and `remove` to compare; owners only, until done.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
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
        except (FileExistsError, FileNotFoundError):
            os.close(fd)
            return -1
        except BaseException:
            os.close(fd)
            raise
        finally:
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=folder)
        return fd

    def _unwritable(self, error: OSError) -> ConfigError:
        folder = os.path.dirname(self.path)
        hint = "" if os.path.isdir(folder) else f"; there is no folder {folder}"
        return ConfigError(f"{self.place}: cannot write {self.path}: {error.strerror}{hint}")


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
