"""Whom processes act as: user, groups and umask."""

from __future__ import annotations

import os

from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings

#: Numbers of what a process may do (capabilities(7)).
CAP_SETGID = 6
CAP_SETUID = 7


class Privileges:
    """Whom workers become; nobody else where neither `user` nor `group` is set.

    Attributes:
        uid: number of the user; `None` stays who we are.
        gid: number of the group; `None` stays in ours.
        name: of the user, empty if there is none or the number has no name.
        home: folder of the user.
    """

    def __init__(
        self,
        uid: int | None = None,
        gid: int | None = None,
        name: str = "",
        home: str = "/",
        *,
        settings: Settings,
    ) -> None:
        self.uid = uid
        self.gid = gid
        self.name = name
        self.home = home
        self._settings = settings

    @classmethod
    def of(cls, settings: Settings) -> Privileges:
        """Find out whom the settings mean, and whether we may become that.

        Raises:
            ConfigError: there is no such user or group, or we are not allowed to change to it.
        """
        uid, gid, name, home = None, None, "", "/"
        if settings.user:
            uid, gid, name, home = _user(settings)
        if settings.group:
            gid = group_number(settings.group, settings.origin("group"))
        privileges = cls(uid, gid, name, home, settings=settings)
        privileges._check_capabilities()
        return privileges

    def __str__(self) -> str:
        """Return the user as people know it: its name, or else its number."""
        uid = os.geteuid() if self.uid is None else self.uid
        return self.name or user_name(uid)

    @property
    def owner(self) -> tuple[int, int] | None:
        """Who gets the files that it shall be able to write; -1 for what stays; `None`: nobody."""
        if not self.changes:
            return None
        return (-1 if self.uid is None else self.uid, -1 if self.gid is None else self.gid)

    @property
    def changes(self) -> bool:
        """Whether becoming it does anything."""
        uids = {self.uid} - {None}
        gids = {self.gid} - {None}
        return (bool(uids) and uids != set(os.getresuid())) or (
            bool(gids) and gids != set(os.getresgid())
        )

    def drop(self) -> None:
        """Be this user and group from now on, for good.

        Further groups are those of the user; a group alone leaves them all.

        Raises:
            ConfigError: the system does not let us, or a folder that we need is closed to the user.
        """
        if not self.changes:
            return
        try:
            # Groups before the user: whoever is no longer root may not change them.
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
            self._set_environment()
        self._check_folders()

    @property
    def _place(self) -> str:
        return self._settings.origin("user" if self.uid is not None else "group")

    def _check_capabilities(self) -> None:
        if not self.changes:
            return
        for capability, option in ((CAP_SETUID, "user"), (CAP_SETGID, "group")):
            wanted = self.uid if option == "user" else self.gid
            if wanted is not None and not _may(capability):
                place = self._settings.origin(option if self._settings.is_set(option) else "user")
                raise ConfigError(
                    f"{place}: only root can become another user or group, and this is "
                    f"{user_name(os.geteuid())}; start the server as root, or leave it out"
                )

    def _verify(self) -> None:
        """Check that it has worked and cannot be undone: what comes now may be hostile."""
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
            raise ConfigError(f"{self._place}: the system did not let root's rights go for good")

    def _set_environment(self) -> None:
        """Tell the application and what it starts who they are."""
        os.environ["HOME"] = self.home
        for variable in ("USER", "LOGNAME"):
            os.environ[variable] = str(self)

    def _check_folders(self) -> None:
        """Check the folders that everything else is read from.

        What is closed to us looks to Python's import as if it was not there.
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


def apply_umask(settings: Settings) -> None:
    """Withhold from now on the permissions that `umask` says."""
    if settings.umask is not None:
        os.umask(settings.umask)


def user_name(uid: int) -> str:
    """Return the name of a user, or the number as text if it has none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def user_number(text: str, place: str) -> int:
    """Return the number of a user that is given by name or number.

    Raises:
        ConfigError: beginning with `place`; there is no user of that name.
    """
    import pwd

    if text.isascii() and text.isdigit():
        return _number(text, place)
    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError:
        names = [entry.pw_name for entry in pwd.getpwall()]
        raise ConfigError(_unknown("user", text, place, names)) from None


def group_number(text: str, place: str) -> int:
    """Return the number of a group that is given by name or number.

    Raises:
        ConfigError: beginning with `place`; there is no group of that name.
    """
    import grp

    if text.isascii() and text.isdigit():
        return _number(text, place)
    try:
        return grp.getgrnam(text).gr_gid
    except KeyError:
        names = [entry.gr_name for entry in grp.getgrall()]
        raise ConfigError(_unknown("group", text, place, names)) from None


def owner_numbers(text: str, place: str) -> tuple[int, int]:
    """Return user and group of `USER`, `USER:GROUP` or `:GROUP`; -1 for what is not to change.

    Raises:
        ConfigError: beginning with `place`; there is no such user or group.
    """
    user, colon, group = text.partition(":")
    if colon and not group:
        raise ConfigError(f'{place}: "{text}" names no group; write USER, USER:GROUP or :GROUP')
    return (
        user_number(user, place) if user else -1,
        group_number(group, place) if group else -1,
    )


def closed_folder(path: str) -> str | None:
    """Return the outermost folder on the way to `path`, or that itself, that we may not enter."""
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
    uid = user_number(settings.user, place)
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


def _number(text: str, place: str) -> int:
    number = int(text[:20])
    # The largest means "leave it" to chown(2) and its like.
    if number >= 2**32 - 1:
        raise ConfigError(f'{place}: "{text}" is too large for the number of a user or group')
    return number


def _unknown(kind: str, text: str, place: str, names: list[str]) -> str:
    from poorhttp.config.suggestions import nearest

    near = nearest(text, names)
    hint = f'did you mean "{near}"?' if near else f"name one of this machine, or its {kind} number"
    return f'{place}: there is no {kind} "{text}"; {hint}'


def _may(capability: int) -> bool:
    """Whether we have a capability: root in a container may not, and others may."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("CapEff:"):
                    return bool(int(line.split()[1], 16) >> capability & 1)
    except OSError:
        pass
    return os.geteuid() == 0
