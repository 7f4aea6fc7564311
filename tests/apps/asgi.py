"""An ASGI application that answers in the way that the path names, and a WSGI application."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from typing import Any

from tests.apps.basics import Environ, Pieces, StartResponse, say

#: What has happened, for `/events`.
EVENTS: list[str] = []

NUMBER: contextvars.ContextVar[int] = contextvars.ContextVar("NUMBER", default=0)


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer a request, or take part in the lifespan."""
    if scope["type"] == "lifespan":
        await lifespan(scope, receive, send)
        return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] == "websocket.receive":
            pass
        return
    path, query = scope["path"], scope["query_string"].decode()

    async def answer(text: str, status: int = 200) -> None:
        headers = [(b"content-type", b"text/plain"), [b"x-path", path.encode()]]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})

    if path == "/scope":
        text = repr(scope)
        scope["state"]["changed"] = scope["headers"].append((b"x", b"y"))
        await answer(text)
    elif path == "/echo":
        parts = []
        while True:
            message = await receive()
            assert message["type"] == "http.request", message
            parts.append(message["body"])
            EVENTS.append(f"got {len(b''.join(parts))}")
            if not message["more_body"]:
                break
        await answer(f"{len(b''.join(parts))} {set(b''.join(parts))}")
    elif path == "/pieces":
        for number in range(3):
            if number == 0:
                await send({"type": "http.response.start", "status": 200})
                await send({"type": "http.response.body", "more_body": True})
            piece = f"{number}\n".encode()
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        EVENTS.append("begun")
        while query and not os.path.exists(query):
            await asyncio.sleep(0.01)
        await send({"type": "http.response.body"})
        assert (await receive())["type"] == "http.disconnect"
    elif path == "/file":
        links = [b"</a.css>; rel=preload", b"</b.css>; rel=preload"]
        await send({"type": "http.response.early_hint", "links": links})
        headers = [(b"content-type", b"text/plain")]
        query, _, part = query.partition("&")
        if part:
            headers.append((b"Content-Range", f"bytes {part}".encode()))
        start = {"type": "http.response.start", "status": 206 if part else 200}
        await send({**start, "headers": iter(headers)})
        await send({"type": "http.response.pathsend", "path": query})
    elif path == "/large":
        size = int(query)
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"x" * size, "more_body": True})
        EVENTS.append("half")
        await send({"type": "http.response.body", "body": b"y" * size})
        EVENTS.append("sent")
    elif path == "/left":
        EVENTS.append("waits")
        assert (await receive())["type"] == "http.request"
        assert (await receive())["type"] == "http.disconnect"
        EVENTS.append("left")
        try:
            await answer("too late")
        except OSError as error:
            EVENTS.append(f"an OSError: {error}")
    elif path == "/events":
        await answer(repr(EVENTS))
    elif path == "/fail":
        if query == "late":
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body", "body": b"some", "more_body": True})
        raise RuntimeError(f"meant to fail: {query}")
    elif path == "/context":
        before = NUMBER.get()
        NUMBER.set(int(query))
        await asyncio.sleep(0)
        await answer(f"{before} {NUMBER.get()}")
    elif path == "/sleep":
        if query == "behind":
            await answer("all")
        EVENTS.append("sleeps")
        try:
            await asyncio.sleep(600)
        finally:
            EVENTS.append("woken")
            note("woken")
    elif path == "/passed-on":
        # Fields of another server's response.
        fields = [(b"keep-alive", b"timeout=5"), (b"Connection", b"keep-alive, Upgrade")]
        fields += [(b"upgrade", b"h2c"), (b"trailer", b"x"), (b"transfer-encoding", b"chunked")]
        fields += [(b"connection", query.encode())] if query else []
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": b"passed on"})
    elif path == "/trailers":
        await send({"type": "http.response.start", "status": 200, "trailers": True})
        await send({"type": "http.response.body", "body": b"body"})
        for number, more in ((1, True), (2, False)):
            name = b"x-%d" % number if query != "split" else b"x\r\ny"
            fields = [(name, b"\xe9")]
            await send({"type": "http.response.trailers", "headers": fields, "more_trailers": more})
    elif path == "/block":
        # The seconds are for a test that is interrupted.
        for _ in range(6_000):
            if query and os.path.exists(query):
                break
            time.sleep(0.1)
        await answer("unblocked")
    elif path == "/behind":
        await answer("all")
        # An application goes on behind its response, as frameworks' background tasks do.
        await asyncio.sleep(0)
        EVENTS.append("behind")
        while query and not os.path.exists(query):
            await asyncio.sleep(0.01)
        note("behind")
    elif path == "/answered":
        # As frameworks do: they answer with an error, and raise the exception again.
        await answer("their own page", 500)
        raise RuntimeError("meant to fail")
    else:
        await answer("asgi")


async def lifespan(scope: dict[str, Any], receive: Any, send: Any) -> None:
    assert (await receive())["type"] == "lifespan.startup"
    if os.environ.get("LIFESPAN") == "waits":
        note("waits")
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0)
            note("woken")
    scope["state"]["started"] = True
    await send({"type": "lifespan.startup.complete"})
    note("started")
    assert (await receive())["type"] == "lifespan.shutdown"
    note("stopped")
    await send({"type": "lifespan.shutdown.complete"})


def note(what: str) -> None:
    """Write what happens to the file that the environment names."""
    if name := os.environ.get("NOTES"):
        with open(name, "a") as file:
            file.write(f"{what}\n")


def wsgi(environ: Environ, start_response: StartResponse) -> Pieces:
    """Answer with the thread, and what the environ says of threads and paths."""
    main = threading.current_thread() is threading.main_thread()
    length = len(environ["wsgi.input"].read())
    paths = environ["SCRIPT_NAME"], environ["PATH_INFO"]
    return say(start_response, repr((main, *paths, length)))
