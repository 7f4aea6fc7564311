"""Finds the address `admin` of a server: by option, by its file, by its pidfile, by its processes.

Without an option, `poorhttp.ini` of the current folder names the server, if `admin` is set in it.

Anybody can write a file with a number, listen at an address, or have memory of that name. So a
server is taken for one only if its process belongs to a user who may be asked (`Place.check`).

A server has memory that it shares with its admin process, and whose name, in /proc/PID/fd, has the
address (`supervisor/admin/questions.py`). So a pidfile leads to the address, also if the system has
chosen the port.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from poorhttp.config import address, ini, loader
from poorhttp.config.address import Address
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, UsageError, printable, visible
from poorhttp.plugins.monitor.admin.protection import read_token_file
from poorhttp.plugins.monitor.admin.questions import MEMORY_NAME
from poorhttp.plugins.monitor.options import Monitoring
from poorhttp.process.privileges import user_ids, user_name
from poorhttp.process.safe_open import open_found, open_regular

#: Beginning and end of the link in /proc/PID/fd.
LINK = f"/memfd:{MEMORY_NAME} "
DELETED = " (deleted)"

WAYS = "name it with --admin ADDRESS, -c FILE or --pidfile FILE"


class Place:
    """Where a server answers.

    Attributes:
        address: it can be connected to.
        token: empty without one.
    """

    def __init__(self, address: Address, token: Token | None = None) -> None:
        self.address = address
        self.token = token.text if token is not None else b""
        self._token = token

    def check(self, uids: Iterable[int], who: str) -> None:
        """Check that the token may be sent to processes of these users.

        Raises:
            ConfigError: one of them must not know it.
        """
        strangers = [uid for uid in uids if self._token is not None and not self._token.is_for(uid)]
        if strangers:
            raise ConfigError(
                f"{self.address}: {who} user {user_name(strangers[0])}, who may not read the "
                "token: it was not sent; ask as that user, or start the server as root"
            )


class Token:
    """A token, and who may read its file.

    Attributes:
        text: the token.
    """

    def __init__(self, path: str, place: str) -> None:
        """Read it.

        Raises:
            ConfigError: it cannot be used.
        """
        self.text, self._found = read_token_file(path, place)

    def is_for(self, uid: int) -> bool:
        """Whether a user may know it: root, our own, and who may read its file."""
        found = self._found
        if uid in (0, os.geteuid()):
            return True
        if uid == found.st_uid:
            return bool(found.st_mode & stat.S_IRUSR)
        return bool(found.st_mode & stat.S_IRGRP) and found.st_gid in groups_of(uid)


def find(options: Mapping[str, str], environ: Mapping[str, str]) -> Place:
    """Return where the server answers that options of `ctl` name, or else the only one.

    Raises:
        UsageError: an option is wrong.
        ConfigError: a file is wrong, or no server is found by it.
    """
    token = None
    file = options.get("--token-file") or environ.get("POORHTTP_ADMIN_TOKEN_FILE", "off")
    if file != "off":
        token = Token(file, "--token-file")
    if "--config" in options:
        return _by_file(options["--config"], environ, token)
    if "--pidfile" in options:
        return _by_pidfile(options["--pidfile"], token)
    text = options.get("--admin") or environ.get("POORHTTP_ADMIN", "off")
    if text != "off":
        return Place(_connectable(_parse(text, "--admin")), token)
    return _by_found_file(environ, token) or Place(_only_one(), token)


def _by_found_file(environ: Mapping[str, str], token: Token | None) -> Place | None:
    """Return where the server answers whose file is in the current folder; `None`: there is none.

    A file that cannot be used is left out with a message: it may be the mistake that an operator
    is about to undo.
    """
    file = loader.found()
    if not file:
        return None
    try:
        settings = loader.load({}, environ, file, opener=open_found)[0]
        if settings.of(Monitoring).admin is None:
            return None
        place = _by_settings(file, settings, token)
    except ConfigError as error:
        why = printable(str(error))
        print(f"poorhttp: {file} of this folder is left out: {why}", file=sys.stderr)
        return None
    print(f"poorhttp: {place.address}, by {file} of this folder", file=sys.stderr)
    return place


def _by_file(file: str, environ: Mapping[str, str], token: Token | None) -> Place:
    found: list[os.stat_result] = []

    def opener(path: str) -> int:
        fd = ini.open_file(path)
        found.append(os.fstat(fd))
        return fd

    settings = loader.load({}, environ, file, opener=opener)[0]
    return _by_settings(file, settings, token, found[0])


def _by_settings(
    file: str, settings: Settings, token: Token | None, found: os.stat_result | None = None
) -> Place:
    """Return where the server answers that has been started with settings of a file.

    Args:
        file: its name.
        settings: what it says.
        token: to send, instead of the token that the file names.
        found: owner and mode of the file, unless only who asks and root may write it.

    Raises:
        ConfigError: they do not tell.
    """
    options = settings.of(Monitoring)
    admin = options.admin
    if admin is None:
        raise ConfigError(
            f"{file}: admin is not set; set admin = 127.0.0.1:9090, or unix:/run/poorhttp.admin, "
            f"in [{loader.SECTION}], and reload the server"
        )
    loader.change_folder(settings)
    if not token and options.admin_token_file is not None:
        token = Token(options.admin_token_file, settings.origin("admin_token_file"))
        if found is not None:
            _check_writers(found, token, file, settings.origin("admin_token_file"))
    if admin.kind == "fd" or (admin.kind == "tcp" and admin.port == 0):
        if settings.pidfile is None:
            raise ConfigError(
                f"{settings.origin('admin')}: {admin} does not say where the server listens; its "
                "log does: name that with --admin"
            )
        return _by_pidfile(settings.pidfile, token)
    return Place(_connectable(admin), token)


def _check_writers(found: os.stat_result, token: Token, file: str, place: str) -> None:
    """Check that who may write the configuration file may read the token that it names.

    The file also names who gets the token: any file of root could be sent to any address by it.
    """
    writers = {found.st_uid}
    if found.st_mode & stat.S_IWGRP:
        writers |= members_of(found.st_gid)
    strangers = [uid for uid in sorted(writers) if not token.is_for(uid)]
    if found.st_mode & stat.S_IWOTH:
        who = "everybody"
    elif strangers:
        who = f"user {user_name(strangers[0])}, who may not read the token,"
    else:
        return
    raise ConfigError(
        f"{place}: {who} may write {file}: the token was not sent; name it with --token-file"
    )


def _by_pidfile(path: str, token: Token | None) -> Place:
    """Return where the server answers whose process ID is in a file.

    A file counts only for processes of its owner, if that is neither root nor who asks. The process
    has to belong to root or to who asks, if a token is sent, or to somebody who may read that.
    """
    try:
        with open(open_regular(path), "rb") as file:
            status = os.fstat(file.fileno())
            text = file.read(64).strip()
    except OSError as error:
        hint = "; is the server running?" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"{path}: {error.strerror}{hint}") from error
    if not (text.isdigit() and 0 < int(text) < 1 << 31):
        raise ConfigError(f"{path} does not hold a process ID")
    pid = int(text)
    try:
        with _process(pid) as folder:
            uids = user_ids(pid, folder)
            found = next(_addresses(folder), None)
        if not uids:
            raise ProcessLookupError
    except (FileNotFoundError, ProcessLookupError):
        raise ConfigError(f"{path}: process {pid} has ended") from None
    except PermissionError:
        raise ConfigError(
            f"{path}: process {pid} belongs to another user; name its address with --admin"
        ) from None
    if found is None:
        raise ConfigError(
            f"{path}: process {pid} has no admin address; is it the server, and is its option "
            "admin set?"
        )
    if status.st_uid not in (0, os.geteuid()) and uids != {status.st_uid}:
        raise ConfigError(
            f"{path} belongs to user {user_name(status.st_uid)}, and names process {pid} of "
            "another user; name its address with --admin"
        )
    place = Place(found, token)
    place.check(uids, f"process {pid} belongs to")
    return place


def _only_one() -> Address:
    """Return the address of the only server of this user."""
    found: dict[str, Address] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), _process(int(name)) as folder:
                # Root takes no address from another user, who could answer there.
                if user_ids(int(name), folder) == {os.geteuid()}:
                    for each in _addresses(folder):
                        found[str(each)] = each
    if len(found) > 1:
        texts = map(visible, sorted(found))
        raise UsageError(
            f"several servers are running; name one: --admin {', or --admin '.join(texts)}"
        )
    if not found:
        raise UsageError(f"found no running server with an admin address (option admin); {WAYS}")
    return next(iter(found.values()))


@contextmanager
def _process(pid: int) -> Iterator[int]:
    """Open the folder of a process in /proc, which stays that of the same process.

    Raises:
        OSError: there is no such process.
    """
    folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)


def _addresses(process: int) -> Iterator[Address]:
    """Yield the addresses of the memory that a process has open, by its folder.

    Raises:
        OSError: the process has ended, or may not be inspected.
    """
    folder = os.open("fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=process)
    try:
        links = [_target(fd, folder) for fd in os.listdir(folder)]
    finally:
        os.close(folder)
    for link in links:
        text = link.removeprefix(LINK).removesuffix(DELETED)
        if text != link and text:
            if not text.startswith("unix:"):
                text = text.split()[0].removeprefix("http://")
            with suppress(ValueError):
                yield _connectable(address.parse(text))


def _target(fd: str, folder: int) -> str:
    try:
        return os.readlink(fd, dir_fd=folder)
    except OSError:
        return ""


def _parse(text: str, place: str) -> Address:
    try:
        found = address.parse(text.removeprefix("http://").rstrip("/"))
    except ValueError as error:
        raise UsageError(f"{place}: {error}") from None
    if found.protocol != "http" or found.kind == "fd" or (found.kind == "tcp" and not found.port):
        raise UsageError(f'{place}: "{text}" cannot be connected to; write HOST:PORT or unix:PATH')
    return found


def _connectable(found: Address) -> Address:
    """Return an address of this machine for one that stands for all of its addresses."""
    if found.kind == "tcp" and found.host in ("0.0.0.0", "::", ""):
        return Address("tcp", host="127.0.0.1" if found.host != "::" else "::1", port=found.port)
    if found.kind == "unix" and not found.abstract:
        return Address("unix", path=os.path.abspath(found.path))
    return found


def groups_of(uid: int) -> list[int]:
    """Return the groups of a user; none if the user has no name."""
    import pwd

    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return []
    return os.getgrouplist(entry.pw_name, entry.pw_gid)


def members_of(gid: int) -> set[int]:
    """Return the users of a group, as far as the system lists its users."""
    import grp
    import pwd

    try:
        names = grp.getgrgid(gid).gr_mem
    except KeyError:
        names = []
    return {user.pw_uid for user in pwd.getpwall() if user.pw_gid == gid or user.pw_name in names}
