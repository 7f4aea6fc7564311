"""The signals that the server handles, by the C module `_signal`, and what they were before.

A process that the application forks, or a program that it starts, gets each signal as it was when
the server was started, unless the application has a handler of its own.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from types import FrameType

from poorhttp._core import note_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    # Without the enumerations, which cost every process memory
    # (docs/internals/design/dependencies.md).
    import _signal as signal

# For mypy: it is imported here for all modules.
__all__ = ["signal"]

#: The signals that stop a process.
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)

#: Handled by the main process, and ignored by workers, which get those of a terminal as well.
MAIN_PROCESS_SIGNALS = (signal.SIGHUP, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU)

#: The signals that the main process handles.
SIGNALS = (*STOP_SIGNALS, signal.SIGUSR1, *MAIN_PROCESS_SIGNALS)

#: What the server has installed, by signal.
_installed: dict[int, Any] = {}

#: What was there before, by signal.
_original: dict[int, Any] = {}

#: `ignore_at_exit` was called in this process, or in one from which it was forked.
_ignored_at_exit = False

#: Wake-up descriptors of the server (`signal.set_wakeup_fd`).
_wakeup_fds: set[int] = set()


def install(number: int, handler: Any) -> Any:
    """Install the server's handler of a signal, or the one before it; return the previous one."""
    # Before the handler, so that a process forked by a signal handler of the application knows it.
    original = _original.setdefault(number, signal.getsignal(number) or signal.SIG_DFL)
    before = signal.signal(number, handler)
    _installed[number] = handler
    if handler == original:
        del _installed[number], _original[number]
    _note()
    return before


def install_ignored(number: int) -> Any:
    """Ignore a signal in this process, but not in programs that are started from it.

    A program inherits that a signal is ignored, but no handler. A signal that was ignored when the
    server was started stays so (nohup(1)).
    """
    if original(number) == signal.SIG_IGN:
        return install(number, signal.SIG_IGN)
    before = install(number, _do_nothing)
    # System calls of libraries are not interrupted either.
    signal.siginterrupt(number, False)
    return before


def ignore_at_exit() -> None:
    """Have the signals of the main process ignored when Python's shutdown has called all functions.

    Python restores default actions at the end of its shutdown, when a second TERM would kill the
    process. Not earlier: functions of `atexit` may start programs, which would inherit that.
    """
    global _ignored_at_exit  # noqa: PLW0603
    if not _ignored_at_exit:
        _ignored_at_exit = True
        # The first one that is registered is the last one that is called.
        atexit.register(_ignore)


def _ignore() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    pass


def original(number: int) -> Any:
    """Return what a signal did when the server was started."""
    return _original.get(number, signal.getsignal(number) or signal.SIG_DFL)


def installed() -> set[int]:
    return set(_installed)


def set_wakeup_fd(fd: int) -> int:
    """Set the server's wake-up descriptor, or that before if it is open; return the previous."""
    _wakeup_fds.add(fd)
    try:
        return signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
    except (ValueError, OSError):
        return signal.set_wakeup_fd(-1)


def forget_wakeup_fds() -> None:
    """Remove the wake-up descriptor, in a child that closes those of its parent."""
    signal.set_wakeup_fd(-1)
    _wakeup_fds.clear()


def restore() -> None:
    """Undo all that the server has changed, in a process that the application has forked."""
    fd = signal.set_wakeup_fd(-1)
    if fd not in _wakeup_fds:
        # The descriptor may be closed.
        with suppress(ValueError, OSError):
            signal.set_wakeup_fd(fd)
    for number, handler in list(_installed.items()):
        if signal.getsignal(number) == handler:
            signal.signal(number, _original[number])
    _installed.clear()
    _original.clear()
    _note()


def restore_for_exec() -> None:
    """Undo what a program that replaces this process would inherit."""
    for number in SIGNALS:
        ignored = original(number) == signal.SIG_IGN
        signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _note() -> None:
    ignored = [number for number, before in _original.items() if before == signal.SIG_IGN]
    note_signals(*(sum(1 << number - 1 for number in each) for each in (_installed, ignored)))


def undo_blocks() -> list[str]:
    """Unblock signals of the server that others have blocked in this thread; return a sentence."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    wrong = [each for each in (*SIGNALS, signal.SIGCHLD) if each in blocked]
    if not wrong:
        return []
    signal.pthread_sigmask(signal.SIG_UNBLOCK, wrong)
    return [f"it has blocked signals of the server: {', '.join(map(name, wrong))}"]


def end_timers() -> list[str]:
    """Stop timers that others have set in this process (setitimer(2)); return a sentence.

    The default action of their signals would end the process.
    """
    timers = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    if all(signal.getitimer(each) == (0.0, 0.0) for each in timers):
        return []
    for each in timers:
        signal.setitimer(each, 0)
    return ["it has set a timer (setitimer or alarm), whose signal would end the main process"]


def is_child(pid: int) -> bool:
    """Whether a process is a child of this one that has not been waited for.

    Until then, also after its end, the kernel gives its ID to no other process.
    """
    with suppress(OSError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False


def is_running(pid: int) -> bool:
    """Whether a process is a child of this one that has not ended yet."""
    with suppress(OSError):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    return False


#: The names of signals, without the enumeration; of two for one number the usual one, as SIGCHLD.
NAMES = {
    getattr(signal, name): name
    for name in sorted(dir(signal), reverse=True)
    if name.startswith("SIG") and "_" not in name
}


def name(number: int) -> str:
    """Return the name of a signal, such as SIGKILL; most of the real-time signals have none."""
    return NAMES.get(number, f"signal {number}")


class Disposition:
    """What a process, or one of its threads, does with signals, from its file in `/proc`."""

    known = False  # the file could be read

    def __init__(self, process: str) -> None:
        """Read `/proc/{process}/status`."""
        self._masks = dict.fromkeys((b"SigBlk", b"SigIgn", b"SigCgt"), 0)
        with suppress(OSError, ValueError), open(f"/proc/{process}/status", "rb") as file:
            for line in file:
                field, _, value = line.partition(b":")
                if field in self._masks:
                    self._masks[field] = int(value, 16)
            self.known = True

    def _has(self, field: bytes, number: int) -> bool:
        return bool(self._masks[field] >> (number - 1) & 1)

    def handles(self, number: int) -> bool:
        """Whether a signal has a handler; otherwise it is ignored, or has its default action."""
        return self._has(b"SigCgt", number)

    def withheld(self, number: int) -> str:
        """Return why a signal does not reach a handler, as a verb; empty: it does."""
        if self._has(b"SigIgn", number):
            return "ignores"
        return "blocks" if self._has(b"SigBlk", number) else ""


def send_if_handled(pid: int, number: int) -> None:
    """Send a signal to a process, unless the application there has removed the handler.

    The default action of most signals would end the process.
    """
    process = Disposition(str(pid))
    if process.handles(number) or not process.known:
        send(pid, number)


def send(pid: int, number: int) -> None:
    """Send a signal to a child of this process; nothing happens if it is none (any more)."""
    if is_child(pid):
        # It may have executed a program that gives it the rights of another user.
        with suppress(PermissionError):
            os.kill(pid, number)
