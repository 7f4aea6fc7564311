# Types of what only plug-ins of the server use of the extension module `_core`.
from collections.abc import Sequence
from typing import Any, Literal, final

from _typeshed import ReadableBuffer

from poorhttp._core import WorkerStatus

def not_built(error: ModuleNotFoundError) -> str:
    """Return what is to be done if an extension module is missing, for messages."""

def share_log_level(memory: memoryview) -> None:
    """Keep the level of `set_log_level` in the first byte of `memory`, which processes share."""

def set_log_level(level: str) -> None:
    """Set the lowest level that each `LogWriter` writes; empty: each its own."""

def sum_figures(alive: Sequence[WorkerStatus], ended: Sequence[WorkerStatus]) -> Any:
    """Return the sum of figures; of workers that have ended only what they have counted."""

def worker_metrics() -> list[
    tuple[Literal["counter", "gauge", "histogram"], str, str, str, list[str], str]
]:
    """Return the metrics that workers count, in the order in which they are shown.

    Each has its kind, its key in `WorkerStatus.figures`, its name (without the beginning and the
    `_total` of Prometheus), the name of its label (empty without one), the values of it that are
    shown (empty: all), and its help text.
    """

@final
class Inotify:
    """Watcher of the files in folders, but not in their subfolders (inotify(7)).

    All methods may raise OSError. EMFILE: `max_user_instances` is reached. ENOSPC:
    `max_user_watches` is reached, and which folders are watched is not known.
    """

    def fileno(self) -> int:
        """Return a descriptor that is readable when `read` has changes to return."""

    def watch(self, folders: Sequence[str]) -> bool:
        """Watch these folders only; return `False` if one of them does not exist.

        Unreadable folders are left out. Earlier changes can still be read.
        """

    def read(self) -> dict[str, Literal["written", "touched", "changed"]] | None:
        """Return the changed paths, without waiting; `None`: the queue has overflowed.

        `written`: the file was written to and is still open. `touched`: it was closed after
        writing, or its attributes changed; compare its time and size. `changed`: it was created,
        removed or replaced; a watched folder was replaced or removed.
        """

def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (prctl(2), PR_SET_CHILD_SUBREAPER)."""

def set_thread_name(name: str) -> None:
    """Set the name of this thread in the operating system, which keeps 15 bytes of it."""

def use_kernel_tls() -> list[str]:
    """Have the kernel encrypt what this process and its children send, where it can.

    It loads its module for that, if this process may. Return the versions and ciphers.
    """

@final
class UpgradedConnection:
    """What a socket tells the core of which an application has got the connection."""

    def begin(self) -> None:
        """Note that the application is about to send.

        Raises:
            BrokenPipeError: the server stops, and has sent a Close frame.
        """

    def end(self, data: ReadableBuffer, sent: int) -> None:
        """Note that so many bytes of `data` were sent; -1: it is not known how many."""

    def lose_track(self) -> None:
        """Note that something is sent that is not reported."""

    def detach(self) -> None:
        """Note that the application keeps the descriptor when its request ends."""
