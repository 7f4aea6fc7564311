"""An application that forks children: pools, daemons, programs, and children of libraries."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import posix
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.apps.basics import Environ, Pieces, StartResponse

#: A signal that the application handles itself: its children inherit the handler.
signal.signal(signal.SIGUSR1, lambda number, frame: None)


def square(number: int) -> int:
    return number * number


def pool() -> str:
    """The result of a pool of two children, which it ends by SIGTERM."""
    with multiprocessing.get_context("fork").Pool(2) as workers:
        return str(sum(workers.map(square, range(10))))


def fork(name: str) -> int:
    """Fork a child as Python or as a library does."""
    if name == "library":
        # With the interpreter lock, as an extension that forks.
        return int(ctypes.PyDLL(None).fork())
    return os.fork()


def sleep(name: str) -> int:
    """The number of a child that sleeps."""
    pid = fork(name)
    while pid == 0:
        time.sleep(1000)
    return pid


def terminate(name: str) -> str:
    """How a child ends that gets SIGTERM as soon as it exists."""
    pid = sleep(name)
    os.kill(pid, signal.SIGTERM)
    return str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def daemon(environ: Environ) -> str:
    """The number of a daemon, which is forked twice and leaves its session."""
    read, write = os.pipe()
    first = os.fork()
    if first == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            environ["wsgi.errors"].write("a daemon of the application\n")
            while True:
                time.sleep(1000)
        os._exit(0)
    os.waitpid(first, 0)
    os.close(write)
    # Not to its end: the daemon has the other one open.
    pid = os.read(read, 16).decode()
    os.close(read)
    return pid


def ignored() -> str:
    """The signals that a program ignores and blocks, from its `/proc/self/status`."""
    words = ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]
    return subprocess.check_output(words, text=True)


def hangup() -> str:
    """How a program ends that gets SIGHUP."""
    program = subprocess.Popen(["sleep", "1000"])
    program.send_signal(signal.SIGHUP)
    return str(program.wait())


def signals(name: str) -> str:
    """The signals that a child handles, ignores and blocks, and its descriptors."""
    read, write = os.pipe()
    pid = fork(name)
    if pid == 0:
        found = [f"{key}: {open_file(key)}" for key in sorted(os.listdir("/proc/self/fd"), key=int)]
        status = Path("/proc/self/status").read_text()
        os.write(write, "\n".join([status, *found]).encode())
        os._exit(0)
    # gevent's `os.close` waits for its loop, which the read below would keep from its work.
    posix.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read) as file:
        return file.read()


def open_file(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return "closed"


ACTIONS: dict[str, Callable[[Environ], str]] = {
    "/": lambda environ: str(os.getpid()),
    "/pool": lambda environ: pool(),
    "/sleep": lambda environ: str(sleep(environ["QUERY_STRING"])),
    "/terminate": lambda environ: terminate(environ["QUERY_STRING"]),
    "/daemon": daemon,
    "/ignored": lambda environ: ignored(),
    "/hangup": lambda environ: hangup(),
    "/signals": lambda environ: signals(environ["QUERY_STRING"]),
}


def application(environ: Environ, start_response: StartResponse) -> Pieces:
    answer = ACTIONS[environ["PATH_INFO"]](environ).encode()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
