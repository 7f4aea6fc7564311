"""Forks child processes, and ends a child when the main process ends.

Forks of the application, and of libraries without Python, give up what is the server's: signals
here, descriptors and more in `core/python/src/forks.rs`.
"""

from __future__ import annotations

import errno
import os
import posix
import select
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from poorhttp import _core
from poorhttp.errors import visible
from poorhttp.process import signals
from poorhttp.process.control_channel import close_all
from poorhttp.process.signals import SIGNALS, is_child, signal
from poorhttp.process.unpatched import get_ident, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

#: Sent by the kernel to a process of the server when the main process ends, if it cannot send one
#: that the C library keeps for itself (`core/python/src/ffi.rs`).
ORPHAN_SIGNAL = signal.SIGRTMAX - 3

#: Called first in each child, to close what is only for the main process.
after_fork_in_child: list[Callable[[], object]] = []

#: Descriptors that are only for this process.
_own_fds: set[int] = set()

#: The children that this process has forked or adopted as its own, until they are waited for.
children: set[int] = set()


def fork(run: Callable[[], object]) -> int:
    """Fork a child that does nothing but `run`; return its process ID.

    It begins with `SIGNALS` blocked, so that none arrives before its handlers are installed.
    """
    pid = _fork()
    if pid == 0:
        _run(run)
    children.add(pid)
    return pid


def fork_twice(run: Callable[[], object]) -> None:
    """Fork an orphan that does nothing but `run`, see `fork` and `fork_orphan`."""
    if fork_orphan():
        _run(run)


def _run(run: Callable[[], object]) -> NoReturn:
    try:
        run()
    finally:
        os._exit(1)


def keep_from_children(fd: int) -> None:
    """Have each child of the server close a descriptor, until `close_own` closes it here."""
    _own_fds.add(fd)


def close_own(fd: int) -> None:
    """Close a descriptor that was kept from children."""
    _own_fds.discard(fd)
    os.close(fd)


def adopt(pid: int) -> bool:
    """Take an orphan, which was forked on behalf of this process, for a child of its own.

    Returns `False` if the process is no child of this one, or is taken already.
    """
    if pid in children or not is_child(pid):
        return False
    children.add(pid)
    return True


def wait(pid: int) -> int | None:
    """Wait for the end of a child; return its exit code.

    `None` if something else has waited for it: the kernel, as SIGCHLD is ignored, or a handler or
    thread of the application.
    """
    code = None
    with suppress(ChildProcessError):
        # Not `os.waitpid`, which gevent may have replaced by one that waits for its hub.
        code = os.waitstatus_to_exitcode(posix.waitpid(pid, 0)[1])
    children.discard(pid)
    return code


def other_children() -> set[int]:
    """Return the children of this process, of all its threads, that the server has not forked."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children", "rb") as file:
                found.update(map(int, file.read().split()))
    return found - children


def program(pid: int) -> str:
    """Return the name of the program that a process runs; empty if that is not known."""
    with suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
        return visible(file.read().decode(errors="replace").strip())
    return ""


def closed_descriptors(fds: Iterable[int]) -> list[int]:
    """Return those of the descriptors that are not open; -1 is none."""
    poller = select.poll()
    for fd in fds:
        if fd >= 0:
            poller.register(fd, 0)
    return sorted(fd for fd, event in poller.poll(0) if event & select.POLLNVAL)


def fork_orphan() -> bool:
    """Fork a process by way of a child that ends at once; return `True` in it.

    The main process, a subreaper, becomes the parent of the new process, which begins with
    `SIGNALS` blocked. The application's handler of SIGCHLD stays in both processes, and is not
    called for the child in between.

    Raises:
        OSError: it cannot be forked.
    """
    # Not the functions of `os`, which gevent may have replaced by ones that wait for its hub.
    read, write = posix.pipe2(os.O_CLOEXEC)
    handler = signal.getsignal(signal.SIGCHLD)
    if handler is not None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        child = _fork()
        if child == 0:
            pid = -1
            try:
                pid = _core.fork_for_server()
                if pid == 0:
                    return True
            finally:
                if pid != 0:
                    posix.write(write, b"+" if pid > 0 else b"-")
                    posix._exit(0)
        posix.close(write)
        write = -1
        wait(child)
        if posix.read(read, 1) != b"+":
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return False
    finally:
        # A handler that Python does not know cannot be set again.
        if handler is not None:
            signal.signal(signal.SIGCHLD, handler)
        posix.close(read)
        if write >= 0:
            posix.close(write)


def _fork() -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    pid = -1
    try:
        pid = _core.fork_for_server()
        if pid == 0:
            try:
                signals.forget_wakeup_fds()
                signals.install(signal.SIGCHLD, signal.SIG_DFL)
                close_all()
                children.clear()
                while _own_fds:
                    os.close(_own_fds.pop())
                for callback in after_fork_in_child:
                    callback()
            except BaseException:
                os._exit(1)
    finally:
        if pid != 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return pid


def set_parent_death_signal(parent: int, timeout: float | None = None) -> None:
    """Have the kernel end this process with the main process, whose process ID is `parent`.

    The process gets SIGTERM. With a `timeout` it is killed so many seconds later, whatever it does
    with signals. That is to be called again when an application has been loaded, which may have
    changed its user.
    """
    # The kernel is about to make the main process the parent of one that another has forked.
    deadline = time.monotonic() + 5
    while os.getppid() != parent and time.monotonic() < deadline:
        sleep(0.0001)
        try:
            os.kill(parent, 0)
        except PermissionError:
            pass  # it exists; this process has changed its user
        except ProcessLookupError:
            os._exit(0)
    if timeout is None:
        _core.end_with_parent()
    else:
        _core.end_after_parent(ORPHAN_SIGNAL, timeout)
    if os.getppid() != parent:
        os._exit(0)


#: The signals that threads blocked before forks of the application that are under way.
_masks: dict[int, set[int]] = {}


def _before_python_fork() -> None:
    if _core.begin_python_fork():
        # One that came before the child has its signals restored would be lost: `Pool.terminate`.
        _masks[get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, signals.installed())


def _after_python_fork_in_parent() -> None:
    if _core.end_python_fork() and (mask := _masks.pop(get_ident(), None)) is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _after_python_fork_in_child() -> None:
    _core.forget_title()
    if _core.end_python_fork():
        try:
            signals.restore()
        finally:
            if (mask := _masks.pop(get_ident(), None)) is not None:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)


_core.watch_forks()
os.register_at_fork(
    before=_before_python_fork,
    after_in_parent=_after_python_fork_in_parent,
    after_in_child=_after_python_fork_in_child,
)
