"""What a plug-in adds to the main process: the class `Component`, and what it may use there.

A component runs in the main process, which serves no requests and keeps all workers running. So its
methods return at once; what takes long, or handles what clients send, belongs in a process of its
own: `supervised_process.pool` returns one that is replaced when it dies (see `Component.pools`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypedDict

    from poorhttp.config.registry import Entry
    from poorhttp.config.settings import Settings
    from poorhttp.net.listener import Listener
    from poorhttp.supervisor.binary_upgrade import Memory, Takeover
    from poorhttp.supervisor.generations import Generations
    from poorhttp.supervisor.metric import Metric
    from poorhttp.supervisor.spawner import Spawner
    from poorhttp.supervisor.worker_handle import WorkerHandle
    from poorhttp.supervisor.worker_pool import WorkerPool
    from poorhttp.worker.service import Service

    class Reload(TypedDict):
        """A reload that has ended."""

        #: Seconds since 1970.
        when: float
        #: `reloaded`, or why not.
        result: str

    class Reloads(TypedDict):
        """Reloads of this main process."""

        succeeded: int
        failed: int
        last: Reload | None

    class Main(Protocol):
        """The main process, as components see it. `generations` are missing in `open`."""

        @property
        def generations(self) -> Generations:
            """The worker pools of each version."""

        @property
        def started(self) -> bool:
            """All workers serve."""

        @property
        def changing(self) -> bool:
            """A start, a reload or a binary upgrade is under way."""

        @property
        def born(self) -> float:
            """When the first main process began, in seconds since 1970."""

        @property
        def drain_until(self) -> float:
            """Until when it serves although it is not ready; infinite: until an operator's word."""

        @property
        def stop_signal(self) -> int:
            """The signal by which the server stops; 0: it does not."""

        @property
        def replaced(self) -> bool:
            """A new main process has taken over."""

        @property
        def successor(self) -> int:
            """The process that has taken over; 0: none has."""

        @property
        def reloads(self) -> Reloads:
            """How many reloads have succeeded and failed, and the last one."""

        @property
        def takeover(self) -> Takeover | None:
            """What the main process before this one has left; `None`: there was none."""

        @property
        def has_application(self) -> bool:
            """A program has loaded the application already, which cannot be loaded again."""

        def metrics(self, convert: Callable[[Any], object]) -> list[tuple[Entry, Metric, Any]]:
            """Read the metrics of plug-ins of others; `convert` checks what each reads."""

        @property
        def file(self) -> str | None:
            """The configuration file, if there is one."""

        # What it does on behalf of components

        def reload(self, saved: str = "") -> None:
            """Reload, as after HUP, when this round of the loop has ended.

            `saved` are the files for which that is done.
            """

        def restart(self) -> None:
            """Start a new main process that takes over (USR2), when this round has ended."""

        def stop(self, number: int) -> None:
            """Stop as by this signal, when this round has ended."""

        def drain(self) -> None:
            """Report that the server is not ready, and go on serving."""

        def undrain(self) -> None:
            """Report that the server is ready again."""

        def resize(self, step: int, pools: Sequence[WorkerPool]) -> None:
            """Add `step` workers to each of these pools."""

        def recycle(self, worker: WorkerHandle) -> None:
            """Replace a worker as soon as its successor serves."""

        def say(self, text: str, style: str) -> None:
            """Tell the user: on the terminal of a developer, or else in the log.

            `style` is `info`, `warning`, `good` or `bad`.
            """


class Component:
    """Base class; each method does nothing, and a plug-in replaces those that it needs.

    The main process has one object of each component from the start, or from the first reload that
    uses the component, until its end. At the start, `open` and `start` are called. At a reload that
    begins to use the component, `open` is called, and then `start` if the new version serves, or
    else `stop`. A component that a reload does not use any more stays; its `commit` closes what it
    has.

    A method of a plug-in of others that raises is named in the log, and the component is switched
    off when that repeats; one that takes more than 0.1 s is named, and one that does not return,
    which a stop ends.
    """

    def __init__(self, main: Main) -> None:
        self.main = main

    # Its life

    def open(self, services: Sequence[Settings], have: Sequence[Listener]) -> None:
        """Open what is needed, before workers are forked; `have`: sockets that are open already.

        Raises:
            Failure: the settings cannot be used; the server does not start.
        """

    def start(self) -> None:
        """Begin: workers are being started, or after a binary upgrade they serve."""

    def stop(self) -> None:
        """End all processes and close everything."""

    # The loop of the main process

    def filenos(self) -> Sequence[int]:
        """Return descriptors that are readable when `tick` is to be called."""
        return ()

    def filenos_to_write(self) -> Sequence[int]:
        """Return descriptors that are writable when `tick` is to be called."""
        return ()

    def due(self) -> float:
        """Return when `tick` is to be called at the latest, monotonic."""
        return float("inf")

    def tick(self, now: float) -> None:
        """Do what is due."""

    def pools(self) -> Sequence[WorkerPool]:
        """Return pools of own processes, which the main process reaps, restarts and stops."""
        return ()

    def reap(self, pid: int, code: int) -> bool:
        """Handle the end of a process; return whether it was one of this component."""
        return False

    # A reload, as a transaction

    def prepare(self, services: Sequence[Settings]) -> None:
        """Open what new settings need, beside what is open.

        Raises:
            Failure: they cannot be used; the previous version keeps serving.
        """

    def commit(self) -> None:
        """Use what `prepare` has opened: the new version serves."""

    def cancel(self) -> None:
        """Close what `prepare` has opened, if it has."""

    # A binary upgrade

    def listeners(self) -> Sequence[Listener]:
        """Return the listening sockets that the next main process inherits."""
        return ()

    def memory(self) -> Sequence[Memory]:
        """Return what else the next main process inherits."""
        return ()

    def environ(self) -> Mapping[str, str]:
        """Return variables of the environment that only the next main process gets."""
        return {}

    def close_memory(self) -> None:
        """Close what `memory` has opened: the next main process was started."""

    def detach(self) -> None:
        """Leave sockets to the new main process, which serves, and end own processes."""

    # Events

    def ready(self, urls: Sequence[str]) -> None:
        """All workers serve for the first time."""

    def begun(self, kind: str) -> None:
        """A `reload` or a `restart` begins."""

    def ended(self, kind: str, message: str, *, succeeded: bool) -> None:
        """A `reload` or a `restart` has ended."""

    def draining(self) -> None:
        """The server is not ready any more, and goes on serving."""

    def stopping(self, number: int) -> None:
        """The stop begins, by this signal."""

    def worker_started(self, pool: WorkerPool, worker: WorkerHandle) -> None:
        """A worker serves."""

    def worker_ended(self, pool: WorkerPool, worker: WorkerHandle, code: int) -> None:
        """A worker has ended."""

    # How versions of the application come to be

    def spawners(self, services: Sequence[Service]) -> Sequence[Spawner] | None:
        """Return what forks the workers of services; the main process forks those of the others.

        If it returns `None`, the next component is asked.
        """
        return None

    def grace(self, number: int) -> float:
        """Return how many seconds workers may take at a stop by this signal, at most."""
        return float("inf")

    def refuses_restart(self) -> str:
        """Return why no new main process can take over (USR2); empty if one can."""
        return ""

    def handles(self, number: int) -> bool:
        """Handle a signal in place of the main process; return whether that was done."""
        return False

    def say(self, text: str, style: str) -> bool:
        """Show a message to the user; return whether that was done. See `Main.say`."""
        return False
