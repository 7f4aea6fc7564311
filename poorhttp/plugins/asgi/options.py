"""The options of mode `asyncio`: the event loop, the lifespan of applications, WebSockets."""

from __future__ import annotations

from poorhttp.config.options.option import IN_PROCESSES, Option
from poorhttp.config.parsers import boolean, choice, integer, seconds, size


class Asgi:
    """Mode `asyncio` and ASGI applications."""

    GROUP = "ASGI"
    AVAILABLE = IN_PROCESSES

    asgi_loop = Option(
        choice("auto", "asyncio", "uvloop"),
        "auto",
        "Event loop of mode `asyncio`: that of Python (`asyncio`) or `uvloop`; `auto` is uvloop "
        "if it is installed.",
        metavar="LOOP",
        reason="uvloop, the extra `uvloop`, takes less time for each event. gunicorn `asgi_loop`, "
        "uvicorn `loop` (both auto), granian `loop` (auto).",
        aliases=("loop",),
    )
    asgi_lifespan = Option(
        choice("auto", "on", "off"),
        "auto",
        "Whether ASGI applications are told that the server starts and stops (lifespan protocol): "
        "`on` requires that they understand it, `auto` serves those that do not without, `off` "
        "tells none.",
        metavar="WHEN",
        reason="With `auto`, an application does not understand the protocol if it raises an "
        "exception before it receives the first message. One that is raised later, or "
        "`lifespan.startup.failed`, ends the start. gunicorn `asgi_lifespan` and uvicorn "
        "`lifespan` (auto) serve in this case too, and log nothing or a line.",
        aliases=("lifespan",),
    )
    asgi_concurrency = Option(
        integer(0, 1_000_000),
        "0",
        "Requests of ASGI applications that a worker runs at the same time, at most; 0 sets no "
        "limit.",
        metavar="N",
        reason="Others are refused with 503 and `Retry-After`, at once. `max_connections` limits "
        "connections, and `queue_timeout` refuses requests that wait while the application blocks "
        "the event loop. uvicorn `limit_concurrency` (none), granian `backpressure`.",
    )
    asgi_pathsend = Option(
        boolean,
        "on",
        "Offer ASGI applications that the server sends their files (`http.response.pathsend`).",
        reason="The server sends a file without the application, in the kernel where it can. "
        "Middleware that loses the message, as that of Gradio, needs `off`.",
    )
    websocket_max_message = Option(
        size(1, 2**30),
        "16M",
        "Bytes of the largest message of a WebSocket, decompressed, in mode `asyncio`.",
        reason="A larger one ends the WebSocket with code 1009. At most two of them wait for the "
        "application. uvicorn `ws_max_size` (16 MiB).",
        aliases=("ws-max-size",),
    )
    websocket_ping_interval = Option(
        seconds(0),
        "20",
        "Seconds between pings on a WebSocket in mode `asyncio`; 0 means none.",
        reason="Proxies close what is idle. uvicorn `ws_ping_interval` (20).",
        aliases=("ws-ping-interval",),
    )
    websocket_ping_timeout = Option(
        seconds(0.1),
        "20",
        "Seconds after a ping in which something must come of the client, or it is closed (1011).",
        reason="Time in which the application takes no messages does not count. uvicorn "
        "`ws_ping_timeout` (20).",
        aliases=("ws-ping-timeout",),
    )
    websocket_compression = Option(
        boolean,
        "on",
        "Compress messages of WebSockets in mode `asyncio` (permessage-deflate), if clients can.",
        reason="A WebSocket takes up to 70 KiB more from its first compressed message on. Messages "
        "of less than 128 bytes stay as they are. uvicorn `ws_per_message_deflate` (on).",
    )
