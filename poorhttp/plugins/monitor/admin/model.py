"""Shapes of the status document, which the main process builds and all views are rendered from.

The main process gives it to the admin process as JSON. `/-/status` is this JSON; the metrics, the
page, `poorhttp ctl` and `poorhttp top` need nothing else. Text in it is not escaped for any medium,
except request lines, which are printable ASCII (`\\xNN` and `\\n` for all other bytes).
"""

from __future__ import annotations

from poorhttp._core import WorkerStatus
from poorhttp.plugins.native import sum_figures

#: Upper bounds of the buckets of each histogram, in seconds; a last bucket has all above.
BOUNDS = WorkerStatus.BOUNDS

#: States of a worker: it loads the application; it serves; it finishes its requests and ends; it
#: serves an error page, because the application could not be loaded; a signal has stopped it.
WORKER_STATES = ("starting", "serving", "retiring", "broken", "stopped")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from poorhttp.supervisor.component import Reloads

    # What the extension module counts, `poorhttp._core.WorkerStatus`.

    class Histogram(TypedDict):
        """Durations. `counts` has one number for each bucket, not cumulative."""

        counts: list[int]
        sum: float

    class Figures(TypedDict):
        """Counters, gauges and histograms, of one worker or of a service.

        Counters of a service begin with the first main process: they outlive workers, reloads and
        upgrades. The keys are those of the table of metrics (`core/reactor/src/status/metrics.rs`);
        a key stands here if a view reads it by its name.
        """

        # Counters
        requests: int
        #: Responses by `1xx` to `5xx`.
        responses: dict[str, int]
        #: Requests that the server itself has refused, by status.
        refused: dict[str, int]
        #: Requests that `request_timeout` has ended (504).
        timed_out: int
        #: Requests whose client left before anything of the response came there (499). That of a
        #: quick request is noticed only if sending fails, and in `responses` it is counted with
        #: the status of the application then.
        departed: int
        bytes_received: int
        bytes_sent: int
        #: Connections accepted.
        accepted: int
        tls_handshakes: int
        tls_failures: int
        #: Connections of HTTP/2 that have ended because the client broke the protocol.
        http2_failures: int
        #: Streams of HTTP/2 that were reset, by `client` or `server`.
        http2_resets: dict[str, int]
        #: Connections that applications have got, to speak another protocol.
        upgrades: int
        #: Bytes of bodies and responses written to temporary files.
        spooled_bytes: int
        cache_hits: int
        cache_misses: int
        #: Seconds for which threads have waited for the interpreter.
        interpreter_wait: float
        #: How often, and for how many seconds, requests have waited for a thread, with
        #: `threads = auto`; and the same for the following.
        thread_waits: int
        thread_wait: float
        #: Threads that were `added` and `ended`.
        thread_changes: dict[str, int]
        #: How often the interpreter was found `free` and `held`.
        interpreter_looks: dict[str, int]
        # Gauges
        #: Threads that run requests.
        threads: int
        #: Requests that the application has, without those of `streaming_threads`.
        in_flight: int
        #: Responses sent in pieces for more than a second, with waits between them.
        streaming: int
        #: Those of them whose threads do not count among `threads`.
        streaming_threads: int
        #: Requests that wait for a thread or for the interpreter.
        queued: int
        #: Seconds since the oldest request in flight began.
        oldest: float
        http2_connections: int
        http2_streams: int
        #: Connections by state: reading, active, sending, idle, upgraded.
        connections: dict[str, int]
        # Histograms
        #: From the complete head to the call of the application.
        waiting: Histogram
        #: From the call to its return, or to the end of the response.
        application: Histogram
        #: From there until the kernel has the last byte; 0 for a response that is sent at once.
        sending: Histogram

    class InFlight(TypedDict):
        """A request in flight, or an upgraded connection."""

        number: int
        #: Method and target, as `GET /x`, escaped.
        line: str
        #: Seconds since it began.
        seconds: float
        #: Native thread ID; 0: unknown.
        thread: int
        #: The request ID; empty without one.
        id: str
        #: The application has its connection, to speak another protocol.
        upgraded: bool
        #: Its response streams, and its thread does not count among `threads`.
        streaming: bool

    class Finished(TypedDict):
        """A request that has ended. Times are in seconds."""

        #: Seconds since 1970.
        when: float
        line: str
        status: int
        waited: float
        application: float
        sending: float
        #: Bytes.
        sent: int
        pid: int
        number: int
        id: str

    class Refusal(TypedDict):
        """A request that the server itself has refused."""

        #: Seconds since 1970.
        when: float
        status: int
        #: As in the error log.
        reason: str
        #: Address and port, or what is known of them; empty for a Unix socket.
        client: str
        #: The request line as far as it has come, escaped and cut; of uwsgi, SCGI and FastCGI only
        #: method and target.
        line: str
        pid: int
        number: int
        #: The request ID; empty without one.
        id: str

    class AcceptQueue(TypedDict):
        """Connections that wait in the kernel until a worker accepts them."""

        #: The address.
        url: str
        waiting: int
        #: With so many, the kernel refuses others.
        limit: int

    class Worker(TypedDict):
        """A worker process."""

        pid: int
        #: Its number among the workers of its service, from 0; its successor gets the same.
        index: int
        #: One of `WORKER_STATES`.
        state: str
        #: Seconds since it was forked.
        age: float
        answers: bool
        #: All its threads have requests: it does not answer before one of these has ended.
        full: bool
        requests: int
        connections: int
        in_flight: int
        #: Seconds of the processor, of user and system.
        cpu: float
        #: Bytes; 0: unknown.
        rss: int
        pss: int
        working_on: list[InFlight]
        figures: Figures

    class Certificate(TypedDict):
        """A certificate file."""

        file: str
        #: Seconds since 1970.
        expires: float

    class Slot(TypedDict):
        """What has happened in about a minute. Counts are those of this time only."""

        #: Seconds since 1970.
        begin: float
        end: float
        requests: int
        #: Responses with 5xx.
        errors: int
        #: Bytes.
        received: int
        sent: int
        #: Workers that have died.
        died: int
        #: Resident bytes of all workers at the end; 0: the slot has not ended.
        memory: int
        #: Counts of the buckets of the histograms of `Figures`.
        waiting: list[int]
        application: list[int]
        sending: list[int]

    class Service(TypedDict):
        """A service, and its workers in all generations."""

        #: Empty if there is only one.
        name: str
        mode: str
        urls: list[str]
        target: str
        #: Of each worker at first.
        threads: int
        #: `threads = auto`.
        threads_follow_load: bool
        #: `workers = auto`.
        workers_follow_load: bool
        #: Of the last look at the workers, with `workers = auto`: requests `in_flight`, processors
        #: `used` and `idle`, the part of looks at interpreters that were `held`, for how many more
        #: workers there is `room` in memory, workers `added` and `ended` since the last reload, and
        #: whether a person has set their number, `workers_by_hand`. And `threads_by_hand`, if set.
        scaling: dict[str, float]
        #: Workers that there should be.
        wanted: int
        #: Those that serve and go on.
        alive: int
        #: Those of them that answer when asked.
        answering: int
        #: Those of the others that are `Worker.full`.
        full: int
        #: Requests that the application can have at the same time; `None`: unlimited.
        capacity: int | None
        #: Of all workers, including those that have ended.
        figures: Figures
        workers: list[Worker]
        #: Of each address; none if the kernel does not tell.
        accept_queues: list[AcceptQueue]
        #: Accepted connections with a request that waits in the kernel, because all threads of a
        #: worker have requests; 0 as long as none is full, or if the kernel does not tell.
        unread: int
        #: By reason: the worker died, was worn (`max_requests`, `max_rss`, `max_lifetime`), was
        #: killed because a signal had stopped it, had a request that could not be interrupted
        #: (timeout), or an operator asked for it. More may follow.
        restarts: dict[str, int]
        reforks: int
        #: Of the last hour, the slowest first; as the following, 20 at most.
        slowest: list[Finished]
        #: With status 500 and above, the newest first.
        errors: list[Finished]
        #: What the server itself has refused, the newest first.
        refusals: list[Refusal]
        certificates: list[Certificate]
        #: The last hour, the oldest slot first; the last slot has not ended. There is none for the
        #: time without requests.
        history: list[Slot]

    class Value(TypedDict):
        """The value of an option that is set; secrets are masked."""

        #: Empty: of all services; of a virtual host `host HOST`, behind the name of the service.
        service: str
        option: str
        value: str
        #: Where it was set, as `poorhttp.ini:3`, `--threads`, `POORHTTP_THREADS`.
        origin: str

    class PluginMetric(TypedDict):
        """A metric of a plug-in."""

        name: str
        #: `counter` or `gauge`.
        kind: str
        description: str
        #: Labels and number.
        samples: list[tuple[dict[str, str], float]]

    class Status(TypedDict):
        """The whole server at one moment."""

        version: str
        python: str
        #: Of the main process.
        pid: int
        #: Seconds since 1970.
        started: float
        now: float
        ready: bool
        #: Empty if it is.
        why_not_ready: str
        host_name: str
        #: That may be used, by the affinity and the quota of the cgroup at the start.
        cpus: int
        services: list[Service]
        reloads: Reloads
        log_lines_lost: int
        metrics: list[PluginMetric]
        configuration: list[Value]


def no_figures() -> Figures:
    """Return the figures of a service that has had no request."""
    found: Figures = sum_figures([], [])
    return found
