"""Detects imports that start threads, open files or change the process: not preimported."""

from __future__ import annotations

import _thread
import builtins
import os
import sys
import time
from collections.abc import Callable
from types import FrameType

from poorhttp._core import fork_for_server
from poorhttp.process import fork
from poorhttp.process.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Functions that start a thread; only newer versions of Python have audit events for them.
_THREAD = (
    "start_new_thread",
    "start_joinable_thread",
    "_start_new_thread",
    "_start_joinable_thread",
)

#: Audit events (`sys.audit`) of actions whose result does not survive a fork.
_SOCKET = ("socket.__new__",)
_PROCESS = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.forkpty")


class ImportEffects:
    """State of a process before an import, to be compared with the state after it.

    Only for a process that is thrown away: the hooks that record which module does what are never
    removed, and the process forks to see which threads end at a fork.
    """

    def __init__(self) -> None:
        """Record the present state, and install the hooks."""
        self._descriptors = set(_descriptors())
        self._state = _state()
        self._causes: dict[str, str] = {}
        sys.addaudithook(self._on_audit_event)
        for module in (_thread, sys.modules.get("threading")):
            for name in _THREAD:
                function = getattr(module, name, None)
                if function is not None:
                    setattr(module, name, self._recorded(name, function))

    def obstacle(self) -> tuple[str, str]:
        """Return what a fork of this process would lack, or would share with it.

        Returns:
            The module that is the cause, if known, and what it does; both may be empty.
        """
        if _thread_count() > 1 and not _end_at_fork() and not _end_soon():
            whose = self._cause(_THREAD)
            if whose:
                return whose, f"starts a thread{_thread_names()}"
            return "", "starts threads of its own, outside of Python"
        for number, what in _descriptors().items():
            if number in self._descriptors:
                continue
            if what.startswith("socket:"):
                return self._cause(_SOCKET), "opens a socket"
            if what.startswith(("anon_inode:", "pipe:")):
                name = what.removeprefix("anon_inode:").partition(":")[0].strip("[]")
                if name in _GEVENT_HUB and "gevent" in sys.modules:
                    # gevent makes its hub anew in a generation.
                    continue
                return "", f"opens {_KINDS.get(name, name)}"
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return "", ""
        return self._cause(_PROCESS), "starts a process"

    def change(self) -> str:
        """Return the change that each process must make itself; empty if there is none."""
        for number, what in _descriptors().items():
            if number not in self._descriptors and what.startswith("/") and what != "/dev/null":
                # Processes that share a descriptor share its position in the file.
                return f"keeps {what} open"
        for (name, before), now in zip(self._state, _state(), strict=True):
            if before != now[1]:
                return f"changes {name}"
        return ""

    def _cause(self, events: tuple[str, ...]) -> str:
        return next((self._causes[event] for event in events if event in self._causes), "")

    def _recorded(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        """Return `function`, wrapped to record the module that calls it first."""

        def call(*arguments: Any, **options: Any) -> object:
            self._causes.setdefault(name, _importing_module(sys._getframe()))
            return function(*arguments, **options)

        return call

    def _on_audit_event(self, event: str, arguments: object) -> None:
        if event in _RECORDED and event not in self._causes:
            self._causes[event] = _importing_module(sys._getframe())


_RECORDED = frozenset(_SOCKET + _PROCESS)

_GEVENT_HUB = ("eventpoll", "eventfd")

_KINDS = {
    "eventpoll": "an epoll descriptor",
    "eventfd": "an eventfd",
    "inotify": "an inotify descriptor",
    "io_uring": "an io_uring",
    "signalfd": "a signalfd",
    "timerfd": "a timerfd",
    "pipe": "a pipe",
}


def _importing_module(frame: FrameType | None) -> str:
    """Return the module whose import runs the code of a frame, directly or through calls."""
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            return str(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    return ""


def _end_at_fork() -> bool:
    """Whether threads of C libraries end when this process forks, as those of OpenBLAS do."""
    pid = fork_for_server()
    if pid == 0:
        os._exit(0)
    fork.wait(pid)
    return _thread_count() == 1


def _end_soon() -> bool:
    """Whether the threads end within 0.1 s: they had done their work already."""
    for _ in range(20):
        if _thread_count() == 1:
            return True
        time.sleep(0.005)
    return False


def _thread_names() -> str:
    """Return the names of the threads in parentheses, as far as `threading` knows them."""
    threading = sys.modules.get("threading")
    if threading is None:
        return ""
    main = threading.main_thread()
    names = [thread.name for thread in threading.enumerate() if thread is not main]
    return f" ({', '.join(names)})" if names else ""


def _thread_count() -> int:
    return len(os.listdir("/proc/self/task"))


def _descriptors() -> dict[str, str]:
    """Return the open descriptors, and the file or kind of each."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:  # the one by which they are listed
            continue
    return found


def _state() -> list[tuple[str, object]]:
    """Return the settings that a process has only once, by name."""
    state: list[tuple[str, object]] = [
        ("the current folder", _folder()),
        ("sys.argv", sys.argv[:]),
        ("sys.excepthook", sys.excepthook),
        ("sys.displayhook", sys.displayhook),
        ("sys.stdout", sys.stdout),
        ("sys.stderr", sys.stderr),
        ("the import statement", builtins.__import__),
        ("the recursion limit", sys.getrecursionlimit()),
    ]
    handlers: list[Callable[..., object] | int | None] = [
        signal.getsignal(number) for number in sorted(signal.valid_signals())
    ]
    return [*state, ("what signals do", handlers)]


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
