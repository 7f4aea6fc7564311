"""All metrics, those that workers count taken from the reactor; their samples in a status document.

What workers count is declared in `core/reactor/src/status/metrics.rs`, everything else here. The
text formats, StatsD, OpenTelemetry and the table in docs/reference/metrics.md are made from both.
Labels have few values, and never one of a client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from poorhttp.plugins.monitor.admin.model import WORKER_STATES
from poorhttp.plugins.native import worker_metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

    from poorhttp.plugins.monitor.admin.model import (
        Histogram,
        PluginMetric,
        Service,
        Status,
        Worker,
    )

    Kind: TypeAlias = Literal["counter", "gauge", "histogram", "info"]

    #: A number, or the durations of a histogram.
    Value: TypeAlias = float | Histogram

    #: Labels and value. No value: the sample is left out.
    Labelled: TypeAlias = tuple[Mapping[str, str], Value | None]

#: Begins each name.
PREFIX = "poorhttp_"

#: The states of a worker; while several have the same number, the first stands for it.
PRECEDENCE = {"serving": 0, "broken": 1, "stopped": 2, "starting": 3, "retiring": 4}


class Family:
    """A metric.

    Attributes:
        name: without `PREFIX`, and without the `_total` of a counter.
        kind: its type.
        description: a sentence for those who read a dashboard.
        labels: names of its labels, besides `service`.
        read: returns its samples from the server, a service or a worker.
        deprecated: it only remains for those who use it.
    """

    def __init__(
        self,
        name: str,
        kind: Kind,
        description: str,
        read: Callable[[Any], Value | None] | Callable[[Any], Iterable[Labelled]],
        labels: Sequence[str] = (),
        *,
        deprecated: bool = False,
    ) -> None:
        self.name = name
        self.kind: Kind = kind
        self.description = description
        self.labels = labels
        self.read: Callable[[Any], Any] = read
        self.deprecated = deprecated

    @property
    def unit(self) -> str:
        """`seconds` or `bytes`; empty if the name ends with neither."""
        last = self.name.rpartition("_")[2]
        return last if last in ("seconds", "bytes") else ""

    @property
    def full_name(self) -> str:
        """The name in the text format of Prometheus."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"

    def values(self, source: object, labels: Mapping[str, str]) -> Iterator[Labelled]:
        """Return the values from a server, a service or a worker, which has these labels."""
        found = self.read(source)
        if not self.labels:
            yield labels, found
            return
        for own, value in found:
            yield {**labels, **own}, value


def _figure(name: str) -> Callable[[Service], Value]:
    return lambda service: service["figures"][name]  # type: ignore[literal-required]


def _by(label: str, name: str, keys: Sequence[str] = ()) -> Callable[[Service], Iterable[Labelled]]:
    """Return a function that reads the dict `name` of the figures: all keys, or only `keys`."""

    def read(service: Service) -> Iterable[Labelled]:
        found: Mapping[str, float] = service["figures"][name]  # type: ignore[literal-required]
        return [({label: key}, value) for key, value in found.items() if not keys or key in keys]

    return read


def _last_reload(what: Callable[[Any], float]) -> Callable[[Status], float | None]:
    def read(status: Status) -> float | None:
        last = status["reloads"]["last"]
        return None if last is None else what(last)

    return read


def _utilization(service: Service) -> float | None:
    capacity = service["capacity"]
    # While workers are replaced, more than `capacity` may be in flight.
    return min(1.0, service["figures"]["in_flight"] / capacity) if capacity else None


def _open_connections(service: Service) -> float:
    return sum(service["figures"]["connections"].values())


def _by_state(service: Service) -> Iterable[Labelled]:
    states = [worker["state"] for worker in service["workers"]]
    return [({"state": state}, states.count(state)) for state in WORKER_STATES]


def _scaling(service: Service, label: str, *names: str) -> Iterable[Labelled]:
    return [({label: name}, service["scaling"].get(name)) for name in names]


def _memory(service: Service) -> float | None:
    sizes = [worker["pss"] for worker in service["workers"]]
    return sum(sizes) if sizes and all(sizes) else None


def _queues(service: Service, what: Literal["waiting", "limit"]) -> Iterable[Labelled]:
    return [({"address": each["url"]}, each[what]) for each in service["accept_queues"]]


def _certificates(service: Service) -> Iterable[Labelled]:
    return [({"file": each["file"]}, each["expires"]) for each in service["certificates"]]


def _oldest(worker: Worker) -> float:
    return worker["figures"]["oldest"]


#: Of the server as a whole.
SERVER = (
    Family(
        *("info", "info", "The version of the server."),
        lambda status: [({"version": status["version"], "python": status["python"]}, 1)],
        ("version", "python"),
    ),
    Family(
        *(
            "ready",
            "gauge",
            "1 if the server is ready for new clients, as at /-/ready; otherwise 0.",
        ),
        lambda status: int(status["ready"]),
    ),
    Family(
        *("start_time_seconds", "gauge", "When the server was started, in seconds since 1970."),
        lambda status: status["started"],
    ),
    Family(
        *("reloads", "counter", "Reloads by their result: succeeded or failed."),
        lambda status: [
            ({"result": result}, status["reloads"][result]) for result in ("succeeded", "failed")
        ],
        ("result",),
    ),
    Family(
        *("last_reload_successful", "gauge", "1 if the last reload succeeded, otherwise 0."),
        _last_reload(lambda last: int(last["result"].startswith("reloaded"))),
    ),
    Family(
        "last_reload_timestamp_seconds",
        "gauge",
        "When the last reload ended, in seconds since 1970.",
        _last_reload(lambda last: last["when"]),
    ),
    Family(
        *("lost_log_lines", "counter", "Log lines that could not be written."),
        lambda status: status["log_lines_lost"],
    ),
)

#: Of each service, what is not counted by workers: by the name of the counted metric behind which
#: they are shown; empty: before all.
FOUND: Mapping[str, Sequence[Family]] = {
    "": (
        Family(
            *("workers_wanted", "gauge", "Workers that should run."),
            lambda service: service["wanted"],
        ),
        Family(
            *("workers_alive", "gauge", "Workers that serve and are not about to end."),
            lambda service: service["alive"],
        ),
        Family(
            *("workers_answering", "gauge", "Of these, the workers that answer when asked."),
            lambda service: service["answering"],
        ),
        Family(
            "workers_look",
            "gauge",
            "With `workers = auto`, what the last look at the workers has found: requests "
            "in_flight, processors used and idle, the part of looks that found the interpreter "
            "held, room for more workers in memory.",
            lambda service: _scaling(service, "found", "in_flight", "used", "idle", "held", "room"),
            ("found",),
        ),
        Family(
            "workers_changes",
            "counter",
            "Workers that were added and that have ended because of the load, since the reload.",
            lambda service: _scaling(service, "change", "added", "ended"),
            ("change",),
        ),
        Family(
            *("workers_by_state", "gauge", "Worker processes by their state."),
            _by_state,
            ("state",),
        ),
        Family(
            "worker_restarts",
            "counter",
            "Workers that were replaced, by the reason: died, worn (max_requests and similar "
            "limits), stopped (by a signal, and killed), timeout, asked.",
            lambda service: [
                ({"reason": key}, value) for key, value in service["restarts"].items()
            ],
            ("reason",),
        ),
        Family(
            *("reforks", "counter", "How often all workers were replaced by forks of one of them."),
            lambda service: service["reforks"],
        ),
        Family(
            "proportional_memory_bytes",
            "gauge",
            "Memory of all workers, with each shared page divided among the processes that share "
            "it (PSS).",
            _memory,
        ),
    ),
    "requests_queued": (
        Family(
            "requests_unread",
            "gauge",
            "Requests that wait in the kernel on accepted connections while a worker is full; 0 "
            "while none is.",
            lambda service: service["unread"],
        ),
        Family(
            "accept_queue",
            "gauge",
            "Connections that wait in the kernel until a worker accepts them, by address.",
            lambda service: _queues(service, "waiting"),
            ("address",),
        ),
        Family(
            "accept_queue_limit",
            "gauge",
            "Connections that may wait in the kernel (backlog); the kernel refuses more.",
            lambda service: _queues(service, "limit"),
            ("address",),
        ),
    ),
    "oldest_request_seconds": (
        Family(
            "capacity",
            "gauge",
            "Requests that the application can work on at the same time.",
            lambda service: service["capacity"],
        ),
        Family(
            *("utilization", "gauge", "Requests in flight divided by the capacity, from 0 to 1."),
            _utilization,
        ),
        Family(*("connections", "gauge", "Connections that are open."), _open_connections),
    ),
    "connections_by_state": (
        Family(
            "upgraded",
            "gauge",
            "Connections that speak another protocol (WebSocket).",
            lambda service: service["figures"]["connections"]["upgraded"],
        ),
    ),
    "tls_handshake_failures": (
        Family(
            "tls_certificate_expiry_seconds",
            "gauge",
            "When a certificate expires, in seconds since 1970.",
            _certificates,
            ("file",),
        ),
    ),
}


def _with_counted() -> Iterator[Family]:
    """Return the metrics of a service: those that workers count, and `FOUND`."""
    yield from FOUND[""]
    for kind, key, name, label, shown, help_text in worker_metrics():
        read: Callable[[Any], Any] = _by(label, key, shown) if label else _figure(key)
        deprecated = help_text.startswith("Deprecated ")
        labels = (label,) if label else ()
        yield Family(name, kind, help_text, read, labels, deprecated=deprecated)
        yield from FOUND.get(name, ())


#: Of each service.
SERVICE = tuple(_with_counted())

#: Of each worker. The successor of a worker has the same number, and begins at 0.
WORKER = (
    Family(
        *("worker_info", "info", "The process of a worker."),
        lambda worker: [({"pid": str(worker["pid"])}, 1)],
        ("pid",),
    ),
    Family(
        *("worker_age_seconds", "gauge", "Time since the worker was forked."),
        lambda worker: worker["age"],
    ),
    Family(
        *("worker_answering", "gauge", "1 if the worker answers when asked, otherwise 0."),
        lambda worker: int(worker["answers"]),
    ),
    Family(
        *("worker_requests", "counter", "Requests that have begun in the worker."),
        lambda worker: worker["requests"],
    ),
    Family(
        *("worker_requests_in_flight", "gauge", "Requests that its application is working on."),
        lambda worker: worker["in_flight"],
    ),
    Family(
        "worker_oldest_request_seconds",
        "gauge",
        "Time since its oldest request in flight began; 0 if there is none.",
        _oldest,
    ),
    Family(
        *("worker_connections", "gauge", "Connections that the worker has open."),
        lambda worker: worker["connections"],
    ),
    Family(
        *("worker_cpu_seconds", "counter", "Processor time of the worker, user and system."),
        lambda worker: worker["cpu"],
    ),
    Family(
        *("worker_resident_memory_bytes", "gauge", "Memory of the worker (RSS)."),
        lambda worker: worker["rss"] or None,
    ),
    Family(
        "worker_proportional_memory_bytes",
        "gauge",
        "Memory of the worker, with each shared page divided among the processes that share it "
        "(PSS).",
        lambda worker: worker["pss"] or None,
    ),
)

FAMILIES = (*SERVER, *SERVICE, *WORKER)


class Sample:
    """A value at the moment of the status document.

    Attributes:
        labels: with printable values.
        value: a number, or the durations of a histogram.
        begun: since when a counter or a histogram counts, in seconds since 1970.
    """

    __slots__ = ("begun", "labels", "value")

    def __init__(self, labels: Mapping[str, str], value: Value, begun: float) -> None:
        self.labels = labels
        self.value = value
        self.begun = begun

    @property
    def number(self) -> float:
        """The value of anything but a histogram."""
        assert not isinstance(self.value, dict)
        return self.value

    @property
    def durations(self) -> Histogram:
        """The value of a histogram."""
        assert isinstance(self.value, dict)
        return self.value


def collect(status: Status) -> list[tuple[Family, list[Sample]]]:
    """Return the metrics that have samples, and these: each combination of labels once."""
    begun = status["started"]
    services = [(service, _labels(service)) for service in status["services"]]
    workers = [
        # Logs and titles count workers from 1.
        (worker, {**labels, "worker": str(worker["index"] + 1)}, status["now"] - worker["age"])
        for service, labels in services
        for worker in _one_of_each_number(service["workers"])
    ]
    levels: list[tuple[Sequence[Family], Sequence[tuple[object, Mapping[str, str], float]]]] = [
        (SERVER, [(status, {}, begun)]),
        (_of_plugins(status), [(status, {}, begun)]),
        (SERVICE, [(service, labels, begun) for service, labels in services]),
        (WORKER, workers),
    ]
    found = []
    for families, sources in levels:
        for family in families:
            samples: dict[tuple[str, ...], Sample] = {}
            for source, labels, since in sources:
                for known, value in family.values(source, labels):
                    if value is not None:
                        shown = {name: printable(text) for name, text in known.items()}
                        key = tuple(shown.values())
                        samples.setdefault(key, Sample(shown, value, since))
            if samples:
                found.append((family, list(samples.values())))
    return found


def _of_plugins(status: Status) -> list[Family]:
    """Return the metrics of plug-ins of others, which have the main process as their source."""
    families = {each.name: each for each in map(_of_plugin, status["metrics"]) if each is not None}
    return list(families.values())


def _of_plugin(metric: PluginMetric) -> Family | None:
    """Return a metric of a plug-in; `None`: it has no samples now."""
    samples = metric["samples"]
    if not samples:
        return None
    labels = sorted({label for own, _ in samples for label in own})
    letters = (each if each.isascii() and each.isalnum() else "_" for each in metric["name"])
    name = f"plugin_{''.join(letters)}"
    kind: Kind = "counter" if metric["kind"] == "counter" else "gauge"
    if labels:
        return Family(name, kind, printable(metric["description"]), lambda _: samples, labels)
    return Family(name, kind, printable(metric["description"]), lambda _: samples[0][1])


def printable(text: str) -> str:
    """Return `text` with control characters replaced, so that it cannot control a terminal."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _labels(service: Service) -> Mapping[str, str]:
    return {"service": service["name"]} if service["name"] else {}


def _one_of_each_number(workers: Iterable[Worker]) -> list[Worker]:
    """Return one worker of each number: while one is replaced, two have the same."""
    found: dict[int, Worker] = {}
    for worker in sorted(workers, key=_precedence):
        found.setdefault(worker["index"], worker)
    return [found[index] for index in sorted(found)]


def _precedence(worker: Worker) -> tuple[int, float]:
    return PRECEDENCE.get(worker["state"], len(PRECEDENCE)), worker["age"]
