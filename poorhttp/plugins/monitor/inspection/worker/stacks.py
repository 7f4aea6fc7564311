"""Stacks of all threads, greenlets and tasks of this process, and the requests that they run."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from types import FrameType

from poorhttp.logs.frames import SERVER_FOLDER
from poorhttp.worker.stop_signals import is_serve_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from greenlet import greenlet

#: Flag of the code of a coroutine function (inspect.CO_COROUTINE).
_COROUTINE = 0x80

#: Innermost frames of a stack that are told.
MOST_FRAMES = 200

#: Stacks that are told.
MOST_STACKS = 2000


def collect(frame: FrameType | None) -> list[dict[str, Any]]:
    """Return the stacks; that of the calling thread, the main one, begins at `frame`.

    Of each: `name`, `kind` (thread, greenlet or task), `thread` (native ID; 0: unknown), `request`
    (its number; 0: none), `idle` (it waits in the server's own code), `frames`, the outermost
    first: file, line, function.
    """
    ours = sys._getframe()
    found = []
    for ident, stack in sys._current_frames().items():
        name, thread = thread_name(ident)
        if stack is ours:
            name, thread = "main", os.getpid()
        begin = frame if stack is ours else stack
        found.append(describe(frames_of(begin), name or f"{ident:#x}", "thread", thread))
    for each in greenlets():
        found.append(describe(frames_of(each.gr_frame), greenlet_name(each), "greenlet", 0))
    found += [describe(stack, name, "task", 0) for name, stack in tasks()]
    # Those with requests first, as there may be too many.
    found.sort(key=lambda stack: (stack["idle"], not stack["request"]))
    return found[:MOST_STACKS]


def describe(
    stack: tuple[list[FrameType], int], name: str, kind: str, thread: int
) -> dict[str, Any]:
    """Return a stack, its frames and the number of its request, as `collect` does."""
    frames, request = stack
    return {
        "name": name,
        "kind": kind,
        "thread": thread,
        "request": request,
        "idle": not request and (not frames or is_ours(frames[-1])),
        "frames": [
            (each.f_code.co_filename, each.f_lineno or 0, qualified_name(each))
            for each in frames[-MOST_FRAMES:]
        ],
    }


def frames_of(frame: FrameType | None) -> tuple[list[FrameType], int]:
    """Return the frames of a stack, the outermost first, and the number of its request.

    The frames of a request begin where the server calls the application.
    """
    frames: list[FrameType] = []
    while frame is not None:
        if serves(frame) and (number := request_number(frame)):
            return frames[::-1], number
        frames.append(frame)
        frame = frame.f_back
    return frames[::-1], 0


def serves(frame: FrameType) -> bool:
    """Whether a frame is that of a serve loop, or of a coroutine of the server."""
    return is_serve_loop(frame) or bool(frame.f_code.co_flags & _COROUTINE and is_ours(frame))


def request_number(frame: FrameType) -> int:
    """Return the number of the request in a frame of the serve loop; 0: it has none."""
    variables = frame.f_locals
    request = variables.get("request") or variables.get("connection")
    number = 0 if request is None else request.number
    if type(variables) is dict:
        # Until Python 3.12 the frame keeps this copy, and the request would live as long.
        variables.clear()
    return number


def is_ours(frame: FrameType) -> bool:
    """Whether a frame is one of the server's own code."""
    return frame.f_code.co_filename.startswith(SERVER_FOLDER)


def qualified_name(frame: FrameType) -> str:
    """Return the name of a frame's function, with that of its class since Python 3.11."""
    return getattr(frame.f_code, "co_qualname", frame.f_code.co_name)


def greenlets() -> Iterator[greenlet]:
    """Yield the greenlets that wait; the one that runs in a thread has the stack of the thread."""
    if "greenlet" not in sys.modules:
        return
    # `isinstance` would run code of proxies.
    kind = sys.modules["greenlet"].greenlet
    for each in gc.get_objects():
        if issubclass(type(each), kind) and each.gr_frame is not None:
            yield each


def tasks() -> Iterator[tuple[str, tuple[list[FrameType], int]]]:
    """Yield the tasks of this thread's event loop that wait: name, frames, number of the request.

    The frames of a request begin where the server calls the application. The task that runs has
    the stack of the thread.
    """
    asyncio: Any = sys.modules.get("asyncio")
    loop = asyncio and asyncio._get_running_loop()
    for task in asyncio.all_tasks(loop) if loop else ():
        frames: list[FrameType] = []
        coroutine, number = task.get_coro(), 0
        while coroutine is not None and not getattr(coroutine, "cr_running", False):
            frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
            if not frames and frame is not None and serves(frame) and not number:
                number = request_number(frame)
            elif frame is not None:
                frames.append(frame)
            coroutine = getattr(coroutine, "cr_await", None) or getattr(
                coroutine, "gi_yieldfrom", None
            )
        if frames:
            yield task.get_name(), (frames, number)


def greenlet_name(which: greenlet) -> str:
    """Return a name for a greenlet, without calling methods that an application may have."""
    kind = type(which).__name__
    return "hub" if kind == "Hub" else f"{kind} {id(which):#x}"


def thread_name(ident: int) -> tuple[str, int]:
    """Return the name and native ID of a thread, if `threading` knows it; else empty and 0."""
    # Not imported here: `threading` takes the thread that imports it for the main thread.
    threading: Any = sys.modules.get("threading")
    thread = threading and threading._active.get(ident)
    return (thread.name, thread.native_id or 0) if thread else ("", 0)


def unpatched(module: str, name: str) -> Any:
    """Return a function of a module of Python's core, which gevent may have replaced there."""
    monkey: Any = sys.modules.get("gevent.monkey")
    if monkey is not None:
        return monkey.get_original(module, name)
    return getattr(sys.modules[module], name)
