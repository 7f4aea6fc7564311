"""The options of mode `asyncio`: the event loop, and the lifespan of ASGI applications."""

from __future__ import annotations

from poorhttp.config.options.option import IN_PROCESSES, Option
from poorhttp.config.parsers import choice, integer


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
