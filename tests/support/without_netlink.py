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

#: Of `linux/prctl.h` and `linux/seccomp.h`.
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2
ALLOW, ERRNO = 0x7FFF0000, 0x00050000

#: The number of socket(2).
NUMBER = {"x86_64": 41, "aarch64": 198}[platform.machine()]

#: Code, jump if true, jump if false, operand (seccomp(2)).
PROGRAM = (
    (0x20, 0, 0, 0),  # A = the number of the system call
    (0x15, 0, 3, NUMBER),  # if A is not that of socket, allow
    (0x20, 0, 0, 16),  # A = the family
    (0x15, 0, 1, socket.AF_NETLINK),  # if A is not netlink, allow
    (0x06, 0, 0, ERRNO | errno.EAFNOSUPPORT),
    (0x06, 0, 0, ALLOW),
)


def main() -> None:
    """Set the filter, and execute the command."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in PROGRAM))
    program = struct.pack("@HP", len(PROGRAM), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, FILTER, program, 0, 0)):
        if libc.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
