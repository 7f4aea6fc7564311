"""Keys and types of the status document, metrics included; refuses answers of other programs.

At the address may be another program, or another version of the server. A shape is a type, a list
with the shape of each item, or a dictionary with the shapes of members: others may be there too.
Of `EACH`, it is that of all members.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    Shape: TypeAlias = type | list[Any] | Mapping[str, Any]

#: In place of a name: all members have this shape.
EACH = "*"

HISTOGRAM: Shape = {"counts": [int], "sum": float}

FIGURES: Shape = {
    **dict.fromkeys(("requests", "timed_out", "departed", "in_flight", "queued"), int),
    **dict.fromkeys(("bytes_received", "bytes_sent", "accepted", "upgrades"), int),
    **dict.fromkeys(("tls_handshakes", "tls_failures", "spooled_bytes"), int),
    **dict.fromkeys(("cache_hits", "cache_misses"), int),
    **dict.fromkeys(("interpreter_wait", "oldest"), float),
    "responses": {f"{hundred}xx": int for hundred in range(1, 6)},
    "refused": {EACH: int},
    "connections": {EACH: int},
    **dict.fromkeys(("waiting", "application", "sending"), HISTOGRAM),
}

REQUEST: Shape = {
    **dict.fromkeys(("number", "thread"), int),
    **dict.fromkeys(("line", "id"), str),
    "seconds": float,
    "upgraded": bool,
}

FINISHED: Shape = {
    **dict.fromkeys(("when", "waited", "application", "sending"), float),
    **dict.fromkeys(("line", "id"), str),
    **dict.fromkeys(("status", "sent", "pid", "number"), int),
}

REFUSAL: Shape = {
    "when": float,
    **dict.fromkeys(("status", "pid", "number"), int),
    **dict.fromkeys(("reason", "client", "line", "id"), str),
}

WORKER: Shape = {
    **dict.fromkeys(("pid", "index", "requests", "connections", "in_flight", "rss", "pss"), int),
    "state": str,
    **dict.fromkeys(("age", "cpu"), float),
    **dict.fromkeys(("answers", "full"), bool),
    "working_on": [REQUEST],
    "figures": FIGURES,
}

SLOT: Shape = {
    **dict.fromkeys(("begin", "end"), float),
    **dict.fromkeys(("requests", "errors", "received", "sent", "died", "memory"), int),
    "waiting": [int],
    "application": [int],
    "sending": [int],
}

SERVICE: Shape = {
    **dict.fromkeys(("name", "mode", "target"), str),
    "urls": [str],
    **dict.fromkeys(("threads", "wanted", "alive", "answering", "full", "unread", "reforks"), int),
    # A number, or null.
    "capacity": object,
    "figures": FIGURES,
    "workers": [WORKER],
    "accept_queues": [{"url": str, "waiting": int, "limit": int}],
    "restarts": {EACH: int},
    "slowest": [FINISHED],
    "errors": [FINISHED],
    "refusals": [REFUSAL],
    "certificates": [{"file": str, "expires": float}],
    "history": [SLOT],
}

#: The status document; `admin/model.py` has the types.
STATUS: Shape = {
    **dict.fromkeys(("version", "python", "why_not_ready", "host_name"), str),
    **dict.fromkeys(("pid", "log_lines_lost"), int),
    **dict.fromkeys(("started", "now"), float),
    "ready": bool,
    "services": [SERVICE],
    # The last one may be null.
    "reloads": {"succeeded": int, "failed": int, "last": object},
    # Samples are pairs of labels and a number.
    "metrics": [{**dict.fromkeys(("name", "kind", "description"), str), "samples": [list]}],
    "configuration": [dict.fromkeys(("service", "option", "value", "origin"), str)],
}

#: What the document of each version has.
ANY_STATUS: Shape = {"version": str, "pid": int, "services": [{}]}

#: A reload of `reloads`.
RELOAD: Shape = {"when": float, "result": str}

#: The answer to a command.
ANSWER: Shape = {"ok": bool, "message": str}


def missing(value: object, shape: Shape, place: str = "") -> str:
    """Return the place of the first part of a value that has another shape; empty: there is none.

    Args:
        value: as `json.loads` returns it.
        shape: what it should have.
        place: of the value, such as `services[0]`.
    """
    if isinstance(shape, list):
        if not isinstance(value, list):
            return place
        found = (missing(each, shape[0], f"{place}[{at}]") for at, each in enumerate(value))
        return next(filter(None, found), "")
    if isinstance(shape, type):
        # Whole numbers of JSON are numbers with decimals, too.
        return "" if isinstance(value, (int, float) if shape is float else shape) else place
    if not isinstance(value, dict):
        return place
    for name, each in shape.items():
        for member in value if name == EACH else (name,):
            inner = f"{place}.{member}" if place else member
            if member not in value:
                return inner
            if found_in := missing(value[member], each, inner):
                return found_in
    return ""
