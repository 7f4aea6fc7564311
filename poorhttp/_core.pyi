"""The reactor, written in Rust; its sources are in `core/`.

One `Reactor` serves a process. It hands out each complete request as a `Request`, which is also the
`start_response` and the `write` of PEP 3333 for it.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, final, overload

from _typeshed import OptExcInfo

from poorhttp.config.settings import Settings
from poorhttp.worker.timeouts import ThreadInterrupter

build_profile: Literal["debug", "release"]
"""Whether the extension was compiled with optimisation: a benchmark must know."""

def check_log_format(text: str) -> None:
    """Raise ValueError, saying what is wrong, if an access log format cannot be understood."""

def escape(value: object) -> str:
    """Return a value as text that may stand in HTML, inside quoted attributes too.

    What has a method `__html__` knows how it is to be written, and is not escaped again.
    """

def fill(*parts: object) -> str:
    """Return texts and values in turn as one text; the values, every second part, are escaped."""

def read_fields(text: str) -> list[tuple[str, str]]:
    """Return the names and values of a query string, or of a form of that type, decoded.

    Like `urllib.parse.parse_qsl(text, keep_blank_values=True)`.
    """

def end_with_parent() -> None:
    """Have TERM sent to this process when its parent dies, however that dies (prctl(2))."""

def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends (prctl(2), PR_SET_CHILD_SUBREAPER)."""

def note_child() -> None:
    """Tell that this process is about to fork: the child may keep open what is closed here."""

def note_fork() -> None:
    """Tell that this process is a fresh fork: what was made before it belongs to the parent."""

@final
class Inotify:
    """Watches folders, but not below them: what happens to the files in them (inotify(7)).

    Every method raises OSError where the system refuses; EMFILE: the limit of `max_user_instances`
    is full; ENOSPC: that of `max_user_watches` is, and which folders are watched is not known.
    """

    def __init__(self) -> None:
        """Watch nothing yet."""

    def fileno(self) -> int:
        """Return the descriptor, which is readable when there is something to `read`."""

    def watch(self, folders: Sequence[str]) -> bool:
        """Watch these folders, and no others; return `False` if one of them is not there.

        Folders that are closed to us are left out. What has happened so far is still read.
        """

    def read(self) -> dict[str, Literal["written", "touched", "changed"]] | None:
        """Return the paths to which something has happened, and never wait.

        `written`: who writes to the file has not closed it. `touched`: that has happened now, or
        it has other attributes; its time and size tell whether it has changed. `changed`: it has
        appeared, has gone, or has other contents; of a folder that is watched: it is another one,
        or gone.

        `None`: there was more than the system keeps, so anything may have happened.
        """

@final
class Sink:
    """Where the lines of a log go. One log takes it, and nobody else can then."""

    @staticmethod
    def lines(fd: int, *, marked: bool = False) -> Sink:
        """Return one that writes lines of text to a duplicate of `fd`.

        `marked` with their priorities, for systemd's journal (sd-daemon(3)).
        """
    @staticmethod
    def syslog(path: str, *, access: bool = False) -> Sink:
        """Return one that sends messages to a syslog daemon; `access`: as facility `local0`.

        Raises:
            OSError: nobody listens there.
        """
    @staticmethod
    def journald(path: str) -> Sink:
        """Return one that sends messages to systemd's journal, in its own protocol.

        Raises:
            OSError: nobody listens there.
        """
    @staticmethod
    def records(fd: int) -> Sink:
        """Return one that sends messages to a connected datagram socket.

        A datagram is the number of the priority in syslog, one digit, and the text.
        """

@final
class LogWriter:
    """The error log: one line of text for each message, with time, process and level."""

    def __init__(self, sink: Sink, lowest: str) -> None:
        """Write messages of at least the level `lowest`.

        Raises:
            ValueError: `lowest` is not one of debug, info, warning, error.
        """

    def write(self, level_name: str, message: str) -> None:
        """Write a message; if it has several lines they stay together, all but the first indented.

        What cannot be written within a moment is counted, and the number told when there is room.
        """

    def close(self) -> None:
        """Tell how many messages are lost, if any are, before the process ends."""

    def reopen(self, sink: Sink) -> None:
        """Go on in another place."""

    def set_label(self, label: str) -> None:
        """Say who this process is in every line from now on: `[4711 worker 2]`."""

    @property
    def label(self) -> str:
        """Who this process is."""

@final
class WorkerStatus:
    """The requests that a worker has in hand, in memory that outlives it."""

    SIZE: ClassVar[int]
    """Octets of memory that it needs."""

    def __init__(self, memory: memoryview) -> None:
        """Use `memory`, which other processes may share."""

    def in_flight(self) -> list[tuple[int, str]]:
        """Return number, and method and target of each request, the newest first.

        As many as 64; of more the newest are known. Nothing in a line can forge a line of a log.
        """

    def counts(self) -> tuple[int, int, int, list[int]]:
        """Return requests begun, requests in hand, connections, and answers (1xx to 5xx)."""

    def set_slots(self, slots: int) -> None:
        """Set how many requests the application can have at the same time; 0: any number."""

    def set_watched(self, watched: bool) -> None:
        """Note whether somebody checks `is_full`: if not, the worker tells when it is."""

    def is_full(self) -> bool:
        """Whether the application has as many requests as it can have."""

    def clear(self) -> None:
        """Strike out everything: a new worker begins."""

def find_program(folder: bytes, path: bytes) -> tuple[bytes, int | None]:
    """Return the file of the CGI program that a decoded path means, and how much of the path it is.

    `None`: all of it, and the file is the index program of that folder.

    Args:
        folder: below which programs are; a canonical path.
        path: what the client asked for, as `PATH_INFO` has it.

    Raises:
        FileNotFoundError: there is none; with an argument, the file: a symbolic link on the way
            leads out of the folder.
        IsADirectoryError: a folder that has an index program, without the slash at its end.
        PermissionError: it is not executable; its argument is the file.
        NotImplementedError: it writes a whole HTTP message (`nph-`); its argument is the file.
    """

def split_target(target: bytes) -> tuple[bytes, bytes]:
    """Return path (decoded) and query of a path on this server that a program names.

    Raises:
        ValueError: a client could not send this as a request target.
    """

@final
class CgiProgram:
    """A CGI program that runs (RFC 3875).

    Dropped or closed, it is ended with all that it has started, and reaped. What waits here does so
    without the interpreter's lock, and for 100 ms only: behind that, signals, exceptions from
    elsewhere and clients that leave can be seen to.
    """

    def __init__(
        self,
        file: bytes,
        variables: list[tuple[bytes, bytes]],
        environ: dict[str, Any],
        body: bytes | int | None,
        limits: tuple[float, float | None],
        error_log: LogWriter,
        label: str,
        done: Callable[[], object],
    ) -> None:
        """Start it, in its folder and in a process group of its own.

        Args:
            file: its absolute path.
            variables: what it gets in its environment, whatever the request is.
            environ: what it gets of that (RFC 3875 section 4.1): header fields and what is known of
                client and server, but no credentials.
            body: its standard input: octets, or the descriptor of a file that is read from its
                beginning.
            limits: seconds that it may run without writing anything, and in all.
            error_log: where lines of its standard error go.
            label: stands before each of them.
            done: called when it has ended and was reaped; in whatever thread. Not if this raises.

        Raises:
            OSError: it cannot be started.
            ValueError: there is a NUL in its environment, or what is not Latin-1.
        """

    def head(self) -> tuple[str | None, list[tuple[str, str]], bytes | None] | None:
        """Return status, headers and, if it has ended by now, the whole body; `None`: no head yet.

        Without a status the only header is a `Location` on this server, whose content is to be sent
        (section 6.2.2).

        Raises:
            TimeoutError: its time is over.
            RuntimeError: there is no answer; the text says why.
        """

    def piece(self) -> bytes | None:
        """Return the next piece of the body, empty if there is nothing yet, `None` at its end.

        Raises:
            TimeoutError: its time is over.
            RuntimeError: the answer is not complete; the text says why.
        """

    @property
    def exit_code(self) -> int | None:
        """The status with which it has ended, if it is known that it has."""

    def close(self) -> None:
        """End it."""

@final
class Reactor:
    """All connections of this process. May be iterated by many threads at once."""

    def __init__(
        self,
        listeners: Sequence[tuple[int, dict[str, Any], str, bool]],
        settings: Settings,
        error_log: LogWriter,
        *,
        access_log: tuple[Sink, str] | None = None,
        temp_dir: str = "/tmp",
        accept_balance: tuple[int, int] | None = None,
        worker_status: WorkerStatus | None = None,
        wait_writable: Callable[[int], object] | None = None,
        external_loop: bool = False,
        raw_tcp: bool = False,
        channel: int | None = None,
        fd_handoff: tuple[int, int, int] | None = None,
        recycle_after: int = 0,
        interrupter: ThreadInterrupter | None = None,
        routes: Sequence[tuple[str, str, str | None, Settings]] = (),
        live_reload: tuple[str, str] | None = None,
    ) -> None:
        """Serve what comes in. To be made in the process that serves, after the last fork.

        Args:
            listeners: non-blocking listening sockets (their descriptors are duplicated), each with
                the environ that its requests have in common, the protocol that is spoken there
                (`http`, `uwsgi`, `scgi`, `fastcgi`), and whether its connections begin with a
                preamble of the PROXY protocol.
            settings: limits and timeouts are read from it.
            access_log: where to log requests, and how: as `access_log_format` says it.
            temp_dir: absolute path of the folder for temporary files.
            accept_balance: if other processes accept from the same sockets: descriptor of a file
                with a 32-bit number of connections for each, and the place of this one in it.
            worker_status: where a supervisor can read what is in hand.
            wait_writable: called with a descriptor when an application has to wait for its client;
                by default the thread waits.
            external_loop: an event loop watches `fileno()` and calls `poll()`; nobody iterates.
            raw_tcp: connections are not read; what is handed out are `Connection`s.
            channel: if this is a worker: descriptor of a stream socket to the main process. `?`
                from there is answered with `.` by whoever looks for requests next, `d` is
                `drain()`, `r` is `stop(last=False)`, `H` is that and gives idle connections
                to a successor, `l` is `end_long_polls()`, and the end of the stream is `stop()`.
            fd_handoff: where idle connections go when they are handed over, and where those of a
                predecessor come from: descriptors of a pair of stream sockets, and a
                number that is higher for each successor.
            interrupter: interrupts applications that take longer than `request_timeout`.
            routes: host (`*.domain` for all below it, empty for all others), prefix (without a
                slash at its end), folder whose files are sent there without Python (`None`: the
                application answers) and the settings that say how (`static_…`). The host, then the
                longest prefix decide. `x_sendfile` and `x_accel_redirect` are read from `settings`.
            live_reload: the script appended to HTML pages, so that they reload themselves: text
                before and behind the path prefix of the server.
            recycle_after: when the request with this number is begun, `m` is said there; 0: never.

        Raises:
            OSError: a descriptor is not open, the system has none left, or a folder cannot be read.
            ValueError: the format of the access log is not understood.
        """

    def __iter__(self) -> Reactor: ...
    def __next__(self) -> Request:
        """Return the next complete request, or `Connection` if it is `raw_tcp`.

        Waits without holding the interpreter's lock.

        Ends when the reactor was stopped and the last connection has ended.
        """

    def poll(self) -> Request | None:
        """Return a request that is complete now, or `None`. Never waits."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when there is something to do."""

    def stop(self, graceful: bool = True, *, last: bool = True) -> None:
        """Stop accepting, and end when the requests in hand are answered.

        If `graceful`, requests that clients have begun to send are heard out too, as long as
        `graceful_timeout` allows, and idle connections are heard for `drain_timeout`.

        Args:
            graceful: see above.
            last: nobody else listens on the same sockets, so those who wait in their queues are
                let in; without it they are left to the others.
        """

    def drain(self) -> None:
        """Tell whoever asks below `health` that nobody new should come; nothing else changes."""

    def end_long_polls(self) -> None:
        """End all long polls, each with its final chunk; see `Request.long_poll`."""

    def take_timeout(self, runner: object) -> bool:
        """Return whether the request that `runner` runs is to be interrupted: it now is.

        Said once, and only as long as that request is in hand.
        """

    def time(self) -> int:
        """Return the time, for `waited_since`."""

    def waited_since(self, begun: int) -> None:
        """Tell that the event loop which watches `fileno()` has just waited since `begun`.

        For `slow_request`: what had come before was there to be seen.
        """

    def flush_log(self) -> None:
        """Write the lines of the access log that wait, before the process ends."""

    def reopen_log(self, sink: Sink) -> None:
        """Go on with the access log in another place; the lines that wait stay in the old one."""

    @property
    def wakeup_fd(self) -> int:
        """For `signal.set_wakeup_fd`: an octet written here lets signal handlers run."""

    @property
    def foreign(self) -> bool:
        """Whether this process is a fork of the one that made it, and must leave it alone."""

    @property
    def finished(self) -> bool:
        """Whether it was stopped and the last connection has ended."""

@final
class Connection:
    """A connection that nobody has read from. Dropped before its end, it is reset."""

    def duplicate(self) -> tuple[int, int]:
        """Return a descriptor of its socket, which blocks, and the family of its address."""

    def begin(self) -> Any:
        """Return the address of the client, as `socket.accept` does.

        From now on this thread or greenlet works on it, and may be interrupted.
        """

    def disarm_timeout(self) -> None:
        """Tell that its handler is not to be interrupted any more."""

    def end(self, complete: bool = True) -> None:
        """Close it; if it is `complete` what was sent arrives, otherwise the client is told.

        Nobody waits for the client, which has a moment to finish as well.

        Raises:
            RuntimeError: this process is a fork of the one whose connection it is.
        """

    @property
    def number(self) -> int:
        """Its running number in its worker, as in the access log."""

    @property
    def line(self) -> str:
        """Whose it is, for people: `of 127.0.0.1:4711`."""

    @property
    def foreign(self) -> bool:
        """Whether this process is a fork of the one whose connection it is."""

    @property
    def timed_out(self) -> bool:
        """Whether the handler was too slow, and the connection was ended without it."""

    @property
    def disconnected(self) -> bool:
        """Whether the client is gone: not if it has only finished sending."""

@final
class Request:
    """A complete request. Dropped without an answer, its connection is closed."""

    @overload
    def __call__(
        self,
        status: str,
        response_headers: list[tuple[str, str]],
        exc_info: OptExcInfo | None = None,
        /,
    ) -> Callable[[bytes], object]:
        """Be `start_response` with two or three arguments, and `write` with one (PEP 3333).

        Raises:
            ValueError: a status or header that would not be valid HTTP; nothing was sent.
            TypeError: not a str, not a list of tuples of str, not bytes.
            RuntimeError: called twice without `exc_info`, or after the request was answered.
            ConnectionResetError: the client has left.
            BaseException: the one of `exc_info`, if the head was sent already.
        """
    @overload
    def __call__(self, data: bytes, /) -> object: ...
    def take_environ(self) -> dict[str, Any]:
        """Hand over the WSGI environ, once: this request, which it may hold, must not hold it.

        From now on this thread or greenlet works on it, and may be interrupted.
        """

    def expect_wait(self) -> None:
        """Tell that the application is about to wait: others shall be ready before it does."""

    def disarm_timeout(self) -> None:
        """Tell that it is not to be interrupted any more."""

    @property
    def timed_out(self) -> bool:
        """Whether the application was too slow, and its client was seen to without it."""

    @property
    def line(self) -> str:
        """Method and target, without anything that could forge a line of a log."""

    @property
    def number(self) -> int:
        """The running number of the request in its worker, as in the access log."""

    @property
    def started(self) -> bool:
        """Whether `start_response` was called."""

    @property
    def committed(self) -> bool:
        """Whether the head was sent, so that it can no longer be replaced."""

    @property
    def over(self) -> bool:
        """Whether the request was answered or given up."""

    @property
    def foreign(self) -> bool:
        """Whether this process is a fork of the one whose request it is."""

    @property
    def disconnected(self) -> bool:
        """Whether the client left before it was answered."""

    @property
    def cut(self) -> bool:
        """Whether the server has ended the connection before the answer was complete."""

    @property
    def stopping(self) -> bool:
        """Whether the server stops, and waits for this one no longer than `graceful_timeout`."""

    def finish(self, body: object) -> bool:
        """Answer with a list or tuple of bytes, head and body in one system call.

        Returns:
            `False` if `body` is anything else; nothing was done then.
        """

    def write(self, data: bytes) -> bool:
        """Send a piece of the body now; the head before it if it was not sent yet.

        An empty piece sends nothing, but looks whether the client has left.

        Returns:
            `False` if nothing that may follow would reach the client: to a HEAD, with a status that
            has no body, beyond Content-Length.
        """

    def done(self) -> None:
        """Tell that the application is through with it: it is not in hand any more."""

    def send_file(self, fd: int, offset: int, length: int) -> None:
        """Answer with `length` octets of an open file, sent by the kernel; does not wait for it."""

    def send_static(self, path: bytes) -> bool:
        """Answer as if the client had asked for `path` (percent-encoded) with GET.

        Returns:
            `False` if that is not for a published folder; nothing was done then.
        """

    def end(self) -> None:
        """End the answer."""

    def long_poll(self, final_chunk: bytes, *, missed: int = 0) -> None:
        """Leave the answer open as it is now; the request is over, and nobody works on it.

        The connection is kept, whatever the time limits are, until its client leaves, the server
        stops, or all are bidden farewell (`Reactor.end_long_polls`). It is not logged. What has no
        body (HEAD) simply ends. What the application returns is not sent.

        Args:
            farewell: the last piece of the body, if it ends by that.
            missed: milliseconds; if others were bidden farewell since then, this one is at once.

        Raises:
            ConnectionResetError: the client has left.
            RuntimeError: the request has been answered already.
            ValueError: `start_response` was not called.
        """

    def restart(self) -> bool:
        """Take back status and headers. `False` if they are on their way."""

    def abort(self) -> None:
        """Give the request up and close the connection: the answer is seen to be incomplete."""
