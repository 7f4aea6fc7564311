"""An ASGI application whose WebSockets do what their paths name."""

from __future__ import annotations

import asyncio
from typing import Any

#: What has happened, for `/events`.
EVENTS: list[str] = []

#: Tasks of applications that have returned.
TASKS: list[asyncio.Future[None]] = []

PAGE = b"""<!doctype html><title>-</title><script>
const socket = new WebSocket(`ws://${location.host}/echo`, ["unknown", "chat"]);
const text = "\\u00fc".repeat(100000);
const note = [];
socket.onopen = () => { note.push(socket.protocol, socket.extensions); socket.send(text); };
socket.onmessage = event => { note.push(event.data === text); socket.close(4001, "enough"); };
socket.onclose = event => { note.push(event.code, event.wasClean); document.title = note.join(); };
</script>"""


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer a request, or take a WebSocket."""
    if scope["type"] == "lifespan":
        raise ValueError("not known")
    path, query = scope["path"], scope["query_string"].decode()
    if scope["type"] == "http":
        if path == "/event":
            EVENTS.append(query)
        kind, body = (b"text/html", PAGE) if path == "/page" else (b"text/plain", b"")
        body = repr(EVENTS).encode() if path == "/events" else body or b"http"
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    assert scope["type"] == "websocket"
    assert await receive() == {"type": "websocket.connect"}
    if path == "/refused":
        await send({"type": "websocket.close"})
        EVENTS.append(str(await receive()))
        return
    if path == "/denied":
        start = {"status": 401, "headers": [(b"www-authenticate", b"x")]}
        await send({"type": "websocket.http.response.start", **start})
        more = {"body": b"who ", "more_body": True}
        await send({"type": "websocket.http.response.body", **more})
        await send({"type": "websocket.http.response.body", "body": b"are you?"})
        return
    if path == "/silent":
        return
    if path == "/fails":
        raise RuntimeError("meant to fail before")
    if path == "/left":
        EVENTS.append("waits")
        EVENTS.append(str(await receive()))
        try:
            await send({"type": "websocket.accept"})
        except OSError as error:
            EVENTS.append(f"an OSError: {error}")
        return
    if path == "/split":
        await send({"type": "websocket.accept", "headers": [(b"a", b"b\r\nc: d")]})
    chosen = "chat" if "chat" in scope["subprotocols"] else None
    shown = [[b"x-path", path.encode()]]
    await send({"type": "websocket.accept", "subprotocol": chosen, "headers": shown})
    try:
        await opened(path, query, scope, receive, send)
    except OSError as error:
        EVENTS.append(f"an OSError: {error}")
        raise


async def keep_sending(send: Any) -> None:
    try:
        while True:
            await send({"type": "websocket.send", "bytes": b"x" * 12_000_000})
    except OSError as error:
        EVENTS.append(f"an OSError: {error}")


async def opened(path: str, query: str, scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Use a WebSocket that was accepted."""
    if path in ("/", "/echo"):
        while (message := await receive())["type"] == "websocket.receive":
            await send({**message, "type": "websocket.send"})
        EVENTS.append(f"left {message['code']} {message['reason']}".rstrip())
    elif path == "/scope":
        await send({"type": "websocket.send", "text": repr(scope)})
    elif path == "/close":
        code, _, reason = query.partition(",")
        await send({"type": "websocket.close", "code": int(code), "reason": reason})
        EVENTS.append(str(await receive()))
        await send({"type": "websocket.send", "text": "too late"})
    elif path == "/raise":
        raise RuntimeError("meant to fail")
    elif path == "/large":
        await send({"type": "websocket.send", "bytes": b"x" * int(query)})
        EVENTS.append("sent")
        await receive()
    elif path == "/returns":
        # While another task waits for room.
        TASKS.append(asyncio.ensure_future(keep_sending(send)))
        while not TASKS[-1].done() and "full" not in EVENTS:
            await asyncio.sleep(0)
            EVENTS.append("full")
    elif path == "/slow":
        while "go" not in EVENTS:
            await asyncio.sleep(0.01)
        sizes = []
        while (message := await receive())["type"] == "websocket.receive":
            sizes.append(len(message["bytes"]))
            if not sizes[-1]:
                await send({"type": "websocket.send", "text": f"{len(sizes)} {sum(sizes)}"})
    elif path == "/stays":
        messages = []
        while (message := await receive())["type"] == "websocket.receive":
            messages.append(message["text"])
        EVENTS.append(f"left {message['code']} behind {messages}")
        if query:
            with open(query, "a") as file:
                file.write(f"{EVENTS[-1]}\n")
    elif path == "/tasks":
        # Another task sends, and this one is cancelled while it receives.
        other = asyncio.ensure_future(send({"type": "websocket.send", "text": "other"}))
        try:
            message = await asyncio.wait_for(receive(), 0.01)
        except asyncio.TimeoutError:
            message = await receive()
        await send({"type": "websocket.send", "text": message["text"]})
        await other
    elif path == "/turns":
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        await receive()
        other = asyncio.ensure_future(count())
        for _ in range(int(query) - 1):
            await receive()
        other.cancel()
        await send({"type": "websocket.send", "text": f"{turns:9}"})
    elif path == "/wrong":
        await send({"type": query, "text": 7})
