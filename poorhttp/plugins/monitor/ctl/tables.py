"""Tables and texts for terminals: no character of a client or a file can control one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from poorhttp.errors import visible
from poorhttp.plugins.monitor.derived.rates import quantile, queue_length
from poorhttp.plugins.monitor.derived.scaling import threads_sentence, workers_sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Finished, Histogram, Service, Status

#: Rows of slow, failed and refused requests below the services.
MOST_FINISHED = 5

#: Columns whose texts are aligned at the left.
LEFT = ("service", "mode", "state", "request", "id", "answers", "when", "client", "reason")


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return lines with aligned columns; columns that are empty in all rows are left out."""
    cells = [[visible(text) for text in row] for row in rows]
    if not cells:
        return ""
    shown = [place for place in range(len(names)) if any(row[place] for row in cells)]
    heads = [names[place].upper() for place in shown]
    lines = [heads, *([row[place] for place in shown] for row in cells)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(shown))]
    return "".join(
        "  ".join(
            text.ljust(width) if names[shown[place]] in LEFT else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        + "\n"
        for line in lines
    )


def status(document: Status) -> str:
    """Return the text of `ctl status`."""
    ready = "ready" if document["ready"] else f"not ready: {document['why_not_ready']}"
    reloads = document["reloads"]
    lines = [
        f"poorhttp {document['version']} (Python {document['python']}) on {document['host_name']}: "
        f"{ready}",
        f"process {document['pid']}, for {period(document['now'] - document['started'])}; "
        f"{reloads['succeeded']} reloads, {reloads['failed']} failed",
    ]
    last = reloads["last"]
    if last is not None:
        lines.append(f"last reload, {ago(last['when'], document)}: {last['result']}")
    if document["log_lines_lost"]:
        lines.append(f"{document['log_lines_lost']} log lines were lost")
    text = "".join(f"{visible(line).rstrip()}\n" for line in lines)
    columns = (
        *("service", "mode", "workers", "answering", "in flight", "capacity", "queued"),
        *("oldest", "connections", "requests", "5xx", "p50", "p99"),
    )
    text += "\n" + table(columns, map(_service, document["services"]))
    for each in document["services"]:
        name = f"{each['name']}: " if each["name"] else ""
        text += f"\n{visible(name + each['target'])} at {visible(', '.join(each['urls']))}\n"
        if each["full"]:
            full = f"{each['full']} of {each['wanted']} workers are full"
            text += f"{full}: all their threads run requests, and they answer when one has ended\n"
        for how_many in filter(None, (workers_sentence(each), threads_sentence(each))):
            text += f"{how_many}\n"
        for queue in each["accept_queues"]:
            if queue["waiting"]:
                full = ": it is full" if queue["waiting"] > queue["limit"] else ""
                waiting = f"{queue['waiting']} connections wait to be accepted"
                text += f"{visible(queue['url'])}: {waiting}, of {queue['limit']}{full}\n"
        if each["unread"]:
            text += f"{each['unread']} requests on accepted connections wait to be read\n"
        for certificate in each["certificates"]:
            rest = certificate["expires"] - document["now"]
            when = f"expires in {period(rest)}" if rest > 0 else f"has expired {period(-rest)} ago"
            text += f"{visible(certificate['file'])}: the certificate {when}\n"
    text += _finished("Slowest requests of the last hour", "slowest", document)
    return text + _finished("Last errors", "errors", document) + _refusals(document)


def workers(document: Status) -> str:
    """Return the text of `ctl workers`."""
    columns = (
        *("pid", "service", "worker", "state", "age", "answers", "requests", "in flight"),
        *("connections", "cpu", "rss", "pss"),
    )
    return table(
        columns,
        (
            (
                str(worker["pid"]),
                service["name"],
                str(worker["index"] + 1),
                worker["state"],
                period(worker["age"]),
                "yes" if worker["answers"] else "full" if worker["full"] else "no",
                str(worker["requests"]),
                str(worker["in_flight"]),
                str(worker["connections"]),
                f"{worker['cpu']:.1f} s",
                size(worker["rss"]),
                size(worker["pss"]),
            )
            for service in document["services"]
            for worker in service["workers"]
        ),
    )


def requests(document: Status) -> str:
    """Return the text of `ctl requests`, the oldest first."""
    found = [
        (request, worker, service)
        for service in document["services"]
        for worker in service["workers"]
        for request in worker["working_on"]
    ]
    found.sort(key=lambda item: -item[0]["seconds"])
    if not found:
        return "no request is in flight\n"
    return table(
        ("for", "pid", "service", "number", "id", "request"),
        (
            (
                seconds(request["seconds"]),
                str(worker["pid"]),
                service["name"],
                str(request["number"]),
                request["id"],
                request["line"]
                + (" (upgraded)" if request["upgraded"] else "")
                + (" (streaming)" if request["streaming"] else ""),
            )
            for request, worker, service in found
        ),
    )


def seconds(number: float) -> str:
    """Return a duration with three digits or more: `1.25 ms`, `12.8 s`, `3600 s`."""
    if number <= 0:
        return "0 s"
    if number < 1:
        return f"{number * 1000:.3g} ms"
    return f"{number:.3g} s" if number < 100 else f"{number:.0f} s"


def period(number: float) -> str:
    """Return a long duration in its two largest units: `2 d 3 h`, `5 min 7 s`."""
    rest = int(max(0.0, number))
    parts: list[str] = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if rest >= length or (parts and len(parts) < 2) or (unit == "s" and not parts):
            parts.append(f"{rest // length} {unit}")
            rest %= length
        if len(parts) == 2:
            break
    return " ".join(parts)


def size(number: int) -> str:
    """Return a number of bytes in MiB; empty if it is unknown."""
    return f"{number / (1 << 20):.1f} MiB" if number else ""


def ago(when: float, document: Status) -> str:
    """Return how long ago a time was."""
    return f"{period(document['now'] - when)} ago"


def _service(each: Service) -> tuple[str, ...]:
    figures, capacity = each["figures"], each["capacity"]
    return (
        each["name"],
        each["mode"],
        f"{each['alive']}/{each['wanted']}",
        str(each["answering"]) + (f" + {each['full']} full" if each["full"] else ""),
        str(figures["in_flight"]),
        "" if capacity is None else str(capacity),
        str(queue_length(each)),
        seconds(figures["oldest"]) if figures["oldest"] else "",
        str(sum(figures["connections"].values())),
        str(figures["requests"]),
        str(figures["responses"]["5xx"]),
        _quantile(figures["application"], 0.5),
        _quantile(figures["application"], 0.99),
    )


def _quantile(histogram: Histogram, part: float) -> str:
    found = quantile(histogram["counts"], part)
    return seconds(found) if found else ""


def _finished(title: str, key: str, document: Status) -> str:
    columns = (
        *("when", "service", "pid", "number", "status", "waited", "application", "sending"),
        *("id", "request"),
    )
    found: list[tuple[Finished, str]] = [
        (each, service["name"])
        for service in document["services"]
        for each in (service["slowest"] if key == "slowest" else service["errors"])
    ]
    order = (lambda item: -_total(item[0])) if key == "slowest" else (lambda item: -item[0]["when"])
    found.sort(key=order)
    rows = table(
        columns,
        (
            (
                ago(each["when"], document),
                name,
                str(each["pid"]),
                str(each["number"]),
                str(each["status"]),
                seconds(each["waited"]),
                seconds(each["application"]),
                seconds(each["sending"]),
                each["id"],
                each["line"],
            )
            for each, name in found[:MOST_FINISHED]
        ),
    )
    return f"\n{title}:\n{rows}" if rows else ""


def _refusals(document: Status) -> str:
    found = [
        (each, service["name"]) for service in document["services"] for each in service["refusals"]
    ]
    found.sort(key=lambda item: -item[0]["when"])
    rows = table(
        ("when", "service", "pid", "number", "status", "client", "id", "reason", "request"),
        (
            (
                ago(each["when"], document),
                name,
                str(each["pid"]),
                str(each["number"]),
                str(each["status"]),
                each["client"],
                each["id"],
                each["reason"],
                each["line"],
            )
            for each, name in found[:MOST_FINISHED]
        ),
    )
    return f"\nLast refusals by the server itself:\n{rows}" if rows else ""


def _total(each: Finished) -> float:
    return each["waited"] + each["application"] + each["sending"]
