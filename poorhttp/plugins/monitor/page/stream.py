"""Server-sent events: the content of the status page, again and again, for all open pages.

Each stream is a long poll, which takes no thread. One thread asks the main process and sends to all
of them; it exists only while there are some, so a server that nobody watches sleeps.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from threading import Lock, Thread

from poorhttp import logs
from poorhttp.plugins.monitor.derived.rates import Recent
from poorhttp.plugins.monitor.page import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from poorhttp._core import Reactor
    from poorhttp.plugins.monitor.admin.model import Status

#: Seconds between two events.
INTERVAL = 2.0

#: Streams that may be open at the same time, of 64 connections. One more gets an event and ends,
#: and its browser asks again.
MOST_STREAMS = 32

#: The last event of a server that stops; after a reload, streams end without it.
STOPPED = b"event: stopped\ndata: 0\n\n"

#: Content while the main process is silent.
NO_ANSWER = "the main process does not answer"

#: Key of the environ: the reactor of the process.
REACTOR = "poorhttp.reactor"

#: Headers of all that belongs to the page.
SECURITY = [
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
]


class Events:
    """The streams of this process.

    Attributes:
        recent: documents of the last seconds.
    """

    def __init__(self) -> None:
        self.recent = Recent()
        self._lock = Lock()
        #: A thread sends events.
        self._runs = False
        #: Streams that were opened since the thread has last counted them.
        self._opened = 0
        #: Connections that were streams when the last event was sent, or may have been.
        self._streams = 0

    def open(
        self, status: Callable[[], Status], environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answer a request for events."""
        # Before the first event, which so has the order of the pushed ones.
        with self._lock:
            is_held = self._streams + self._opened < MOST_STREAMS
        headers = [
            ("Content-Type", "text/event-stream"),
            ("Cache-Control", "no-store"),
            # Has nginx pass events on at once.
            ("X-Accel-Buffering", "no"),
            *SECURITY,
        ]
        first = f"retry: {INTERVAL * 1000:.0f}\n".encode() + self._event(status)
        write = start_response("200 OK", headers)
        if not is_held:
            return [first]
        write(first)
        start_response.long_poll(STOPPED)  # type: ignore[attr-defined]
        with self._lock:
            self._opened += 1
            if not self._runs:
                self._runs = True
                arguments = (status, environ[REACTOR])
                Thread(target=self._run, args=arguments, daemon=True, name="events").start()
        return []

    def _run(self, status: Callable[[], Status], reactor: Reactor) -> None:
        """Send events until no stream is open."""
        while True:
            time.sleep(INTERVAL)
            event = self._event(status)
            with self._lock:
                opened = self._opened
            streams = reactor.push_to_long_polls(event)
            with self._lock:
                # Those that were opened meanwhile may not have been counted.
                self._streams, self._opened = streams, self._opened - opened
                if not (self._streams or self._opened):
                    self._runs = False
                    return

    def _event(self, status: Callable[[], Status]) -> bytes:
        """Return the event for the present state."""
        try:
            document = status()
        except OSError:
            return _formatted("silent", layout.trouble(NO_ANSWER))
        try:
            self.recent.add(document)
            return _formatted("content", layout.content(document, self.recent))
        except Exception as error:
            # The thread goes on: the next document may be different.
            logs.exception("the status page cannot be made", error)
            return _formatted("silent", layout.trouble("the page cannot be made; see the log"))


def _formatted(name: str, content: str) -> bytes:
    """Return an event; JSON has no line breaks, whatever the content has."""
    return f"event: {name}\ndata: {json.dumps(content)}\n\n".encode("ascii")
