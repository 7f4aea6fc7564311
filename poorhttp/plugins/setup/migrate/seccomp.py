"""A filter of system calls (seccomp(2)) that allows what is on a list, and refuses the rest.

The list holds what CPython needs to import modules, compute, and read files. Everything else fails
with EPERM: whatever changes a file, signals or traces a process, makes one, or opens a socket, also
by calls that are not known yet. A call of another architecture (int 0x80, x32) ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

#: Names of system calls that are allowed, with their numbers on x86_64 and on the architectures of
#: include/uapi/asm-generic/unistd.h; None: it does not exist there.
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    # Descriptors that are open.
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "pread64": (17, 67),
    "lseek": (8, 62),
    "close": (3, 57),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    # What files there are; landlock.py decides which of them may be opened.
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "chdir": (80, 49),
    "fchdir": (81, 50),
    "umask": (95, 166),
    # Memory of this process.
    "brk": (12, 214),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "mprotect": (10, 226),
    "madvise": (28, 233),
    # Signals that this process gets, locks, time.
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "futex": (202, 98),
    "sched_yield": (24, 124),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "time": (201, None),
    # What this process and this machine are.
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getresuid": (118, 148),
    "getresgid": (120, 150),
    "getgroups": (115, 158),
    "getpgrp": (111, None),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "times": (100, 153),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "sched_getaffinity": (204, 123),
    "getrandom": (318, 278),
    # The end.
    "exit": (60, 93),
    "exit_group": (231, 94),
}

#: System calls that are allowed with some arguments only.
OPEN = (2, None)
OPENAT = (257, 56)
IOCTL = (16, 29)
FCNTL = (72, 25)
PRLIMIT64 = (302, 261)

#: seccomp(2) itself.
SECCOMP = (317, 277)

#: Architectures by their name in uname(2): number for seccomp(2), and index in the tables above.
ARCHITECTURES = {
    "x86_64": (0xC000003E, 0),
    "aarch64": (0xC00000B7, 1),
    "riscv64": (0xC00000F3, 1),
}

#: Flags of open(2) for reading. Without O_TRUNC: Landlock does not see it before Linux 6.2.
READING = (
    os.O_RDONLY
    | os.O_CLOEXEC
    | os.O_DIRECTORY
    | os.O_NOFOLLOW
    | os.O_NOCTTY
    | os.O_NONBLOCK
    | os.O_PATH
    | 0o100000  # O_LARGEFILE as x86_64 has it; 0 in Python.
    | os.O_LARGEFILE
)

#: What ioctl(2) may ask: TCGETS and TCGETS2 (isatty), the size of a window, FIONREAD, FIOCLEX and
#: FIONCLEX. Others write to terminals, or have signals sent (FIOSETOWN).
IOCTLS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5451, 0x5450)

#: What fcntl(2) may do: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC. Others have signals
#: sent to any process of the user (F_SETOWN), and lock files.
FCNTLS = (0, 1, 2, 3, 1030)

#: Instructions of classic BPF: load a word, jump if equal, greater or equal, bits set; return.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

#: What a filter returns.
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM = _ERRNO | errno.EPERM
_EACCES = _ERRNO | errno.EACCES

#: Offsets in struct seccomp_data.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

_SET_MODE_FILTER, _TSYNC = 1, 1


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _argument(index: int, *, high: bool = False) -> bytes:
    """Load half of an argument, the low 32 bits or the high ones, which are the last four bytes."""
    return _instruction(_LOAD, _ARGUMENTS + 8 * index + 4 * high)


def _one_of(values: tuple[int, ...]) -> list[bytes]:
    """Allow the call if the word that was loaded is one of `values`."""
    found = []
    for value in values:
        found += [_instruction(_EQUAL, value, 0, 1), _instruction(_RETURN, _ALLOW)]
    return [*found, _instruction(_RETURN, _EPERM)]


def _only_reading(index: int) -> list[bytes]:
    """Allow open(2) if its flags, an argument, are those of reading."""
    return [
        _argument(index),
        _instruction(_ANY_BIT, ~READING & 0xFFFFFFFF, 1, 0),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _EACCES),
    ]


def program(machine: str) -> bytes:
    """Return the instructions for a machine.

    Raises:
        OSError: its system calls are not known here.
    """
    if machine not in ARCHITECTURES or struct.calcsize("P") != 8:
        raise OSError(errno.ENOSYS, "no list of system calls for this machine")
    architecture, column = ARCHITECTURES[machine]
    found = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD, _NUMBER),
        # x32 has the architecture of x86_64, and this bit.
        _instruction(_AT_LEAST, 0x40000000, 0, 1),
        _instruction(_RETURN, _KILL_PROCESS),
    ]
    checked: dict[tuple[int | None, int | None], list[bytes]] = {
        OPEN: _only_reading(1),
        OPENAT: _only_reading(2),
        IOCTL: [_argument(1), *_one_of(IOCTLS)],
        FCNTL: [_argument(1), *_one_of(FCNTLS)],
        # Of this process, and without a new limit (a pointer that is not null).
        PRLIMIT64: [
            _argument(0),
            _instruction(_EQUAL, 0, 0, 5),
            _argument(2),
            _instruction(_EQUAL, 0, 0, 3),
            _argument(2, high=True),
            _instruction(_EQUAL, 0, 0, 1),
            _instruction(_RETURN, _ALLOW),
            _instruction(_RETURN, _EPERM),
        ],
    }
    for numbers in ALLOWED.values():
        checked[numbers] = [_instruction(_RETURN, _ALLOW)]
    for numbers, rest in checked.items():
        number = numbers[column]
        if number is not None:
            found += [_instruction(_EQUAL, number, 0, len(rest)), *rest]
    return b"".join([*found, _instruction(_RETURN, _EPERM)])


def install(libc: ctypes.CDLL) -> None:
    """Allow this process, with all of its threads, the system calls of the list; for good.

    Raises:
        OSError: the kernel refuses it, or the machine is not known.
    """
    machine = platform.machine()
    instructions = program(machine)
    filter_ = _Program(len(instructions) // 8, instructions)
    number = SECCOMP[ARCHITECTURES[machine][1]]
    words = (number, _SET_MODE_FILTER, _TSYNC)
    if libc.syscall(*map(ctypes.c_long, words), ctypes.byref(filter_)) != 0:
        code = ctypes.get_errno() or errno.EPERM
        raise OSError(code, os.strerror(code))
