"""Execute a command that may open no netlink socket, as with `RestrictAddressFamilies=`.

python -m tests.support.without_netlink COMMAND ...
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys
from collections.abc import Sequence

#: Of `linux/prctl.h` and `linux/seccomp.h`.
PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER, FILTER_FLAG_TSYNC = 38, 1, 1
ALLOW, ERRNO = 0x7FFF0000, 0x00050000

#: The numbers of socket(2) and seccomp(2).
NUMBERS = {"x86_64": (41, 317), "aarch64": (198, 277)}


def set_filter(*instructions: Sequence[int]) -> None:
    """Filter the system calls of all threads of this process from now on (seccomp(2)).

    An instruction is its code, jump if true, jump if false, operand.
    """
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in instructions))
    program = struct.pack("@HP", len(instructions), ctypes.addressof(code))
    number = NUMBERS[platform.machine()][1]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(
        number, SET_MODE_FILTER, FILTER_FLAG_TSYNC, program
    ):
        raise OSError(ctypes.get_errno(), "seccomp")


def main() -> None:
    """Set the filter, and execute the command."""
    set_filter(
        (0x20, 0, 0, 0),  # A = the number of the system call
        (0x15, 0, 3, NUMBERS[platform.machine()][0]),  # if A is not that of socket, allow
        (0x20, 0, 0, 16),  # A = the family
        (0x15, 0, 1, socket.AF_NETLINK),  # if A is not netlink, allow
        (0x06, 0, 0, ERRNO | errno.EAFNOSUPPORT),
        (0x06, 0, 0, ALLOW),
    )
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
