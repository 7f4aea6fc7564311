"""Checks that an answer has the types of the status document; another program's is refused.

At the address may be another program, or another version of the server. A shape is a type, a list
with the shape of each item, a tuple with that of each of so many items, what may be missing
(`Nullable`), or a dictionary with the shapes of members: others may be there too. Of `EACH`, it is
that of all members. `float` is a number of seconds.
"""

from __future__ import annotations

import json
import math

from poorhttp.plugins.monitor.admin.model import BOUNDS, no_figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    Shape: TypeAlias = type | list[Any] | tuple[Any, ...] | Mapping[str, Any] | "Nullable"

#: Digits of a whole number, at most: counters have 64 bits.
MOST_DIGITS = 20

#: Seconds, at most, also before 1970: every calendar has the years of these times.
MOST_SECONDS = 1e11

#: Lists and objects in each other, at most.
DEEPEST = 50


class Nullable:
    """A shape that may also be null."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape


#: In place of a name: all members have this shape.
EACH = "*"

#: How many durations were in each bucket of a histogram.
COUNTS: Shape = (int,) * (len(BOUNDS) + 1)

HISTOGRAM: Shape = {"counts": COUNTS, "sum": float}


def _shape_of(value: object) -> Shape:
    """Return the shape of a value of figures; the labels of numbers may be any."""
    if not isinstance(value, dict):
        return type(value)
    return HISTOGRAM if "counts" in value else {EACH: int}


FIGURES: Shape = {
    **{key: _shape_of(value) for key, value in no_figures().items()},
    "responses": {f"{hundred}xx": int for hundred in range(1, 6)},
}

REQUEST: Shape = {
    **dict.fromkeys(("number", "thread"), int),
    **dict.fromkeys(("line", "id"), str),
    "seconds": float,
    "upgraded": bool,
    "streaming": bool,
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
    **dict.fromkeys(("waiting", "application", "sending"), COUNTS),
}

SERVICE: Shape = {
    **dict.fromkeys(("name", "mode", "target"), str),
    "urls": [str],
    **dict.fromkeys(("threads", "wanted", "alive", "answering", "full", "unread", "reforks"), int),
    **dict.fromkeys(("threads_follow_load", "workers_follow_load"), bool),
    "scaling": {EACH: float},
    "capacity": Nullable(int),
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

#: A reload of `reloads`.
RELOAD: Shape = {"when": float, "result": str}

#: The status document; `admin/model.py` has the types.
STATUS: Shape = {
    **dict.fromkeys(("version", "python", "why_not_ready", "host_name"), str),
    "cpus": int,
    **dict.fromkeys(("pid", "log_lines_lost"), int),
    **dict.fromkeys(("started", "now"), float),
    "ready": bool,
    "services": [SERVICE],
    "reloads": {"succeeded": int, "failed": int, "last": Nullable(RELOAD)},
    # Samples are pairs of labels and a number.
    "metrics": [{**dict.fromkeys(("name", "kind", "description"), str), "samples": [list]}],
    "configuration": [dict.fromkeys(("service", "option", "value", "origin"), str)],
}

#: What the document of each version has.
ANY_STATUS: Shape = {"version": str, "pid": int, "services": [{}]}

#: The answer to a command.
ANSWER: Shape = {"ok": bool, "message": str}


def read(text: bytes) -> dict[str, Any] | None:
    """Return the object that a text in JSON is; `None`: it is none, or no server would send it.

    A number is finite and has no more than `MOST_DIGITS`, and no more than `DEEPEST` objects and
    lists are in each other, so whoever shows or prints it need not expect anything else.
    """
    try:
        found = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and not _is_deeper(found, DEEPEST) else None


def _whole(text: str) -> int:
    if len(text.lstrip("-")) > MOST_DIGITS:
        raise ValueError(text)
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _is_deeper(value: object, most: int) -> bool:
    """Whether more than `most` objects and lists are in each other."""
    if not isinstance(value, (dict, list)):
        return False
    members = value.values() if isinstance(value, dict) else value
    return most == 0 or any(_is_deeper(each, most - 1) for each in members)


def missing(value: object, shape: Shape, place: str = "") -> str:
    """Return the place of the first part of a value that has another shape; empty: there is none.

    Args:
        value: as `json.loads` returns it.
        shape: what it should have.
        place: of the value, such as `services[0]`.
    """
    if isinstance(shape, Nullable):
        return "" if value is None else missing(value, shape.shape, place)
    if isinstance(shape, (list, tuple)):
        if not isinstance(value, list):
            return place
        if isinstance(shape, tuple) and len(value) != len(shape):
            return place
        found = (missing(each, shape[0], f"{place}[{at}]") for at, each in enumerate(value))
        return next(filter(None, found), "")
    if isinstance(shape, type):
        return "" if _is_of(value, shape) else place
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


def _is_of(value: object, kind: type) -> bool:
    """Whether a value has a type, which for a number is no truth value."""
    if kind is float:
        # Whole numbers of JSON are numbers with decimals, too.
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return False
        return abs(value) <= MOST_SECONDS
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
