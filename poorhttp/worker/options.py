"""Every option that Rust reads, those of static files too: a field each of `WorkerOptions`.

Rust has the same fields (`core/reactor/src/options.rs`, `core/files/src/options.rs` and
`core/python/src/options.rs`), and refuses an object with others, or with values of other types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from poorhttp._core import (
    LogWriter,
    Request,
    RequestName,
    SharedStatuses,
    Sink,
    WorkerStatus,
    option_fields,
)
from poorhttp.config.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import ContextVar
    from typing import Any, TypeVar

    from typing_extensions import dataclass_transform

    from poorhttp._core import Event

    T = TypeVar("T")
else:

    def dataclass_transform(**arguments):
        return lambda declared: declared


# Not a dataclass: importing dataclasses costs every worker 1 MiB.
@dataclass_transform(kw_only_default=True, frozen_default=True)
class Fields:
    """Base class: its fields are set by keywords. Rust refuses fields that are missing or unknown.

    A default is an attribute of the class.
    """

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class StaticOptions(Fields):
    """How files of a folder are sent: the options `static_…` of a host."""

    static_charset: str
    static_fallback: str
    static_fallthrough: bool
    static_header: Sequence[tuple[str, str, str]]
    static_hidden: bool
    static_immutable: Sequence[str]
    static_index: str
    static_listing: bool
    static_not_found: str
    static_precompressed: bool
    static_type: Sequence[tuple[str, str]]


class WorkerOptions(Fields):
    """All that a reactor is made with, besides its listeners.

    What only plug-ins give has no names here: Rust declares these fields (`PLUGIN_FIELDS`).

    Attributes:
        abort_on_close: this and the following fields are the options of the same names.
        error_log: where the reactor writes its messages.
        access_log: sink of the access log, and its `access_log_format`.
        temp_dir: folder of temporary files.
        accept_balance: if other processes accept from the same sockets: memory with the
            `WorkerStatus` of each, and the place of this one in it.
        worker_status: memory in which a supervisor reads counters and requests in flight.
        takes_times: `worker_status` also has durations, slow requests and errors.
        new_event: called when an application has to wait for its client (`write`, and the body
            that it receives): what it returns has a method `wait(seconds)`, which is called next,
            and `set()`, which is called as by `Request.notify`. By default the thread blocks.
        external_loop: an event loop watches `fileno()` and calls `poll()` instead of iterating.
        multithread: several threads iterate.
        raw_tcp: yield unread connections as `Connection`.
        channel: descriptor of a worker's control channel, a stream socket to the main process.
            `poorhttp/process/control_channel.py` describes what is sent there.
        fd_handoff: descriptors of two stream sockets, to pass idle connections to a successor and
            to receive those of a predecessor, and a number that each successor increases.
        recycle_after: `m` is sent on `channel` when this request number begins; 0: never.
        interrupter: as `poorhttp.worker.timeouts.ThreadInterrupter`.
        refork: a request number, and a function that is called when the first request of the
            application with this number or a higher one begins; it returns after how many requests
            it is to be called again, or 0.
        offer_upgrade: called to offer its connection to the application.
        replace_thread: called with the native ID of a thread whose response streams, in whose place
            it starts another one, or with 0 for one more; returns whether it could.
        reopen_logs: called when the main process commands that over `channel`.
        note_stop: the same when it commands a stop.
        end_line: called behind a request, if any thread has left a line in `wsgi.errors` without
            its end; not in mode `gevent`.
        routes: host (`*.domain` for all below it, empty for all others), path prefix (without a
            trailing slash), folder whose files are sent without Python (`None`: the application
            answers) and how they are sent. The host is matched first, then the longest prefix.
        static_files: how files of `x_sendfile` and `x_accel_redirect` are sent.
        streamed_bodies: host and path prefix as in `routes`, and whether the application is called
            before the body of a request has come.
        live_reload: the live-reload script for HTML pages: text before and after the server's path
            prefix.
        request_context: variable that the name of the request is set to in its greenlet, with
            `request_id`.
    """

    # Options, of the same names.
    abort_on_close: bool
    access_log_exclude: Sequence[str]
    access_log_sample: float
    body_buffer_size: int
    body_memory: int
    body_timeout: float
    drain_timeout: float
    early_hints: bool
    forwarded_headers: Sequence[str]
    graceful_timeout: float
    header_timeout: float
    health: str | None
    keepalive_timeout: float
    max_body: int
    max_connections: int
    max_header_size: int
    max_headers: int
    max_request_header_size: int
    max_request_line: int
    min_rate: int
    queue_timeout: float | None
    request_id: bool
    request_timeout: float
    server_header: str
    slow_request: float
    spool_limit: int
    spool_total: int
    static_cache: int
    streaming_threads: int
    trusted_proxies: Sequence[str]
    upgraded_threads: int
    write_timeout: float
    x_accel_redirect: Sequence[tuple[str, str]]
    x_sendfile: Sequence[str]

    # What the server gives.
    error_log: LogWriter
    access_log: tuple[Sink, str] | None = None
    temp_dir: str = "/tmp"
    accept_balance: tuple[SharedStatuses, int] | None = None
    worker_status: WorkerStatus | None = None
    takes_times: bool = False
    new_event: Callable[[], Event] | None = None
    external_loop: bool = False
    multithread: bool = False
    raw_tcp: bool = False
    channel: int | None = None
    fd_handoff: tuple[int, int, int] | None = None
    recycle_after: int = 0
    interrupter: object = None
    refork: tuple[int, Callable[[], int]] | None = None
    offer_upgrade: Callable[[dict[str, Any], Request], object] | None = None
    replace_thread: Callable[[int], bool] | None = None
    reopen_logs: Callable[[], object] | None = None
    note_stop: Callable[[], object] | None = None
    end_line: Callable[[], object] | None = None
    routes: Sequence[tuple[str, str, str | None, StaticOptions]] = ()
    static_files: StaticOptions
    streamed_bodies: Sequence[tuple[str, str, bool]] = ()
    live_reload: tuple[str, str] | None = None
    request_context: ContextVar[RequestName | None] | None = None


#: Fields of `WorkerOptions` that `worker_options` makes itself.
MADE = ("routes", "static_files")

#: Fields that Rust declares for plug-ins, which give them by `reactor_arguments`: name and type.
PLUGIN_FIELDS = {
    name: annotation
    for name, annotation in option_fields()["WorkerOptions"]
    if name not in WorkerOptions.__annotations__
}


def worker_options(
    settings: Settings,
    routes: Sequence[tuple[str, str, str | None, Settings]],
    arguments: Mapping[str, object],
    **given: Any,
) -> WorkerOptions:
    """Return the options of a reactor: the only place that makes them from settings.

    Args:
        settings: of the service.
        routes: as `poorhttp.targets.routes.Routes.table` returns them.
        arguments: fields that plug-ins give.
        given: all other fields that are no options.

    Raises:
        TypeError: a field is missing, or there is none of this name.
    """
    for name in arguments:
        if name not in PLUGIN_FIELDS:
            raise TypeError(
                f"WorkerOptions.{name}: a plug-in gives it; it may give {', '.join(PLUGIN_FIELDS)}"
            )
    made = {
        "routes": [(*row, _of(StaticOptions, settings)) for *row, settings in routes],
        "static_files": _of(StaticOptions, settings),
    }
    options = _of(WorkerOptions, settings, **made, **given)
    vars(options).update({name: arguments.get(name) for name in PLUGIN_FIELDS})
    return options


def _of(declared: Callable[..., T], settings: Settings, **others: Any) -> T:
    """Return an object whose fields have the values of the options of these names."""
    named = {
        name: getattr(settings, name)
        for name in declared.__annotations__
        if name not in others and hasattr(Settings, name)
    }
    return declared(**named, **others)
