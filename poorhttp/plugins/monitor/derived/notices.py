"""Warnings for operators, computed from the status document: what is out of order."""

from __future__ import annotations

from collections.abc import Iterator

from poorhttp.plugins.monitor.derived import units
from poorhttp.plugins.monitor.derived.rates import Recent, added, quantile, queue_length

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Service, Status

#: Seconds of which recent responses and waits are judged.
RECENT = 300.0

#: Seconds after which a request in flight is named.
LONG = 10.0

#: Part of recent responses that may be errors, and seconds that requests may wait for a thread.
MOST_ERRORS, MOST_WAITING = 0.01, 0.1

#: Seconds of the oldest request after which nobody expects that a taken thread is free soon.
SOON = 1.0

#: Part of a processor that a worker has which computes all the time.
BUSY = 0.9

#: Recent errors that are not worth a notice.
FEW_ERRORS = 2

#: Seconds before the end of a certificate.
EXPIRES_SOON = 14 * 86_400.0


def notices(status: Status, recent: Recent) -> list[str]:
    """Return sentences without a full stop, the most urgent first; no text of them is escaped.

    Args:
        status: the document.
        recent: documents of the last seconds, of which it is the last.
    """
    found = [] if status["ready"] else [f"not ready: {status['why_not_ready']}"]
    several = len(status["services"]) > 1
    for service in status["services"]:
        name = f"{service['name']}: " if several else ""
        found += [f"{name}{text}" for text in _of_service(service, recent, status["now"])]
    last = status["reloads"]["last"]
    if last is not None and not last["result"].startswith("reloaded"):
        ago = units.age(status["now"] - last["when"])
        found.append(f"the last reload, {ago} ago, failed: {last['result']}")
    if lost := status["log_lines_lost"]:
        found.append(f"{units.count(lost)} log lines were lost")
    return found


def _of_service(service: Service, recent: Recent, now: float) -> Iterator[str]:
    wanted, answering, full = service["wanted"], service["answering"], service["full"]
    if answering + full < wanted:
        yield f"{answering} of {wanted} workers answer" + (f", and {full} are full" if full else "")
    for worker in service["workers"]:
        if worker["state"] == "broken":
            yield (
                f"worker {worker['pid']} serves an error page: the application cannot be loaded, "
                "the error log has the reason"
            )
        elif worker["state"] == "stopped":
            yield f"worker {worker['pid']} was stopped by a signal"
    minutes = [slot for slot in service["history"] if slot["end"] > now - RECENT]
    if died := sum(slot["died"] for slot in minutes):
        what = "a worker has" if died == 1 else f"{died} workers have"
        yield f"{what} died in the last minutes: the error log has the reason and the requests"
    yield from _of_capacity(service)
    for worker in service["workers"]:
        longest = max(
            (each for each in worker["working_on"] if not (each["upgraded"] or each["streaming"])),
            key=lambda each: each["seconds"],
            default=None,
        )
        if longest is not None and longest["seconds"] >= LONG:
            yield (
                f"worker {worker['pid']} has worked on {longest['line']} for "
                f"{units.seconds(longest['seconds'])}: its stack shows where "
                f"(poorhttp ctl stacks {worker['pid']})"
            )
    used = [recent.cpu(worker["pid"]) or 0.0 for worker in service["workers"]]
    if busy := sum(each >= BUSY for each in used):
        what = "a worker uses" if busy == 1 else f"{busy} workers use"
        yield (
            f"{what} a whole processor, which all threads of a worker share: more workers help if "
            "there are more processors; more threads do not"
        )
    requests = sum(slot["requests"] for slot in minutes)
    errors = sum(slot["errors"] for slot in minutes)
    if errors > max(FEW_ERRORS, MOST_ERRORS * requests):
        part = units.percent(min(1.0, errors / max(1, requests)))
        yield f"{part} of the responses of the last minutes are errors (5xx)"
    waiting = quantile(added(slot["waiting"] for slot in minutes), 0.9)
    if waiting is not None and waiting > MOST_WAITING:
        yield (
            f"a tenth of the last minutes' requests waited longer than {units.seconds(waiting)} "
            "for a thread: there are too few threads or workers, or the application is too slow"
        )
    for certificate in service["certificates"]:
        left = certificate["expires"] - now
        if left <= 0:
            yield f"the certificate {certificate['file']} has expired"
        elif left < EXPIRES_SOON:
            yield f"the certificate {certificate['file']} expires in {units.age(left)}"


def _of_capacity(service: Service) -> Iterator[str]:
    """Yield that no thread is free, if others wait or have to expect that."""
    figures, capacity = service["figures"], service["capacity"]
    if not capacity or figures["in_flight"] < capacity:
        return
    threads = "the only thread that runs" if capacity == 1 else f"all {capacity} threads that run"
    taken = f"{threads} requests {'is' if capacity == 1 else 'are'} taken"
    if waiting := queue_length(service):
        yield f"{taken}, and {waiting} more wait: see what the workers work on"
    elif figures["oldest"] >= SOON:
        yield (
            f"{taken}, for up to {units.seconds(figures['oldest'])}, and others have to wait: see "
            "what the workers work on"
        )
