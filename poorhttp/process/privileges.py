"""Drops the privileges of root: user, groups and umask of a process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Capabilities of a process (capabilities(7)).
CAP_SETGID = 6
CAP_SETUID = 7


class Privileges:
    """The user and group of workers, from the options `user` and `group`."""

    uid: int | None = None  # user ID; `None` does not change the user
    gid: int | None = None  # group ID; `None` does not change the group
    name = ""  # of the user; empty if the user is not changed or has no name
    home = "/"  # home folder of the user

    def __init__(self, settings: Settings) -> None:
        """Look up the user and group of the settings; check that this process may change to them.

        Raises:
            ConfigError: there is no such user or group, or this process may not change to it.
        """
        self._settings = settings
        if settings.user:
            self.uid, self.gid, self.name, self.home = _user(settings)
        if settings.group:
            self.gid = group_id(settings.group, settings.origin("group"))
        if self.changes:
            self._check_capabilities()

    def __str__(self) -> str:
        return self.name or user_name(os.geteuid() if self.uid is None else self.uid)

    @property
    def owner(self) -> tuple[int, int] | None:
        """User and group ID for files that workers write; -1: unchanged, `None`: both are."""
        if not self.changes:
            return None
        return (-1 if self.uid is None else self.uid, -1 if self.gid is None else self.gid)

    @property
    def changes(self) -> bool:
        """Whether `drop` changes the user or the group."""
        user_changes = self.uid is not None and {self.uid} != set(os.getresuid())
        return user_changes or (self.gid is not None and {self.gid} != set(os.getresgid()))

    def drop(self) -> None:
        """Change to this user and group for good, and give up the terminal of who started this.

        The supplementary groups become those of the user; without `user` there are none.

        Raises:
            ConfigError: the kernel refuses, or the user cannot enter a folder that is needed.
        """
        if not self.changes:
            return
        _leave_tty()
        try:
            # Groups before the user: only root may change them.
            if self.gid is not None:
                if self.name:
                    os.initgroups(self.name, self.gid)
                else:
                    os.setgroups([])
                os.setresgid(self.gid, self.gid, self.gid)
            if self.uid is not None:
                os.setresuid(self.uid, self.uid, self.uid)
        except OSError as error:
            raise ConfigError(
                f"{self._place}: cannot become {self}: {error.strerror}; without them, the server "
                f"runs as {user_name(os.geteuid())}"
            ) from error
        self._verify()
        if self.uid is not None:
            # From these, the application and its programs know their user.
            os.environ |= {"HOME": self.home, "USER": str(self), "LOGNAME": str(self)}
        self._check_folders()

    @property
    def _place(self) -> str:
        return self._settings.origin("user" if self.uid is not None else "group")

    def _check_capabilities(self) -> None:
        wanted = ((self.uid, CAP_SETUID, "user"), (self.gid, CAP_SETGID, "group"))
        for number, capability, option in wanted:
            if number is not None and not _may(capability):
                place = self._settings.origin(option if self._settings.is_set(option) else "user")
                raise ConfigError(
                    f"{place}: only root can become another user or group, and this is "
                    f"{user_name(os.geteuid())}; start the server as root, or leave it out"
                )

    def _verify(self) -> None:
        """Check that the change has worked and cannot be undone: the application is not trusted."""
        uids = () if self.uid is None else os.getresuid()
        gids = () if self.gid is None else os.getresgid()
        right = set(uids) <= {self.uid} and set(gids) <= {self.gid}
        if right and self.uid:
            try:
                os.setuid(0)
            except OSError:
                return
            right = False
        if not right:
            raise ConfigError(
                f"{self._place}: the system did not give up root's rights permanently"
            )

    def _check_folders(self) -> None:
        """Check the folders from which modules are imported.

        Python's import takes a folder that the user cannot enter for one that does not exist.
        """
        settings = self._settings
        folders = [(settings.origin("pythonpath"), folder) for folder in settings.pythonpath]
        folders.append((self._place, os.path.dirname(os.__file__)))
        for place, folder in [(settings.origin("chdir"), os.getcwd()), *folders]:
            closed = closed_folder(folder)
            if closed is not None:
                what = "Python's own library" if folder == folders[-1][1] else folder
                raise ConfigError(
                    f"{place}: {self} cannot read {what}: {closed} is closed to that user"
                )


def _leave_tty() -> None:
    """Give up the controlling terminal, to which its processes can type (TIOCSTI, ioctl_tty(2)).

    The shell that has started the server, or checks a configuration, would run that as root.
    Signals of the terminal still come, and descriptors of it stay open.
    """
    if os.getsid(0) == os.getpid():
        # Its end would be that of the whole session, in which no shell is.
        return
    found = [fd for fd in range(3) if os.isatty(fd)]
    tty = -1
    # There may be no terminal, or no such file.
    with suppress(OSError):
        tty = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        found.append(tty)
    if found:
        import fcntl
        import termios

        for fd in found:
            with suppress(OSError):
                fcntl.ioctl(fd, termios.TIOCNOTTY)
    if tty >= 0:
        os.close(tty)


def apply_umask(settings: Settings) -> None:
    if settings.umask is not None:
        os.umask(settings.umask)


def user_name(uid: int) -> str:
    """Return the name of a user, or the ID as text if it has none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def user_ids(pid: int, folder: int | None = None) -> set[int]:
    """Return the real, effective, saved and file system user IDs of a process; empty if it ended.

    Not the owner of its folder in /proc: that is root for each process that cannot be dumped. A
    descriptor of that `folder` stays that of the same process.
    """
    place = "status" if folder is not None else f"/proc/{pid}/status"
    return {int(word) for word in _status(place, b"Uid:", folder)}


def _status(place: str, field: bytes, folder: int | None = None) -> list[bytes]:
    """Return the words of a field in the status of a process; none if that cannot be read."""
    with (
        suppress(OSError),
        open(os.open(place, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), "rb") as status,
    ):
        for line in status:
            if line.startswith(field):
                return line.split()[1:]
    return []


def owner_ids(text: str, place: str) -> tuple[int, int]:
    """Return the IDs of `USER`, `USER:GROUP` or `:GROUP`; -1 for the part that is not given.

    Raises:
        ConfigError: beginning with `place`; there is no such user or group.
    """
    user, colon, group = text.partition(":")
    if colon and not group:
        raise ConfigError(f'{place}: "{text}" names no group; write USER, USER:GROUP or :GROUP')
    return user_id(user, place) if user else -1, group_id(group, place) if group else -1


def user_id(text: str, place: str) -> int:
    """Return the ID of a user that is given by name or ID; errors as `owner_ids`."""
    import pwd

    return _id("user", text, place, pwd.getpwnam, pwd.getpwall)


def group_id(text: str, place: str) -> int:
    """Return the ID of a group that is given by name or ID; errors as `owner_ids`."""
    import grp

    return _id("group", text, place, grp.getgrnam, grp.getgrall)


def _id(
    kind: str,
    text: str,
    place: str,
    find: Callable[[str], tuple[Any, ...]],
    all_entries: Callable[[], Iterable[tuple[Any, ...]]],
) -> int:
    if text.isascii() and text.isdigit():
        number = int(text[:20])
        # The largest means "unchanged" to chown(2) and its like.
        if number >= 2**32 - 1:
            raise ConfigError(f'{place}: "{text}" is too large for the number of a user or group')
        return number
    try:
        return int(find(text)[2])
    except KeyError:
        from poorhttp.config.suggestions import nearest

        near = nearest(text, [entry[0] for entry in all_entries()])
        hint = (
            f'did you mean "{near}"?' if near else f"name one of this machine, or its {kind} number"
        )
        raise ConfigError(f'{place}: there is no {kind} "{text}"; {hint}') from None


def closed_folder(path: str) -> str | None:
    """Return the outermost folder of `path`, or itself, that this process may not enter, if any."""
    path = os.path.abspath(path)
    parent = os.path.dirname(path)
    if parent != path:
        closed = closed_folder(parent)
        if closed is not None:
            return closed
    return path if os.path.isdir(path) and not os.access(path, os.X_OK) else None


def _user(settings: Settings) -> tuple[int, int, str, str]:
    import pwd

    place = settings.origin("user")
    uid = user_id(settings.user, place)
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        if not settings.group:
            raise ConfigError(
                f"{place}: the number {uid} belongs to no user whose group is known; set group, too"
            ) from None
        return uid, -1, "", "/"
    # Several users may share a number.
    if not settings.user.isdigit():
        entry = pwd.getpwnam(settings.user)
    return uid, entry.pw_gid, entry.pw_name, entry.pw_dir


def _may(capability: int) -> bool:
    """Whether this process has a capability: root in a container may lack it."""
    found = _status("/proc/self/status", b"CapEff:")
    return bool(int(found[0], 16) >> capability & 1) if found else os.geteuid() == 0
