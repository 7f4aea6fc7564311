"""Formats the results of inspections, stacks and growth of the heap, as text for a terminal.

Control characters are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from poorhttp.errors import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Ways in which stacks were taken, in words.
HOW = {
    "python": "",
    "py-spy": "by py-spy",
    "faulthandler": "by faulthandler",
    "": "no stacks",
}

#: States of a thread (proc(5)) that say more than its stack.
STATES = {"R": "computes", "D": "waits for the kernel", "T": "stopped", "t": "stopped"}


def stacks(result: Mapping[str, Any]) -> str:
    """Return the stacks of workers; idle threads are only counted."""
    return "\n".join("\n".join(_stacks_of(worker)) + "\n" for worker in result["workers"])


def _stacks_of(worker: Mapping[str, Any]) -> Iterator[str]:
    yield _title(worker, HOW.get(worker["how"], worker["how"]))
    idle = 0
    for stack in worker["stacks"]:
        if stack["idle"]:
            idle += 1
            continue
        yield ""
        request = stack["request"]
        words = [stack["kind"], stack["name"]]
        if stack["thread"]:
            words.append(f"({stack['thread']})")
        if state := STATES.get(stack["state"]):
            words.append(state)
        if request:
            words.append("in" if state else "runs")
            words.append(_request(request))
        yield visible(f"  {' '.join(words)}")
        for frame in stack["frames"]:
            yield visible(f"    {frame['function']}  {frame['file']}:{frame['line']}")
    for request in worker["requests"]:
        yield visible(f"  no stack is known of {_request(request)}")
    if idle:
        yield ""
        yield f"  {idle} idle {'thread' if idle == 1 else 'threads'}, those of the server included"


def heap(result: Mapping[str, Any]) -> str:
    """Return what has grown in workers."""
    return "\n".join("\n".join(_heap_of(worker)) + "\n" for worker in result["workers"])


def _heap_of(worker: Mapping[str, Any]) -> Iterator[str]:
    memory = [f"{name} {_size(worker[name.lower()])}" for name in ("RSS", "PSS")]
    yield _title(worker, ", ".join(memory))
    rows: Sequence[Mapping[str, Any]] = worker["rows"]
    since = worker["since"]
    if not worker["how"]:
        return
    if since is None:
        yield "  what there is; what has grown is told the next time"
    else:
        yield f"  what has changed in {since:.0f} s" if rows else f"  unchanged for {since:.0f} s"
    if rows:
        yield f"  {'objects':>10} {'grew':>9} {'size':>10} {'grew':>10}"
    for row in rows:
        grew, size_grew = "", ""
        if since is not None:
            grew, size_grew = f"{row['grew']:+}", _size(row["size_grew"], sign=True)
        # The size of most objects is not known.
        size = _size(row["size"]) if row["size"] or row["size_grew"] else ""
        numbers = f"{row['count']:>10} {grew:>9} {size:>10} {size_grew if size else '':>10}"
        yield visible(f"  {numbers}  {row['what']}")


def _title(worker: Mapping[str, Any], more: str) -> str:
    name = f" [{worker['service']}]" if worker["service"] else ""
    text = f"worker {worker['index'] + 1}{name}, process {worker['pid']}"
    return visible(", ".join(filter(None, [text, more, worker["note"]])))


def _request(request: Mapping[str, Any]) -> str:
    text = f"request {request['number']} {request['line']}".rstrip()
    if request["seconds"]:
        text += f" for {request['seconds']:.1f} s"
    if request["id"]:
        text += f" ({request['id']})"
    return text


def _size(number: float, *, sign: bool = False) -> str:
    plus = "+" if sign and number > 0 else ""
    if abs(number) < 1024:
        return f"{plus}{number:.0f} B"
    units = ("KiB", "MiB", "GiB")
    power = min(len(units), (int(abs(number)).bit_length() - 1) // 10)
    return f"{plus}{number / 1024**power:.1f} {units[power - 1]}"
