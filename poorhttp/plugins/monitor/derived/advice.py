"""How many workers and threads a server needs by its last hour, and the memory they cost.

By Little's law as many requests are in the application at the same time as come in a second, times
the seconds that one takes. The busiest minute counts, and half as many again as a reserve.
"""

from __future__ import annotations

import math

from poorhttp.errors import visible
from poorhttp.plugins.monitor.derived import units
from poorhttp.plugins.monitor.derived.rates import added, quantile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    from poorhttp.plugins.monitor.admin.model import Service, Status

    class Advice(TypedDict):
        """What to set for a service; no settings if too little is known of it."""

        service: str
        settings: dict[str, str]
        #: Sentences with a full stop.
        why: list[str]
        #: Bytes that the settings need more than the present ones; negative: less.
        memory: int


#: Requests of an hour from which on something can be said.
ENOUGH = 1000

#: How many times the busiest minute must fit.
RESERVE = 1.5

#: The part of a processor from which on a worker gets company: its threads share one interpreter.
FULL = 0.7

#: The fewest threads that are advised: with fewer, one long request holds up the others.
LEAST = 4

#: Bytes of a thread that waits (docs/guides/memory.md).
THREAD = 40_000


def advice(status: Status) -> list[Advice]:
    """Return what each service should be set to."""
    return [_of_service(service, status["cpus"]) for service in status["services"]]


def _of_service(service: Service, cpus: int) -> Advice:
    made: Advice = {"service": service["name"], "settings": {}, "why": [], "memory": 0}
    minutes = [slot for slot in service["history"] if slot["end"] - slot["begin"] >= 1]
    requests = sum(slot["requests"] for slot in minutes)
    workers = [worker for worker in service["workers"] if worker["requests"]]
    counted = sum(worker["requests"] for worker in workers)
    times = service["figures"]["application"]
    if service["mode"] == "gevent":
        made["why"].append("In mode gevent there is no number of threads.")
    if requests < ENOUGH or counted < ENOUGH or not any(times["counts"]):
        made["why"].append(
            f"There were {units.count(requests)} requests in the last hour: fewer than {ENOUGH} "
            "say nothing."
        )
        return made
    computes = sum(worker["cpu"] for worker in workers) / counted
    takes = max(computes, times["sum"] / sum(times["counts"]))
    busiest = max(slot["requests"] / (slot["end"] - slot["begin"]) for slot in minutes)
    at_once, processors = busiest * takes, busiest * computes
    made["why"] += [
        f"In the busiest minute {units.rate(busiest)} requests came in a second; one takes "
        f"{units.seconds(takes)} in the application, and {units.seconds(computes)} of a processor.",
        f"So {at_once:.1f} are in the application at once, on {processors:.2f} processors; this "
        f"server may use {cpus}.",
    ]
    if RESERVE * processors > cpus:
        made["why"].append("That is no reserve: another machine is needed.")
    single = service["mode"] in ("single", "forking")
    needed = math.ceil(RESERVE * (at_once if single else processors / FULL))
    most = max(1, needed if single and takes > 2 * computes else min(needed, cpus))
    if single and takes > 2 * computes and needed > 2 * cpus:
        made["settings"]["mode"] = "threading"
        made["why"].append("Its requests wait for most of the time: threads are cheaper for that.")
        single, most = False, max(1, min(math.ceil(RESERVE * processors / FULL), cpus))
    if service["mode"] != "single" or "mode" in made["settings"]:
        made["settings"]["min_workers" if service["workers_follow_load"] else "workers"] = str(most)
    before = after = 0
    follows = service["threads_follow_load"]
    if not single and service["mode"] != "gevent":
        # Beyond that many, one is computing all the time.
        useful = math.ceil(1.2 * takes / computes) if computes else 4096
        threads = max(LEAST, min(math.ceil(RESERVE * at_once / most), useful))
        made["settings"]["max_threads" if follows else "threads"] = str(threads)
        before, after = service["wanted"] * service["threads"], most * threads
        waited = quantile(added(slot["waiting"] for slot in minutes), 0.99)
        made["why"].append(
            f"One request of a hundred has waited for {units.seconds(waited)} for a thread."
        )
    sizes = [worker["pss"] or worker["rss"] for worker in workers]
    worker_size = sum(sizes) // len(sizes)
    made["memory"] = (most - service["wanted"]) * worker_size + (after - before) * THREAD
    return made


def text(status: Status) -> str:
    """Return the text of `ctl advise`."""
    found = ""
    for each in advice(status):
        name = f" for {visible(each['service'])}" if each["service"] else ""
        found += "".join(f"{option} = {value}\n" for option, value in each["settings"].items())
        found += f"{'Why' if each['settings'] else 'No advice'}{name}: {' '.join(each['why'])}\n"
        if each["settings"]:
            amount = units.octets(abs(each["memory"]))
            than = "less than now" if each["memory"] < 0 else "more than now"
            found += f"Memory: {amount} {than}, of all workers.\n"
        found += "\n"
    return found.rstrip("\n") + "\n"
