"""Threads of the operating system, which stay threads if the application replaces `threading`.

The threads are made by `threading` unless the application has replaced its functions: threads of
`threading` have names, and debuggers and profilers see them. Processes that start no thread do not
import `threading`, which takes 0.2 MiB.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable
from contextlib import suppress

from poorhttp.process.unpatched import allocate_lock, get_ident, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Any

#: The functions by which `threading.Thread` starts and waits; not every version of Python has all.
_USED = ("_start_new_thread", "_start_joinable_thread", "_allocate_lock", "_set_sentinel", "Lock")
#: What they are in `_thread`.
_NAMES = (
    *("start_new_thread", "start_joinable_thread"),
    *("allocate_lock", "_set_sentinel", "LockType"),
)
_found = [getattr(_thread, name) for name in _NAMES if hasattr(_thread, name)]
_replaced_at_import = any(function.__module__ != "_thread" for function in _found)


def are_replaced() -> bool:
    """Tell whether threads of `threading` are something else now, such as greenlets."""
    module = sys.modules.get("threading")
    used = [getattr(module, name) for name in _USED if hasattr(module, name)]
    return _replaced_at_import or not all(any(each is one for one in _found) for each in used)


def replaced_by() -> str:
    """Return the name of the package that has replaced `threading`; empty if it is unknown."""
    import threading

    found = getattr(threading, "_start_new_thread", None) or threading.Lock
    return str(getattr(found, "__module__", "") or "").partition(".")[0]


class NativeThread:
    """A thread that `threading` knows nothing of; with the methods of `threading.Thread`.

    Attributes:
        ident: its identifier; `None` before its start.
    """

    ident: int | None = None

    def __init__(self, target: Callable[..., object], name: str, args: tuple[Any, ...]) -> None:
        self.name = name
        self._target = target
        self._args = args
        self._running = allocate_lock()

    def start(self) -> None:
        """Start it; a RuntimeError if the system allows no more threads."""
        self._running.acquire()
        try:
            start_new_thread(self._run, ())
        except BaseException:
            self._running.release()
            raise

    def _run(self) -> None:
        self.ident = get_ident()
        try:
            # For the application, which may ask for its own thread.
            with suppress(Exception):
                import threading

                threading.current_thread().name = self.name
            self._target(*self._args)
        except SystemExit:
            pass
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            self._running.release()

    def join(self, timeout: float | None = None) -> None:
        if self._running.acquire(timeout=-1 if timeout is None else timeout):
            self._running.release()

    def is_alive(self) -> bool:
        return bool(self._running.locked())


def create(
    target: Callable[..., object], name: str, args: tuple[Any, ...] = (), *, daemon: bool = False
) -> threading.Thread | NativeThread:
    """Return a thread that is not started yet; Python does not wait for a `daemon`.

    Nothing waits for a `NativeThread`: who has started it joins it.
    """
    if are_replaced():
        return NativeThread(target, name, args)
    import threading

    return threading.Thread(target=target, name=name, args=args, daemon=daemon)
