"""Stacks of a worker's threads: which runs which request, and stacks as lines of a profile."""

from __future__ import annotations

import re
from collections.abc import Mapping

from poorhttp.errors import visible
from poorhttp.logs.frames import SERVER_FOLDER
from poorhttp.plugins.monitor.inspection.signalling import Target, is_stopped
from poorhttp.plugins.monitor.inspection.worker.handler import ASK_SIGNAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The ends of files with the loops that call applications, and their function.
SERVE_FILES = ("poorhttp/worker/wsgi.py", "poorhttp/worker/tcp.py")
SERVE = "serve"

#: The file in which the hub of gevent waits, and names of the function.
HUB_FILE = "gevent/hub.py"
HUB = ("Hub.run", "run")

#: Files in which the event loop of asyncio waits.
LOOP_FILES = ("/selectors.py", "/asyncio/base_events.py")

#: The serve loop in a line of a profile.
SERVE_FRAME = re.compile(r"serve \(\S*poorhttp/worker/(?:wsgi|tcp)\.py(?::\d+)?\)")


def is_serve_loop(frame: Mapping[str, Any]) -> bool:
    """Tell whether a frame is that of the loop that calls the application."""
    return frame["function"] == SERVE and str(frame["file"]).endswith(SERVE_FILES)


def in_application(stack: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the frames that the serve loop has called; empty if it waits for a request."""
    frames = stack["frames"]
    for place in range(len(frames) - 1, -1, -1):
        if is_serve_loop(frames[place]):
            called = list(frames[place + 1 :])
            return called if any(frame["file"].endswith(".py") for frame in called) else []
    return []


def waits_in_server(frames: list[dict[str, Any]]) -> bool:
    """Whether the innermost frame of Python is one of the server, or of the hub of gevent.

    Or of the event loop of asyncio, which the server runs.
    """
    for frame in reversed(frames):
        if frame["file"].endswith(".py") and not frame["file"].endswith(LOOP_FILES):
            in_hub = frame["file"].endswith(HUB_FILE) and frame["function"] in HUB
            return in_hub or frame["file"].startswith(SERVER_FOLDER)
    return False


def attach_requests(worker: Target, stacks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give each stack its request, and leave out the server's frames below it.

    Returns:
        The requests in flight to which no stack belongs, or it is not known which.
    """
    requests = worker.requests()
    by_number = {request["number"]: request for request in requests}
    by_thread = {request["thread"]: request for request in requests if request["thread"]}
    unknown = []
    for stack in stacks:
        stack["state"] = worker.state(stack["thread"]) if stack["thread"] else ""
        if stack["request"]:
            number = stack["request"]["number"]
            # It may have ended since.
            blank = {"number": number, "line": "", "seconds": 0.0, "thread": 0, "id": ""}
            stack["request"] = by_number.pop(number, blank)
        elif frames := in_application(stack):
            request = by_thread.get(stack["thread"])
            if request is not None and request["number"] in by_number:
                del by_number[request["number"]]
                stack["request"], stack["frames"] = request, frames
            else:
                unknown.append((stack, frames))
        elif not stack["idle"]:
            stack["idle"] = waits_in_server(stack["frames"])
    if len(unknown) == len(by_number) == 1:
        stack, frames = unknown[0]
        _, stack["request"] = by_number.popitem()
        stack["frames"] = frames
    return list(by_number.values())


def why_silent(worker: Target) -> str:
    """Return why a worker does not answer, in words."""
    state = worker.state()
    if not state:
        return "it has ended"
    if is_stopped(worker):
        return "it is stopped (SIGSTOP, or a debugger)"
    if state == "D":
        return "it waits for the kernel, mostly for a disk"
    if not worker.handles(ASK_SIGNAL):
        return "it does not answer yet, or not any more: it starts or ends"
    return "its main thread does not come to run Python: it is in a call of C code"


def keep_requests(found: Mapping[str, int]) -> dict[str, int]:
    """Return the lines of a profile that are of requests, from the application on.

    Returns all of them if there are none.
    """
    kept: dict[str, int] = {}
    for stack, took in found.items():
        frames = stack.split(";")
        serving = [place for place, frame in enumerate(frames) if SERVE_FRAME.fullmatch(frame)]
        if serving and (inner := ";".join(frames[serving[-1] + 1 :])):
            kept[inner] = kept.get(inner, 0) + took
    return kept or dict(found)


def collapsed(found: Mapping[str, int]) -> str:
    """Return a profile as lines `OUTER;INNER MILLISECONDS`, those that took longest first.

    Names are the application's: none begins a line, or controls a terminal.
    """
    lines = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{visible(stack)} {took}\n" for stack, took in lines)
