"""An ASGI application that takes the steps of a script, which is in the query, and takes notes."""

from __future__ import annotations

import asyncio
import os
from ast import literal_eval
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

#: What applications have noted, by the path of the request; the lifespan notes nothing.
NOTES: dict[str, list[object]] = {}


async def app(scope: dict[str, Any], receive: Any, send: Any) -> object:
    """Take the steps of a request; of the lifespan, those that the environment names.

    Returns a value, which it should not.
    """
    if scope["type"] == "lifespan":
        await play(os.environ.get("STEPS", "[]"), scope, receive, send, [])
        return None
    path, query = scope["path"], unquote(scope["query_string"].decode())
    if path == "/notes":
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": repr(NOTES.get(query)).encode()})
        return None
    notes = NOTES[path] = []
    try:
        await play(query, scope, receive, send, notes)
    finally:
        notes.append("end")
    return 7


async def play(
    steps: str, scope: dict[str, Any], receive: Any, send: Any, notes: list[object]
) -> None:
    """Take steps: messages to send, and words.

    A message in a list is sent where it may fail: then the note says how. One in a tuple has its
    fields given as an iterator.
    """
    for step in literal_eval(steps):
        if isinstance(step, dict):
            await send(step)
        elif isinstance(step, list):
            try:
                await send(*step)
                notes.append("sent")
            except Exception as error:
                notes.append("OSError" if isinstance(error, OSError) else "error")
        elif isinstance(step, tuple):
            await send({**step[0], "headers": iter(step[0]["headers"])})
        elif step == "receive":
            notes.append(await receive())
        elif step == "nothing comes":
            with suppress(asyncio.TimeoutError):
                notes.append(await asyncio.wait_for(receive(), 0.01))
        elif step == "receive all":
            while not (message := await receive())["type"].endswith("disconnect"):
                notes.append(message)
            notes.append(message)
        elif step == "state":
            scope["state"]["key"] = scope["state"].get("key", 0) + 1
            scope["state"].setdefault("list", []).append(1)
            notes.append(scope["state"])
        elif step == "sleep":
            await asyncio.sleep(600)
        elif step == "raise":
            raise RuntimeError("meant to fail")
        elif step == "cancel":
            raise asyncio.CancelledError
        elif step == "headers":
            # But those of each request.
            own = (b"host", b"connection")
            notes += [(name, value) for name, value in scope["headers"] if name not in own]
        else:
            notes.append(scope.get(step))
