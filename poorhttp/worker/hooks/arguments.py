"""The arguments of hooks: `WorkerInfo`, `ServerInfo` and `ReloadInfo`."""

from __future__ import annotations

from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    #: Argument of a function of hooks.
    Argument: TypeAlias = "WorkerInfo | ServerInfo | ReloadInfo"


class WorkerInfo:
    """A worker, as hooks see it.

    Attributes:
        number: its number among the workers of its service, from 1; its successor gets the same.
            0 is the preloader, for which only `worker_exit` is called.
        pid: process ID.
        service: name of the service; empty if there is only one, without a name.
        reason: in `worker_exit`, one word for how the worker ended; in `worker_timeout`, a phrase
            for why it is given up; otherwise empty.
        exit_code: in `worker_exit`, the exit code; None if a signal killed the worker.
        signal: in `worker_exit`, the number of the signal that killed the worker; otherwise None.
        in_flight: in `worker_exit` and `worker_timeout`, the requests in flight, as text.
    """

    def __init__(
        self,
        number: int,
        pid: int,
        service: str,
        reason: str = "",
        exit_code: int | None = None,
        signal: int | None = None,
        in_flight: str = "",
    ) -> None:
        self.number = number
        self.pid = pid
        self.service = service
        self.reason = reason
        self.exit_code = exit_code
        self.signal = signal
        self.in_flight = in_flight

    def __repr__(self) -> str:
        of = f" of service {self.service}" if self.service else ""
        reason = f", {self.reason}" if self.reason else ""
        return f"<worker {self.number}{of}, process {self.pid}{reason}>"


class ServerInfo:
    """The server, as hooks see it.

    Attributes:
        pid: process ID of the main process.
        urls: where it listens.
        workers: how many workers serve, of all services.
    """

    def __init__(self, pid: int, urls: Sequence[str], workers: int) -> None:
        self.pid = pid
        self.urls = urls
        self.workers = workers

    def __repr__(self) -> str:
        return f"<server, process {self.pid}, {self.workers} workers on {', '.join(self.urls)}>"


class ReloadInfo:
    """The result of a reload, as hooks see it.

    Attributes:
        succeeded: True if the new version serves; otherwise the previous one continues.
        message: the line of the error log with the result.
        pid: process ID of the main process.
    """

    def __init__(self, succeeded: bool, message: str, pid: int) -> None:
        self.succeeded = succeeded
        self.message = message
        self.pid = pid

    def __repr__(self) -> str:
        return f"<reload, {self.message}>"


def argument(option: str, values: dict[str, Any]) -> Argument:
    """Return the argument of a hook from its attributes."""
    kinds: dict[str, type[Argument]] = {"hook_server_ready": ServerInfo, "hook_reload": ReloadInfo}
    return kinds.get(option, WorkerInfo)(**values)
