"""Opens files as root below folders that other users may write, without following their links.

A user who may write a folder can put a link into it, and so have root create, change or read the
file that the link names (CVE-2016-1247). So root follows a symbolic link only if root or this
process's user owns it, or if nobody else may write the folder of the link; and only in such a
folder opens a file with further hard links, or follows a link of root that has some. The kernel's
`fs.protected_symlinks` and `fs.protected_hardlinks` do the same in sticky folders that everybody
may write; here the rule holds for each component of a path. Other users than root open files as
usual.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: As many links as the kernel follows in one path (path_resolution(7)).
MOST_LINKS = 40

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def safe_open(path: str, flags: int, mode: int = 0o666, *, folders: list[int] | None = None) -> int:
    """Open a file as `os.open`, with `O_CLOEXEC`; an OSError names a link that is not followed."""
    flags |= os.O_CLOEXEC
    if os.geteuid() != 0:
        return os.open(path, flags, mode)
    with parent_folder(path, folders=folders) as (folder, name):
        if os.fstat(folder).st_dev != _procfs():
            # A link may have been put there since.
            flags |= os.O_NOFOLLOW
        fd = os.open(name, flags, mode, dir_fd=folder)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and not _is_private(folder):
            os.close(fd)
            raise PermissionError(
                errno.EPERM,
                f"it has {found.st_nlink} hard links in a folder that others may write, and may be "
                "a file of another folder: remove it there, or choose a folder of root's",
            )
        return fd


def open_regular(path: str, folders: list[int] | None = None) -> int:
    """Open a regular file for reading, as `safe_open` does; never wait for a pipe or a device.

    `folders` gets descriptors of all folders in which root has looked names up; the caller closes
    them.

    Raises:
        OSError: as `safe_open`, or the file is not a regular one.
    """
    fd = safe_open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, folders=folders)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return fd


def open_found(path: str) -> int:
    """Open a regular file that was found, and that nobody has named, for reading.

    The author of such a file decides what this process does, and no option says that the author
    may. So the file must belong to root or to this process's user, and must not be writable by
    everybody. If this process is root, no other user may write the file, the folders of its path,
    or those of links on it: a user who can write a folder can replace the file.

    Args:
        path: relative to the current folder, or the same file's whole path.

    Raises:
        OSError: as `open_regular`, or with a sentence that says whose file it is.
    """
    fd, why = _open_and_judge(path)
    if why:
        os.close(fd)
        raise PermissionError(
            errno.EPERM,
            f"it was only found in this folder, and {why}: write -c {path} if you trust it",
        )
    return fd


def other_author(path: str) -> str:
    """Return why somebody else may decide what a file says; empty if nobody else may.

    The rule is that of `open_found`; what cannot be opened so is somebody else's.
    """
    try:
        fd, why = _open_and_judge(path)
    except OSError as error:
        return str(error.strerror)
    os.close(fd)
    return why


def _open_and_judge(path: str) -> tuple[int, str]:
    """Open a regular file; return its descriptor, and why somebody else may decide what it says."""
    folders: list[int] = []
    try:
        fd = open_regular(path, folders)
        return fd, _author(path, os.fstat(fd), folders)
    finally:
        for each in folders:
            os.close(each)


def _author(path: str, found: os.stat_result, folders: list[int]) -> str:
    own = os.geteuid()
    others = stat.S_IWOTH | (stat.S_IWGRP if own == 0 else 0)
    why = ""
    if found.st_uid not in (0, own):
        from poorhttp.process.privileges import user_name

        why = f"it belongs to user {user_name(found.st_uid)}"
    elif found.st_mode & others:
        why = f"others may write it (mode {stat.S_IMODE(found.st_mode):04o})"
    elif own == 0 and not path.startswith("/") and not _is_private("."):
        why = "others may write its folder"
    else:
        # Those of the path come first, then those to which links lead. A reload names the file by
        # its whole path, whose folders above the current one root has chosen.
        named = len(_names(path))
        for place, folder in enumerate(folders):
            if _is_private(folder) or (path.startswith("/") and place < named - 1):
                continue
            if place < named:
                why = "others may write its folder"
            elif place == len(folders) - 1 or not _is_sticky(folder):
                where = os.readlink(f"/proc/self/fd/{folder}")
                why = f"it is a link through {where}, which others may write"
    return why


def enter(path: str) -> None:
    """Change to a folder; as root, by links of a user only to a folder of that user.

    Root opens files by names that are relative to it.
    """
    if os.geteuid() != 0:
        os.chdir(path)
        return
    owners: set[int] = set()
    folder, name = _walk(path, True, None, owners)
    try:
        entered = os.open(name, _FOLDER, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        if owners - {os.fstat(entered).st_uid}:
            raise PermissionError(
                errno.EPERM,
                "it leads through a symbolic link of a user to a folder that is not that user's, "
                "which root does not follow: name the folder, or let root make the link (chown -h)",
            )
        os.fchdir(entered)
    finally:
        os.close(entered)


def write_file(path: str, content: bytes, *, replace: bool = False, mode: int = 0o666) -> None:
    """Put a complete file in place, for root and others: no link is written through.

    A file that is replaced leaves its permissions to the new one, and its owner if root does it.
    `replace`: a regular file may be there already. `mode`: permissions of a new file, before the
    umask.

    Raises:
        FileExistsError: there is one, and it is not to be replaced.
        OSError: as `os.open`, or with a sentence about what is there and is left alone.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with parent_folder(path, follow=False) as (folder, name):
        try:
            before = os.stat(name, dir_fd=folder, follow_symlinks=False) if replace else None
        except FileNotFoundError:
            before = None
        if before is not None and not stat.S_ISREG(before.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(before.st_mode) else "no regular file"
            raise OSError(errno.EEXIST, f"it is {kind}, and was left alone; name another file")
        new = name if before is None else f".{name[:200]}.{os.urandom(6).hex()}"
        fd = os.open(new, flags, mode, dir_fd=folder)
        try:
            with open(fd, "wb") as file:
                file.write(content)
                if before is not None:
                    if os.geteuid() == 0:
                        os.fchown(fd, before.st_uid, before.st_gid)
                    os.fchmod(fd, stat.S_IMODE(before.st_mode) & 0o777)
            if before is not None:
                os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(new, dir_fd=folder)
            raise


def make_folders(path: str, mode: int = 0o777) -> None:
    """Make a folder and those above it, not through links of others; an OSError if that fails."""
    path = os.path.abspath(path)
    if not os.path.lexists(path):
        make_folders(os.path.dirname(path), mode)
        with parent_folder(path, follow=False) as (folder, name), suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=folder)
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


@contextmanager
def parent_folder(
    path: str, *, follow: bool = True, folders: list[int] | None = None
) -> Iterator[tuple[int, str]]:
    """Open the folder that holds a file; yield its descriptor, for `dir_fd`, and the file's name.

    The file need not exist. Links that are put into the path later do not change the folder.
    `follow`: the file itself is followed, too, if it is a symbolic link. `folders`: see
    `open_regular`.

    Raises:
        OSError: a folder does not exist, or a link is not followed.
    """
    if os.geteuid() != 0 and not follow:
        folder = os.open(os.path.dirname(path) or ".", _FOLDER)
        name = os.path.basename(path)
    else:
        folder, name = _walk(path, follow, folders)
    try:
        yield folder, name
    finally:
        os.close(folder)


def _walk(
    path: str, follow: bool, folders: list[int] | None, owners: set[int] | None = None
) -> tuple[int, str]:
    """`owners`: links of others are followed, and their users added."""
    folder = os.open("/" if path.startswith("/") else ".", _FOLDER)
    links = 0
    names = _names(path)
    try:
        while True:
            name = names.pop() if names else "."
            if folders is not None:
                folders.append(os.dup(folder))
            if not names and not follow:
                return folder, name
            try:
                entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except FileNotFoundError:
                if names:
                    raise
                return folder, name
            try:
                found = os.fstat(entry)
                if not stat.S_ISLNK(found.st_mode):
                    if not names:
                        return folder, name
                    folder, entry = entry, folder
                    continue
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                _check(found, folder, name, owners)
                if found.st_dev == _procfs():
                    # The kernel follows such a link by itself; its text may be no path.
                    if not names:
                        return folder, name
                    target = os.open(name, _FOLDER, dir_fd=folder)
                    os.close(folder)
                    folder = target
                    continue
                text = os.readlink("", dir_fd=entry)
                names += _names(text)
                if text.startswith("/"):
                    os.close(folder)
                    folder = os.open("/", _FOLDER)
            finally:
                os.close(entry)
    except BaseException:
        os.close(folder)
        raise


def _names(path: str) -> list[str]:
    """Return the components of a path, the last first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _check(link: os.stat_result, folder: int, name: str, owners: set[int] | None) -> None:
    is_ours = link.st_uid in (0, os.geteuid())
    if (is_ours and link.st_nlink == 1) or _is_private(folder):
        return
    if owners is not None:
        # Others have given a link of root that name.
        owners.add(-1 if is_ours else link.st_uid)
        return
    from poorhttp.process.privileges import user_name

    path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
    if is_ours:
        # Without `fs.protected_hardlinks`, others can give each link of root a name here.
        raise PermissionError(
            errno.EPERM,
            f"{path} is a symbolic link with {link.st_nlink} hard links in a folder that others "
            "may write, which root does not follow: name the file itself",
        )
    raise PermissionError(
        errno.EPERM,
        f"{path} is a symbolic link of user {user_name(link.st_uid)}, which root does not follow: "
        "name the file itself, or let root make the link (chown -h root)",
    )


def _is_private(folder: int | str) -> bool:
    """Whether only root and this process's user may write a folder: its descriptor, or its path."""
    found = os.stat(folder)
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_sticky(folder: int) -> bool:
    """Whether a folder of root keeps others from renaming what is not theirs, as /tmp does."""
    found = os.stat(folder)
    return found.st_uid in (0, os.geteuid()) and bool(found.st_mode & stat.S_ISVTX)


def _procfs() -> int:
    """Return the device of /proc, whose links are the kernel's own."""
    try:
        return os.stat("/proc/self").st_dev
    except OSError:
        return -1
