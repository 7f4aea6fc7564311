"""Types of the extension module: event loop, requests and logs in Rust, sources in `core/`.

Each process has one `Reactor`, which yields complete requests. A `Request` is also its own
`start_response` and `write` (PEP 3333). What is `Final` cannot be set, but may change by itself.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Literal, Protocol, final, overload

from _typeshed import OptExcInfo, WriteableBuffer

build_profile: Literal["debug", "release"]
"""Whether the extension was compiled with optimisation, for benchmarks."""

def check_log_format(text: str) -> None:
    """Raise ValueError with the reason if an access log format is invalid."""

def escape(value: object) -> str:
    """Return a value as text for HTML and quoted attributes.

    If it has a method `__html__`, the result of that is returned unescaped.
    """

def fill(*parts: object) -> str:
    """Join texts and values, which alternate, and escape the values."""

def signal_action(number: int) -> int:
    """Return the address of the C function that handles a signal; SIG_DFL is 0, SIG_IGN is 1."""

def option_fields() -> dict[str, list[tuple[str, str]]]:
    """Return the fields of `WorkerOptions` and `StaticOptions` that Rust reads: names and types."""

def set_body_inputs(spooled: type, streamed: type, /) -> None:
    """Name the classes of `wsgi.input` (`poorhttp.worker.wsgi`), before the first request."""

def note_unfinished_line(is_unfinished: bool, /) -> None:
    """Note whether a line in `wsgi.errors` has no end: then `end_line` of a `Reactor` is called."""

def end_with_parent() -> None:
    """Have SIGTERM sent to this process when its parent ends (prctl(2), PR_SET_PDEATHSIG)."""

def end_after_parent(number: int, seconds: float) -> None:
    """Have the signal `number` sent to this process when its parent ends.

    Then the process gets SIGTERM, and after so many seconds SIGKILL, by a timer of the kernel: also
    if all threads are in C code, where no handler of Python runs.
    """

def current_request() -> RequestName | None:
    """Return the name of the request that this thread runs.

    `None` without `request_id`, in mode `gevent`, and in a thread that runs none.
    """

def client_disconnected() -> bool:
    """`poorhttp.client_disconnected` of threads: `Request.client_disconnected` of the one it runs.

    Raises:
        RuntimeError: this thread runs no request.
    """

def early_hints(headers: list[tuple[str, str]], /) -> None:
    """`wsgi.early_hints` of threads: `Request.__call__` of the request that this thread runs."""

def advise_huge_pages(buffer: WriteableBuffer) -> None:
    """Ask the kernel for huge pages behind a large buffer that is about to be filled."""

def merge_memory() -> None:
    """Have the kernel merge equal pages (PR_SET_MEMORY_MERGE), also of processes forked later."""

def trim_memory() -> None:
    """Return free memory of the C library's heap to the system (malloc_trim(3))."""

def set_process_title(title: str, name: str, *, requests: str = "none") -> None:
    """Set what `ps` and `top` show in place of the command line, and `/proc/PID/comm` (15 bytes).

    Bytes that are not printable ASCII are replaced. `requests`: see the option `proc_name`.
    """

def forget_title() -> None:
    """Remove the requests of the parent from the title of this process, which was just forked."""

def watch_forks() -> None:
    """Have processes that the application forks give up what is the server's.

    Their copies of the server's descriptors are replaced, and objects of the server that were made
    before belong to the parent. Libraries may fork without Python; what is done then is done inside
    fork(2), as for all others.
    """

def fork_for_server() -> int:
    """Fork this process as `posix.fork()` does; the child is one of the server's processes."""

def begin_python_fork() -> bool:
    """Note that Python forks this process; return `False` if that is for the server."""

def end_python_fork() -> bool:
    """Note the end of that, in the parent and in the child; return the same."""

def note_signals(handled: int, ignored: int) -> None:
    """Have processes that libraries fork restore signals; number 1 is the lowest bit.

    `handled` are those with handlers of the server; `ignored`, those of them that were ignored when
    the server was started.
    """

def note_fd(fd: int) -> None:
    """Note a descriptor that processes forked by the application do not keep."""

def forget_fd(fd: int) -> None:
    """Forget a descriptor, before it is closed or given away."""

@final
class Sink:
    """Destination of a log. It can be used for one log only."""

    @staticmethod
    def lines(fd: int, *, marked: bool = False) -> Sink:
        """Return a sink that writes lines of text to a duplicate of `fd`.

        `marked`: with their priorities, for systemd's journal (sd-daemon(3)).
        """
    @staticmethod
    def syslog(path: str, *, access: bool = False) -> Sink:
        """Return a sink for syslog (`access`: facility `local0`); an OSError if nobody listens."""
    @staticmethod
    def journald(path: str) -> Sink:
        """Return a sink for systemd's journal, in its own protocol; errors as `syslog`."""
    @staticmethod
    def records(fd: int) -> Sink:
        """Return a sink that sends messages to a connected datagram socket.

        A datagram is the number of the priority in syslog, one digit, and seven parts between which
        is a character U+001E: `wsgi.errors` if the application has written it; number, id, trace id
        and span id of the request; text; traceback.
        """

@final
class RequestName:
    """A request as messages name it: as text, `request 12 GET /path`."""

    #: Its running number in the worker.
    number: Final[int]
    #: Method and target, or the client's address; escaped.
    line: Final[str]
    #: Its id; empty without `request_id`.
    id: Final[str]
    #: The id of its trace, if it has a valid `traceparent`; None without `request_id`.
    trace_id: Final[str | None]
    #: The id of its client's span in that trace.
    span_id: Final[str | None]

@final
class LogWriter:
    """The error log: text or a JSON object for each message, with time, process and level."""

    def __init__(self, sink: Sink, lowest: str, *, json: bool = False) -> None:
        """Write messages from level `lowest` on (`debug` and so on), with `json` as objects."""

    def write(
        self,
        level_name: str,
        message: str,
        request: RequestName | None = None,
        *,
        traceback: str | None = None,
        from_application: bool = False,
    ) -> None:
        """Write a message, and lines of a traceback; all lines but the first are indented.

        A message about a request begins with its name. One that is `from_application` was written
        to `wsgi.errors`. Messages that cannot be written in time are counted, and the number is
        written later.
        """

    def close(self) -> None:
        """Write how many messages were lost, if any, before the process ends."""

    def reopen(self, sink: Sink) -> None:
        """Write to another sink from now on."""

    def set_label(self, label: str) -> None:
        """Set the name of this process in each line, as in `[4711 worker 2]`."""

    def count_lost(self, status: WorkerStatus) -> None:
        """Count lines that are lost in `status`, too."""

    #: The name of this process.
    label: Final[str]

@final
class SharedStatuses:
    """The statuses of several workers, in a file in memory that processes share."""

    def __init__(self, places: int) -> None:
        """Make memory for so many, or raise OSError."""

    @staticmethod
    def inherited(fd: int) -> SharedStatuses:
        """Use the memory of the main process before; the descriptor is duplicated.

        Raises:
            OSError: it cannot be used.
            ValueError: it is no such memory, or that of another version.
        """

    def fileno(self) -> int: ...
    def __len__(self) -> int: ...

@final
class WorkerStatus:
    """Counters, requests in flight and slow requests of a worker, in memory that outlives it."""

    SIZE: ClassVar[int]
    """Bytes of memory that it needs."""

    BOUNDS: ClassVar[tuple[float, ...]]
    """Upper bounds of the buckets of the histograms, in seconds."""

    def __init__(self, memory: SharedStatuses, place: int) -> None:
        """Use a place of shared `memory`; raise ValueError if there is no such place."""

    def in_flight(self, in_pool: bool = False) -> list[tuple[int, str]]:
        """Return number and line (escaped) of the newest 64 requests, the newest first.

        `in_pool`: without those whose threads do not count among `threads`, as they stream.
        """

    def requests(self) -> Any:
        """Return requests in flight and upgraded connections, the oldest first."""

    def finished(self) -> tuple[Any, Any, Any]:
        """Return the slowest requests of the last hour, and the last errors and refusals.

        Empty, unless the reactor takes times. The slowest come first, the others newest first.
        """

    def figures(self) -> Any:
        """Return what the worker has counted.

        Without `takes_times`, those of bytes, durations and waiting connections stay zero.
        """

    def lines_lost(self) -> int:
        """Return how many lines of the worker's logs were lost."""

    def absorb(self, ended: WorkerStatus) -> None:
        """Add counters and entries of an ended worker, and clear them there; not `in_flight`."""

    def moves(self) -> int:
        """Return the sequence number: odd while `absorb` moves the counters of an ended worker."""

    def own_number(self, which: int) -> int:
        """Return one of 16 numbers for the main process's own use."""

    def add_to_own_number(self, which: int, more: int = 1) -> None: ...

    #: Whether the worker accepts connections.
    accepts: Final[bool]

    def counts(self) -> tuple[int, int, int, list[int], int, int]:
        """Return requests begun, requests in flight, connections, responses (1xx to 5xx).

        And connections that applications have got, and how many they have got so far.
        """

    def set_slots(self, slots: int) -> None:
        """Set how many requests the application can run at the same time; 0: unlimited."""

    def want_threads(self, threads: int, hold: bool = False) -> None:
        """Ask for so many threads, with `threads = auto`; `hold`: from now on."""

    def set_watched(self, watched: bool) -> None:
        """Set whether the supervisor checks `is_full`; if not, the worker reports being full."""

    def await_request(self) -> None:
        """Have the worker report its next request."""

    def stop_accepting(self) -> None:
        """Show the other workers that this one does not accept."""

    def is_full(self) -> bool:
        """Whether the application runs as many requests as it can."""

    def clear(self) -> None:
        """Remove all requests and counts, for a new worker."""

class Event(Protocol):
    """What a request waits for in a mode that does not block its thread."""

    def set(self) -> object:
        """End the wait."""

    def wait(self, seconds: float, /) -> object:
        """Wait for `set`, at most so long."""

@final
class Reactor:
    """All connections of this process. Several threads may iterate it at the same time."""

    def __init__(
        self, listeners: Sequence[tuple[int, dict[str, Any], str, bool]], options: object
    ) -> None:
        """Create it in the process that serves, after the last fork.

        Args:
            listeners: non-blocking listening sockets (their descriptors are duplicated), each with
                the environ that its requests have in common, its protocol (`http`, `https`,
                `uwsgi`, `scgi`, `fastcgi`), and whether its connections begin with a PROXY protocol
                header.
            options: `poorhttp.worker.options.WorkerOptions`, everything else.

        Raises:
            OSError: a descriptor is not open, the system has none left, or a folder cannot be read.
            TypeError: a field of the options is missing or unknown, or has a value of another type.
            ValueError: an option is invalid.
        """

    def __iter__(self) -> Reactor: ...
    def __next__(self) -> Request:
        """Return the next complete request, or a `Connection` with `raw_tcp`.

        Waits without the interpreter's lock. The iteration ends when `finished` is true.
        """

    def poll(self) -> Request | None:
        """Return the next request if one is complete, or `None`, without waiting."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when `poll` has to be called."""

    def stop(self, graceful: bool = True, *, last: bool = True) -> None:
        """Stop accepting, and end when the requests in flight are answered.

        A `graceful` stop also waits up to `graceful_timeout` for requests whose beginning was
        received, and up to `drain_timeout` for requests on idle connections. With `last`, no other
        process listens on the same sockets: the connections in their queues are accepted first.
        """

    def give_up(self) -> None:
        """Cut all connections after `stop`, and end although requests are in flight.

        The next call of each of their applications that sends or receives raises an exception.
        """

    def drain(self) -> None:
        """Report draining to health checks (option `health`); nothing else changes."""

    def end_long_polls(self) -> None:
        """End all long polls, each with its final chunk; see `Request.long_poll`."""

    def push_to_long_polls(self, chunk: bytes) -> int:
        """Send a piece of the body to all long polls, from any thread.

        A client that has not read the piece before gets only the last one, as soon as it can.
        Returns how many connections may be long polls: also those of requests in flight.
        """

    def take_timeout(self, runner: object) -> bool:
        """Return, once for each interruption, whether the request of `runner` was interrupted."""

    def time(self) -> int:
        """Return the time, for `waited_since`."""

    def waited_since(self, begun: int) -> None:
        """Have `slow_request` measure from now on: the event loop has just waited since `begun`."""

    def flush_log(self) -> None:
        """Write the buffered lines of the access log, before the process ends."""

    def reopen_log(self, sink: Sink) -> None:
        """Write the access log to another sink, after flushing its buffer to the old one."""

    def leave(self) -> None:
        """Note that this thread goes on with its request, and takes no other one."""

    #: For `signal.set_wakeup_fd`: a byte written here lets signal handlers run.
    wakeup_fd: Final[int]
    #: Whether it belongs to the process that forked this one, and must not be used.
    foreign: Final[bool]
    #: Whether it was stopped and its last connection has ended.
    finished: Final[bool]
    #: Whether it was stopped to make this process the preloader.
    promoted: Final[bool]

@final
class Connection:
    """An unread connection. Dropping it before `end` resets it."""

    def duplicate(self) -> tuple[int, int]:
        """Return a duplicate of its descriptor, in blocking mode, and its address family."""

    def begin(self) -> Any:
        """Return the client address as `socket.accept` does, and start the timeout.

        From now on this thread or greenlet may be interrupted.
        """

    def disarm_timeout(self) -> None:
        """Stop the timeout: the handler is not interrupted any more."""

    def end(self, complete: bool = True) -> None:
        """Close it without waiting, or reset it if not `complete`.

        Raises:
            RuntimeError: it belongs to the process that forked this one.
        """

    #: Its running number in its worker, as in the access log.
    number: Final[int]
    #: Its name in logs.
    name: Final[RequestName]
    #: Its client, for logs: `of 127.0.0.1:4711`.
    line: Final[str]
    #: Whether it belongs to the process that forked this one.
    foreign: Final[bool]
    #: Whether the connection was closed because the handler took too long.
    timed_out: Final[bool]
    #: Whether the client has disconnected, not only finished sending.
    disconnected: Final[bool]

@final
class Request:
    """A complete request. Dropping it without a response closes its connection."""

    @overload
    def __call__(
        self,
        status: str,
        response_headers: list[tuple[str, str]],
        exc_info: OptExcInfo | None = None,
        /,
    ) -> Callable[[bytes], None]:
        """`start_response` with two or three arguments, `write` with one (PEP 3333).

        Raises:
            ValueError: a status or header is not valid HTTP; nothing was sent.
            TypeError: not a str, not a list of tuples of str, not bytes.
            RuntimeError: called twice without `exc_info`, or after the request was answered.
            ConnectionResetError: the client has disconnected.
            BaseException: that of `exc_info`, if the head was sent already.
        """
    @overload
    def __call__(self, data: bytes, /) -> None:
        """`write`.

        Raises:
            ValueError: more bytes than the Content-Length announces; these were not sent.
        """
    @overload
    def __call__(self, headers: list[tuple[str, str]], /) -> None:
        """`wsgi.early_hints` in mode gevent: send a response 103 with these headers at once.

        Does nothing for clients of HTTP/1.0 and behind gateway protocols, and once the final
        response has begun to be sent.

        Raises:
            ValueError: a header is not valid HTTP; nothing was sent.
            ConnectionResetError: the client has disconnected.
        """
    def client_disconnected(self) -> bool:
        """Return whether the client has left, as far as the kernel knows; after the end: had left.

        A client that ends its input, with nothing before that, has left with `abort_on_close`.
        """
    def take_environ(self) -> dict[str, Any]:
        """Return the WSGI environ, once, and start the timeout.

        From now on this thread or greenlet may be interrupted. The request does not keep the
        environ, as the application may store the request in it.
        """

    def receive_body(self, buffer: WriteableBuffer) -> int | None:
        """Receive a part of a body that is received while the application runs.

        Returns the number of bytes, 0 at the end, or `None` after a wait: to be called again.

        Raises:
            ConnectionResetError: the client has disconnected.
            poorhttp.errors.BodyRefused: it is too large or malformed, or comes too slowly.
            ValueError: the request was answered, or belongs to the parent process.
        """

    def receive_nowait(self, buffer: WriteableBuffer) -> int | None:
        """Do the same without waiting; `None`: nothing has come, and `notify` tells when it has."""

    def send_nowait(self, data: bytes) -> int:
        """Send as much of a piece of the body as there is room for; return its length.

        After fewer bytes than there are, `notify` tells when there is room for more.

        Raises: as `write`.
        """

    def notify(
        self, function: Callable[[], object], *, data: bool = False, room: bool = False
    ) -> None:
        """Have `function` called once, when data or room may have come, or the client has left.

        At once if it is there. Whichever thread finds the event calls it (with `external_loop`, one
        that calls `Reactor.poll`), so that it must not wait, nor use a request: it schedules what
        does. Another call replaces it, and the end of the request drops it.
        """

    def take_over(self, *, in_pool: bool) -> tuple[int, Any]:
        """Give the connection to the application; return a descriptor, and what its socket tells.

        The response is discarded from now on. `in_pool`: the request still counts as in flight.

        Raises:
            OSError: the response has begun, or the client is gone.
        """

    #: Whether the application has got the connection.
    upgraded: Final[bool]

    def end_upgraded(self, complete: bool) -> None:
        """End a connection that the application has got; `complete`: it has not failed."""

    def expect_wait(self) -> None:
        """Note that the application is about to wait, so that another thread takes over polling."""

    def disarm_timeout(self) -> None:
        """Stop the timeout: the application is not interrupted any more."""

    #: Whether the server answered because the application took too long.
    timed_out: Final[bool]
    #: Its name in logs.
    name: Final[RequestName]
    #: Method and target, escaped for logs.
    line: Final[str]
    #: The running number of the request in its worker, as in the access log.
    number: Final[int]
    #: Whether the head was sent, so that it can no longer be replaced.
    committed: Final[bool]
    #: Whether it belongs to the process that forked this one.
    foreign: Final[bool]
    #: Whether the client disconnected before it was answered.
    disconnected: Final[bool]
    #: Whether the server has closed the connection before the response was complete.
    cut: Final[bool]
    #: Whether the server is stopping, and waits up to `graceful_timeout` for this request.
    stopping: Final[bool]

    def finish(self, body: object) -> bool:
        """Send the response with a list or tuple of bytes, head and body in one system call.

        Returns `False` if `body` has another type; nothing was sent.
        """

    def write(self, data: bytes) -> bool:
        """Send a piece of the body now, after the head if that was not sent yet.

        An empty piece sends nothing, but checks whether the client has disconnected. Returns
        `False` if later pieces would not be sent: for HEAD, for a status without body, and beyond
        Content-Length.
        """

    def done(self) -> None:
        """Note that the application has finished: the request is no longer in flight."""

    def send_file(self, fd: int, offset: int, length: int) -> bool:
        """Send the response with `length` bytes of an open file (sendfile(2)), without waiting.

        Returns `False` if nothing was sent, because the file is to be compressed: by `write`.
        """

    def send_static(self, path: bytes) -> bool:
        """Send the response to a GET of `path` (percent-encoded); `False`: it is not published."""

    def end(self) -> None: ...
    def long_poll(self, final_chunk: bytes, *, missed: int = 0) -> None:
        """Keep the response open as a long poll; the application has finished.

        The connection is kept, without time limits, until its client disconnects, the server stops,
        or `Reactor.end_long_polls` sends `final_chunk`. It is not logged. A response without body
        (HEAD) ends at once, and any if long polls were ended in the last `missed` milliseconds. The
        application's return value is not sent.

        Raises:
            ConnectionResetError: the client has disconnected.
            RuntimeError: the request has been answered already.
            ValueError: `start_response` was not called.
        """

    def restart(self) -> bool:
        """Discard status and headers. `False` if they were sent already."""

    def abort(self) -> None:
        """Close the connection, so that the client sees an incomplete response."""
