"""The report of requests at given times: outcome, percentiles, distribution, and the course."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from loadtests.clients.load import SATURATED
from loadtests.clients.native.replay import Outcome
from loadtests.measure import disturbance, histogram
from loadtests.replay.outcomes import counts
from loadtests.reporting import percentiles
from loadtests.reporting.cells import brief
from loadtests.reporting.model import MIB, Axis, Cell, Column, Line, Lines, Part, Section, Table
from loadtests.stats.results import Results
from loadtests.store import Record

NAME = "replay"
SHARES = {"median": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
WINDOWS = 20
CALLS = 12
"""System calls that are told one by one."""
FEW = 5
"""So many connections any server closes as a request is under way, if it limits idle time."""
FEW_KINDS = 4
"""Kinds of failures that the sentence on all tells."""
COLOURS = ("#1a7fb8", "#c8452c", "#3f8f3f", "#8a5fb0")


def sections(results: Results) -> list[Section]:
    """What is told of replays: outcome, percentiles, and the distribution of times."""
    samples = [one for one in results.samples if one["experiment"] == NAME]
    if not samples:
        return []
    lines = [
        Line(one["server"], colour, percentiles.points(_times(one), one["max_us"]))
        for one, colour in zip(samples, cycle(COLOURS), strict=False)
    ]
    columns = [Column("quantity"), *(Column(one["server"]) for one in samples)]
    cells = [_cells(one) for one in samples]
    rows = [[name, *(one.get(name, "") for one in cells)] for name in cells[-1]]
    text = ["Times count from the moment at which a request is due."]
    if any(one.get("closed") for one in samples):
        text = [
            "Each connection asks again as soon as it is answered, so a pause of the server counts "
            "once for each connection, however long it is; with --rate it counts for all requests "
            "that were due meanwhile."
        ]
    text.append(
        "Answered are right answers only. `failed` are connections that failed or broke, answers "
        "with a status of 400 or more, unless the log has the same status, and requests without an "
        "answer in time. Times are those of right answers, and of what was not answered in time, "
        "as long as it was waited for."
    )
    if failed := samples[-1].get("server_failed"):
        text.append(f"What the server used is not known: {failed}.")
    if why := samples[-1].get("calls_failed"):
        text.append(f"System calls of the server were not counted: {why}.")
    if any(one["client_busy"] > SATURATED for one in samples):
        text.append("The client used its whole core, so it was the limit, not the server.")
    figure = percentiles.plot("replay-times", lines)
    parts: list[Part] = [figure, Table("replay", "", columns, rows), *_steps(samples[-1])]
    parts += _calls(samples[-1])
    closed = samples[-1].get("closed")
    title = "Requests as fast as they are answered" if closed else "Requests at their times"
    found = Section(title, text, parts, answer=_answer(samples[-1]))
    return [found, Section("While it went on", parts=_course(samples[-1]))]


def _times(sample: Record) -> Any:
    return histogram.merge([sample["times"]])


def _cells(one: Record) -> dict[str, str]:
    """What is told of a load, by quantity with its unit."""
    times, (share, cpu, pss), each = _times(one), used(one), _each(one)
    quantiles: dict[str, float | None] = {
        f"{name}, ms": histogram.quantile(times, at, one["max_us"]) / 1000
        for name, at in SHARES.items()
    } | {"longest, ms": one["max_us"] / 1000}
    due = {} if one.get("closed") else {"due": one["due"], "due, /s": one["rate"]}
    known: dict[str, float | None] = {
        **due,
        "answered": one["requests"],
        "answered, /s": answered_rate(one),
        "failed": sum(one["errors"].values()),
        **(quantiles if one["requests"] else {}),
        "client busy, % of its core": one["client_busy"] * 100,
        "server busy, % of a core": share,
        f"CPU time of the server, µs a {each}": cpu,
        "memory of the server (PSS), MiB": pss and pss * MIB,
        f"system calls of the server, a {each}": _per_request(
            one, sum(one.get("calls", {}).values())
        ),
    }
    return {name: brief(value) for name, value in known.items() if value is not None}


def _each(one: Record) -> str:
    """What was due, in the singular: request, visit, message or stream."""
    return str(one.get("what", "requests"))[:-1]


def _per_request(one: Record, calls: int) -> float | None:
    """So many calls as each request took; None if none were counted."""
    return calls / max(one["calls_requests"], 1) if calls else None


def _calls(sample: Record) -> list[Part]:
    """The most frequent system calls of the server."""
    columns = [Column("system call"), Column("a request", "", 2), Column("in all")]
    rows: list[Sequence[Cell]] = [
        [name, _per_request(sample, count), count]
        for name, count in list(sample.get("calls", {}).items())[:CALLS]
    ]
    title = f"System calls of the server: {sample['server']}"
    note = "Counted by strace, which slows the server, in a load of its own after the measured one."
    return [Table("replay-calls", title, columns, rows, note=note)] if rows else []


def windows(seconds: float, outcomes: Sequence[Outcome]) -> list[Record]:
    """What became of the requests that were due in each part of the time."""
    length = max(seconds, 1e-3) / WINDOWS
    parts: list[list[Outcome]] = [[] for _ in range(WINDOWS)]
    for one in outcomes:
        parts[min(int(one.due / 1e6 / length), WINDOWS - 1)].append(one)
    told = []
    for place, part in enumerate(parts):
        times = sorted(one.took for one in part if counts(one)) or [0]
        told.append(
            {
                "from": round(place * length, 3),
                "rate": len(part) / length,
                "right": sum(one.right for one in part) / length,
                "failed": sum(not one.right for one in part),
                "p50_us": times[len(times) // 2],
                "p99_us": times[len(times) * 99 // 100],
            }
        )
    return told


def _steps(sample: Record) -> list[Part]:
    """The requests of a chain, in their order; each path of others."""
    if "steps" not in sample:
        return []
    columns = [Column("of"), Column("answered"), Column("failed")]
    columns += [Column(share, "ms", 2, 0.001) for share in SHARES]
    rows: list[Sequence[Cell]] = []
    for one in sample["steps"]:
        times = histogram.merge([one["times"]])
        known = [histogram.quantile(times, share) for share in SHARES.values()]
        quantiles = known if times.total_count else [None] * len(known)
        rows.append([one["link"], one["answered"], one["failed"], *quantiles])
    what = sample.get("what", "paths")
    title, note = f"Beside the {what}: {sample['server']}", ""
    if what == "paths":
        title = f"By path: {sample['server']}"
    elif what == "visits":
        title = f"Requests of each visit: {sample['server']}"
        note = "The time of the first counts from when the visit is due, others' from the sending."
    return [Table("replay-steps", title, columns, rows, note=note)]


def _course(sample: Record) -> list[Part]:
    """Times and rates while the last run went on."""
    fields = [
        (Column("from", "s", 1), "from"),
        (Column("sent" if sample.get("closed") else "due", "/s", 1), "rate"),
        (Column("answered rightly", "/s", 1), "right"),
        (Column("failed"), "failed"),
        (Column("median", "ms", 2, 0.001), "p50_us"),
        (Column("p99", "ms", 2, 0.001), "p99_us"),
    ]
    columns, names = zip(*fields, strict=True)
    rows: list[list[Cell]] = [
        [str(one["from"]), *(float(one[name]) for name in names[1:])] for one in sample["windows"]
    ]
    lines = [
        Line(name, colour, [(one["from"], max(one[field], 1) / 1000) for one in sample["windows"]])
        for name, field, colour in zip(("median", "p99"), names[4:], COLOURS, strict=False)
    ]
    axes = Axis("time from the beginning", "s", low=0), Axis("time of a request", "ms", log=True)
    title = f"While it went on: {sample['server']}"
    return [
        Lines("replay-course", title, *axes, lines, steps=True),
        Table("replay-windows", title, columns, rows),
    ]


def answered_rate(one: Record) -> float:
    """Right answers per second."""
    return float(one["requests"] / max(one["seconds"], 1e-3))


def used(one: Record) -> tuple[float | None, float | None, float | None]:
    """CPU time in percent of a core and µs a request, and bytes of the server, where known."""
    cpu = one.get("server_cpu")
    if cpu is None:
        return None, None, None
    share = cpu / max(one["seconds"], 1e-3) * 100
    answers = one.get("answers", one["requests"])
    return share, cpu / answers * 1e6 if answers else None, float(one["pss"])


def _answer(sample: Record) -> str:
    busy = disturbance.warning([sample])
    share, cpu, pss = used(sample)
    server = ""
    if share is not None and pss is not None:
        each = f", {brief(cpu)} µs a {_each(sample)}," if cpu is not None else ""
        server = f" The server used {share:.0f} % of a core{each} and {brief(pss * MIB)} MiB."
    times = _times(sample)
    half, most = (
        brief(histogram.quantile(times, share, sample["max_us"]) / 1000) for share in (0.5, 0.99)
    )
    kinds = ", ".join(
        f"{count:,} × {kind}" for kind, count in [*sample["errors"].items()][:FEW_KINDS]
    )
    if rest := sum([*sample["errors"].values()][FEW_KINDS:]):
        kinds += f", and {rest:,} more"
    first, last = sample["windows"][0], sample["windows"][-1]
    course = ""
    if (
        sample.get("ramp")
        and max(first["rate"], last["rate"]) > 2 * min(first["rate"], last["rate"]) > 0
    ):
        course = " From {:,.0f} to {:,.0f} requests per second p99 went from {} to {} ms.".format(
            first["rate"], last["rate"], *(brief(one["p99_us"] / 1000) for one in (first, last))
        )
    if sample.get("unsaid", 0) > FEW:
        server += (
            f" The server closed {sample['unsaid']:,} of {sample['opened']:,} connections behind a "
            "response without saying so, and the next requests were sent again."
        )
    due, what = f"{sample['due']:,}", sample.get("what", "requests")
    were = "was" if sample["requests"] == 1 else "were"
    found = f"Of {due} {what} {sample['requests']:,} {were} answered rightly"
    if not sample["requests"]:
        found = f"None of {due} {what} was answered rightly"
    else:
        pace = brief(answered_rate(sample))
        found += f", {pace} a second, half of them within {half} ms and 99 % within {most} ms"
    if (left_out := sample.get("left_out")) is not None:
        log = f" Left out of {left_out + sample['lines']:,} lines of the log: {left_out:,}"
        course += f"{log} (other methods than GET and HEAD, 5xx, no time)." * bool(left_out)
        course += " A status that the log has counts as right, like 2xx and 3xx."
    if sample.get("server_ended"):
        busy = f"The server was gone in the end: {sample['server_failed']}. {busy}"
    return f"{busy}{found}{f'; failed: {kinds}' * bool(kinds)}.{course}{server}"
