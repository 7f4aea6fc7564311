"""Gives up the rights of this process, for good, and runs gunicorn.conf.py: a program.

`python -I -S` starts it in the folder `/`, with an empty environment. It gets a JSON object on
standard input, and writes a JSON object on each line to standard output: `lacking` first, the parts
that the kernel does not have, then those of statements.py. As root, it does not run the file if
anything is lacking.

Everything that guards is in the kernel, and in force before the file's folder is on `sys.path`:

- root becomes the user nobody, and sees a tree with the folders below only;
- namespaces of user, network and IPC; no capabilities, and no new ones (PR_SET_NO_NEW_PRIVS);
- limits of time, memory, files and processes; it ends with the process that has started it;
- Landlock: reads the folder of the file, Python's library and a few files of the system;
- seccomp: the system calls that reading and computing need.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from poorhttp.plugins.setup.migrate import landlock, seccomp
from poorhttp.plugins.setup.migrate.statements import Statements

#: What the parts are called in messages.
NO_NEW_RIGHTS = "no_new_privs"
TREE = "mount namespaces"
NOBODY_PART = "the user nobody"
NAMESPACES = "user and network namespaces"
LIMITS = "resource limits"
LANDLOCK = "Landlock"
SECCOMP = "seccomp"

#: What a file may read beside its folder: libraries, and what tells about the machine.
READABLE = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store", "/gnu/store"),
    *("/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone"),
    *("/etc/os-release", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts"),
    *("/etc/hostname", "/etc/mime.types", "/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf"),
    *("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/sys/fs/cgroup"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/version"),
    "/sys/devices/system/cpu",
)

NOBODY = 65534

#: prctl(2), unshare(2), mount(2), umount2(2).
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 4, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWNET = (
    0x00020000,
    0x08000000,
    0x10000000,
    0x40000000,
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT = 1, 2, 4, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2

#: pivot_root(2), which libc does not have, by architecture.
PIVOT_ROOT = {"x86_64": 155}
PIVOT_ROOT_GENERIC = 41

#: Audit events that are refused in words, by the beginning of their names. They guard nothing: the
#: file can change this tuple. Without them, some functions would hide the kernel's answer.
REFUSED = ("ctypes.", "ftplib.", "http.client.", "os.system", "smtplib.", "urllib.Request")

#: A limit of the kernel and its value, where it does not depend on the request.
LIMIT_VALUES = (
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_NOFILE, 64),
    (resource.RLIMIT_NPROC, 0),
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_SIGPENDING, 0),
)


class Rights:
    """Gives up the rights of this process, and notes what the kernel does not have.

    Attributes:
        lacking: names of parts.
    """

    def __init__(self) -> None:
        self.lacking: list[str] = []
        self._libc = ctypes.CDLL(None, use_errno=True)

    def give_up(
        self, paths: Sequence[str], folders: Mapping[str, int], seconds: int, memory: int
    ) -> None:
        """Give up everything but computing, and reading `paths` and what is below them.

        Args:
            paths: files and folders of root.
            folders: folders of other users: their paths and descriptors.
            seconds: of the processor.
            memory: bytes.
        """
        existing = [path for path in paths if os.path.exists(path)]
        self._part(NO_NEW_RIGHTS, lambda: self._prctl(PR_SET_NO_NEW_PRIVS, 1))
        if os.geteuid() == 0 or os.getuid() == 0:
            self._part(TREE, lambda: self._enter_tree(existing, folders))
            readable = landlock.opened([*existing, *folders])
            self._part(NOBODY_PART, self._become_nobody)
            self._part(NAMESPACES, self._enter_namespaces)
        else:
            readable = [*landlock.opened(existing), *map(os.dup, folders.values())]
            self._part(NAMESPACES, self._enter_own_namespaces)
        self._part("capabilities", self._drop_capabilities)
        with contextlib.suppress(OSError):
            # The last is the folder in which the command was started, if the file is below it.
            os.chdir([*folders][-1] if folders else "/")
        self._part(LIMITS, lambda: self._limit(seconds, memory))
        self._prctl(PR_SET_DUMPABLE, 0)
        # A change of the user would undo it.
        self._prctl(PR_SET_PDEATHSIG, 9)
        self._part(LANDLOCK, lambda: landlock.restrict(self._libc, readable))
        for fd in (*readable, *folders.values()):
            os.close(fd)
        # The last, because it forbids everything above.
        self._part(SECCOMP, lambda: seccomp.install(self._libc))

    def _part(self, name: str, act: Callable[[], None]) -> None:
        try:
            act()
        except (OSError, ValueError, AttributeError):
            self.lacking.append(name)

    def _check(self, result: int) -> None:
        if result != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def _prctl(self, *words: int) -> None:
        filled = (*words, 0, 0, 0, 0)[:5]
        self._check(self._libc.prctl(*map(ctypes.c_ulong, filled)))

    def _mount(self, source: str, target: str, kind: str, flags: int) -> None:
        result = self._libc.mount(
            os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), None
        )
        self._check(result)

    def _enter_tree(self, paths: Sequence[str], folders: Mapping[str, int]) -> None:
        """Make an empty tree the root of this process, and mount `paths` and `folders` there.

        nobody can then read them even if they are below a folder that only root may enter.
        """
        self._check(self._libc.unshare(CLONE_NEWNS))
        self._mount("none", "/", "none", MS_REC | MS_PRIVATE)
        links = [(path, os.readlink(path)) for path in paths if os.path.islink(path)]
        sources = {real: f"/old{real}" for real in map(os.path.realpath, paths)}
        # Their users may have put a link into the path; the descriptors are of the other namespace.
        again = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in folders}
        for path, fd in again.items():
            if os.path.samestat(os.fstat(fd), os.fstat(folders[path])):
                sources[path] = f"/old/proc/self/fd/{fd}"
        self._mount("none", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV)
        os.chmod("/tmp", 0o755)
        os.mkdir("/tmp/old")
        number = PIVOT_ROOT.get(os.uname().machine, PIVOT_ROOT_GENERIC)
        self._check(self._libc.syscall(ctypes.c_long(number), b"/tmp", b"/tmp/old"))
        os.chdir("/")
        os.umask(0o022)
        for path, source in sorted(sources.items()):
            if os.path.isdir(source):
                os.makedirs(path, exist_ok=True)
            elif not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o644))
            # Root of another machine (NFS) may not read it.
            with contextlib.suppress(OSError):
                self._mount(source, path, "none", MS_BIND | MS_REC)
        for fd in again.values():
            os.close(fd)
        for path, target in links:
            with contextlib.suppress(FileExistsError):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.symlink(target, path)
        self._check(self._libc.umount2(b"/old", MNT_DETACH))
        os.rmdir("/old")
        self._mount("none", "/", "tmpfs", MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)

    def _become_nobody(self) -> None:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)

    def _enter_namespaces(self) -> None:
        flags = CLONE_NEWUSER | CLONE_NEWNET
        # Kernels without System V IPC have no namespaces for it.
        if self._libc.unshare(flags | CLONE_NEWIPC) != 0:
            self._check(self._libc.unshare(flags))

    def _enter_own_namespaces(self) -> None:
        """Enter namespaces in which this user has the same number as before."""
        user, group = os.geteuid(), os.getegid()
        self._enter_namespaces()
        with contextlib.suppress(OSError):
            for name, text in (
                ("uid_map", f"{user} {user} 1"),
                ("setgroups", "deny"),
                ("gid_map", f"{group} {group} 1"),
            ):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                    file.write(text)

    def _drop_capabilities(self) -> None:
        """Drop those of this user, and those that a user has in a new namespace."""
        with contextlib.suppress(OSError):
            self._prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
        version_3 = (ctypes.c_uint32 * 2)(0x20080522, 0)
        self._check(self._libc.capset(version_3, (ctypes.c_uint32 * 6)()))

    def _limit(self, seconds: int, memory: int) -> None:
        values = ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory), *LIMIT_VALUES)
        for limit, value in values:
            _, hard = resource.getrlimit(limit)
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (most, most))


def explain(event: str, _: tuple[object, ...]) -> None:
    """Say that something is not allowed, as an audit hook (PEP 578)."""
    if event.startswith(REFUSED):
        raise PermissionError(f"{event} is not allowed here")


def _own_results() -> TextIO:
    """Return standard output for the results alone; what the file prints goes nowhere."""
    results = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    return os.fdopen(results, "w", encoding="utf-8")


def main() -> None:
    """Read the request from standard input, and run the file."""
    request = json.loads(sys.stdin.buffer.read())
    out = _own_results()
    root = os.geteuid() == 0 or os.getuid() == 0
    library = [*filter(os.path.isdir, map(os.path.realpath, sys.path)), *request["library"]]
    paths = [*READABLE, os.path.join(sys.base_prefix, "lib"), *library]
    rights = Rights()
    rights.give_up(paths, request["folders"], request["seconds"], request["memory"])
    refused = root and bool(rights.lacking)
    print(json.dumps({"lacking": rights.lacking, "refused": refused}), file=out, flush=True)
    if refused or os.getppid() != request["parent"]:
        return
    sys.dont_write_bytecode = True
    sys.path[:] = [*request["folders"], *library]
    os.environ.clear()
    os.environ.update(request["environment"])
    try:
        statements = Statements(request["text"], request["file"], request["names"], request["path"])
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        text = f"{type(error).__name__}: {getattr(error, 'msg', None) or error}"
        print(json.dumps({"syntax": text[:300], "line": line}), file=out, flush=True)
        return
    sys.addaudithook(explain)
    statements.run(request["skip"], out)
    print(json.dumps({"end": True}), file=out, flush=True)
