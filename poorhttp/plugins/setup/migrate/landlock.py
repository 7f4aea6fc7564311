"""Landlock rules of this process: files below some folders can be read, none can be written."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
from collections.abc import Sequence

#: Numbers of the system calls, which are the same on all architectures.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446

_VERSION = 1
_PATH_BENEATH = 1

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3

#: Rights on files that a version of Landlock knows: the number of their bits, from the lowest.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}

#: Binding and connecting TCP sockets (version 4); abstract Unix sockets and signals (version 6).
_NETWORK, _SCOPES = 0b11, 0b11


def restrict(libc: ctypes.CDLL, readable: Sequence[int]) -> None:
    """Allow this process, for good, to read these files (descriptors, O_PATH) and those below.

    The process has given up new rights before (PR_SET_NO_NEW_PRIVS).

    Raises:
        OSError: the kernel has no Landlock, or it is switched off.
    """
    version = _call(libc, CREATE_RULESET, None, 0, _VERSION)
    rights = (1 << _RIGHTS[min(version, max(_RIGHTS))]) - 1
    attributes = struct.pack("=Q", rights)
    if version >= 4:
        attributes += struct.pack("=Q", _NETWORK)
    if version >= 6:
        attributes += struct.pack("=Q", _SCOPES)
    rules = _call(libc, CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for fd in readable:
            folder = stat.S_ISDIR(os.fstat(fd).st_mode)
            allowed = _READ_FILE | (_READ_DIR if folder else 0)
            _call(libc, ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", allowed, fd), 0)
        _call(libc, RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def opened(paths: Sequence[str]) -> list[int]:
    """Return descriptors of what exists of `paths`."""
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            found.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
    return found


def _call(libc: ctypes.CDLL, number: int, *arguments: int | bytes | None) -> int:
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *words))
    if result < 0:
        code = ctypes.get_errno() or errno.EPERM
        raise OSError(code, os.strerror(code))
    return result
