"""A gunicorn.conf.py that tries what it must not: `raw_env` says what has become of each attempt.

The test puts targets.json beside it, which names what to attack. What succeeds is "done".
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import socket
import struct
import sys
import threading

from poorhttp.plugins.setup.migrate import seccomp

with open("targets.json") as text:
    there = json.load(text)
file, new, port, unix = there["file"], there["new"], there["port"], there["unix"]
parent = os.getppid()
outcomes = {}

# What refuses from Python has to be no obstacle.
for module in [*sys.modules.values()]:
    if hasattr(module, "REFUSED"):
        module.REFUSED = ()

libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, act, *words):
    """Note the error of a Python function."""
    try:
        act(*words)
    except OSError as error:
        outcomes[name] = errno.errorcode.get(error.errno, str(error.errno))
    except BaseException as error:
        outcomes[name] = type(error).__name__
    else:
        outcomes[name] = "done"


def call(name, *words):
    """Note the error of a function of libc."""
    label = f"{name} {words[0]}" if words[:1] and isinstance(words[0], int) else name
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    ctypes.set_errno(0)
    result = getattr(libc, name)(*words)
    refused = result in (-1, 0xFFFFFFFF)
    outcomes[f"libc.{label}"] = errno.errorcode[ctypes.get_errno()] if refused else "done"


path = os.fsencode(file)
call("truncate", path, 0)
call("chmod", path, 0)
call("chown", path, 65534, 65534)
call("setxattr", path, b"user.x", b"1", 1, 0)
call("utimes", path, None)
call("unlink", path)
call("rename", path, os.fsencode(new))
call("link", path, os.fsencode(new))
call("symlink", path, os.fsencode(new))
call("mkdir", os.fsencode(new), 0o777)
call("mknod", os.fsencode(new), 0o100666, 0)
call("mkfifo", os.fsencode(new), 0o666)
call("creat", os.fsencode(new), 0o666)
call("open", path, os.O_RDONLY | os.O_TRUNC)
call("kill", parent, 0)
call("kill", -1, 0)
call("kill", os.getpid(), 0)
call("ptrace", 16, parent, 0, 0)
call("process_vm_readv", parent, None, 0, None, 0, 0)
call("process_vm_writev", parent, None, 0, None, 0, 0)
call("memfd_create", b"x", 0)
call("unshare", 0x10000000)
call("setns", 1, 0)
call("mount", b"none", b"/tmp", b"tmpfs", 0, None)
call("chroot", b".")
call("prctl", 1, 0, 0, 0, 0)
call("shmget", 0x1234, 4096, 0o1666)
call("msgget", 0x1234, 0o1666)
call("semget", 0x1234, 1, 0o1666)
call("setresuid", 0, 0, 0)
call("setgroups", 0, None)
call("setpriority", 0, parent, 0)
call("prlimit64", parent, resource.RLIMIT_NOFILE, None, None)
call("sched_setaffinity", parent, 0, None)
call("eventfd", 0, 0)
call("inotify_init")
call("setsid")
call("setpgid", 0, 0)
call("alarm", 0)
call("sync_file_range", 1, 0, 0, 0)
call("fork")

# Each system call that is not in the list. The kernel exempts 335 and 336 (uretprobe, uprobe) from
# seccomp(2) on x86_64; it ends a process that calls them by itself.
column = seccomp.ARCHITECTURES[os.uname().machine][1]
listed = {335, 336} if column == 0 else set()
listed |= {numbers[column] for numbers in seccomp.ALLOWED.values()}
checked = (seccomp.OPEN, seccomp.OPENAT, seccomp.IOCTL, seccomp.FCNTL, seccomp.PRLIMIT64)
listed |= {numbers[column] for numbers in checked}
for number in range(600):
    if number not in listed:
        ctypes.set_errno(0)
        if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(0)] * 6) != -1:
            outcomes[f"call {number}"] = "done"
        elif ctypes.get_errno() != errno.EPERM:
            outcomes[f"call {number}"] = f"not refused: {ctypes.get_errno()}"

for name, flags in {
    "write": os.O_WRONLY,
    "read and write": os.O_RDWR,
    "append": os.O_WRONLY | os.O_APPEND,
    "truncate": os.O_TRUNC,
    "unnamed": os.O_TMPFILE | os.O_RDWR,
    "signals": os.O_ASYNC,
}.items():
    attempt(f"open to {name}", os.open, os.path.dirname(file) if name == "unnamed" else file, flags)
attempt("create", os.open, new, os.O_CREAT | os.O_RDONLY)
for secret in [
    *there["secrets"],
    f"/proc/{parent}/environ",
    f"/proc/{parent}/mem",
    "/proc/self/mem",
]:
    attempt(f"read {secret}", os.open, secret, os.O_RDONLY)
for folder in ["/", "/etc", "/proc", there["outside"]]:
    attempt(f"list {folder}", os.listdir, folder)

for fd in (0, 1, 2, 3):
    attempt(f"owner {fd}", fcntl.fcntl, fd, fcntl.F_SETOWN, parent)
    attempt(f"signal {fd}", fcntl.fcntl, fd, fcntl.F_SETSIG, 9)
    attempt(f"signals {fd}", fcntl.fcntl, fd, fcntl.F_SETFL, os.O_ASYNC)
    attempt(f"ioctl {fd}", fcntl.ioctl, fd, 0x5452, struct.pack("i", 1))
    attempt(f"lock {fd}", fcntl.flock, fd, fcntl.LOCK_EX)
attempt("lock a file", fcntl.flock, os.open("targets.json", os.O_RDONLY), fcntl.LOCK_EX)
attempt("limit", resource.setrlimit, resource.RLIMIT_CPU, (1, 1))
attempt("limit of the parent", resource.prlimit, parent, resource.RLIMIT_NOFILE, (8, 8))

attempt("tcp", lambda: socket.create_connection(("127.0.0.1", port)))
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect(unix))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0" + there["abstract"]))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
attempt("socketpair", socket.socketpair)
attempt("exec", os.execv, "/bin/sh", ["sh", "-c", "exit"])
attempt("spawn", os.posix_spawn, "/bin/sh", ["sh", "-c", "exit"], {})
attempt("fork", os.fork)
attempt("thread", threading.Thread(target=print).start)
attempt("signal", lambda: os.kill(parent, 0))
attempt("pidfd", lambda: os.pidfd_open(parent))
attempt(
    "shared memory",
    lambda: __import__("multiprocessing.shared_memory").shared_memory.SharedMemory(
        create=True, size=1
    ),
)
attempt("memory", lambda: bytearray(4 * 1024**3))
attempt("mapped file", lambda: mmap.mmap(os.open(file, os.O_RDONLY), 0))
with open("targets.json") as own:
    attempt("written through a mapping", lambda: mmap.mmap(own.fileno(), 1).__setitem__(0, 0))
secrets = [name for name in os.environ if name in there["variables"]]
outcomes["variables"] = ",".join(secrets) if secrets else "none"
attempt("descriptors", lambda: [os.fstat(fd) for fd in range(4, 64)])

raw_env = [f"{name}={outcome}" for name, outcome in outcomes.items()]
