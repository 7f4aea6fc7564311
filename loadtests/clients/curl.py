"""A client of libcurl: requests at their moments by HTTPS or HTTP/2, event streams, WebSockets.

A client in Python, for a few thousand requests a second: how busy it was tells whether it was the
limit.
"""

from __future__ import annotations

import os
import select
import selectors
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from loadtests.clients.load import KINDS, counted
from loadtests.clients.native.replay import Outcome, Request, Seen, step
from loadtests.errors import LabError
from loadtests.measure import histogram

PATIENCE = 30.0
"""Seconds for what is unanswered behind the last moment."""
STREAMS = 100
"""Requests at once on a connection of HTTP/2, unless the server allows fewer."""
RECEIVE = 65536


def _curl() -> Any:
    try:
        return import_module("pycurl")
    except ImportError:
        raise LabError("this load needs libcurl for Python: pip install pycurl") from None


@dataclass
class Sent:
    """A request or message, when it was due and when its last event came, by time.monotonic()."""

    due: float
    request: Request = field(default_factory=Request)
    number: int = 0
    last: float = 0.0
    rest: bytes = b""


class Client:
    """What all of these loads share: outcomes, options of libcurl, waiting for sockets and moments.

    Attributes:
        closing: what is closed at the end: a server that is stopped waits for no stream.
    """

    def __init__(self, moments: Sequence[float], core: int | None) -> None:
        self.curl = _curl()
        if core is not None:
            os.sched_setaffinity(0, {core})
        self.errors, self.octets, self.outcomes = Counter[str](), 0, list[Outcome]()
        self.times = histogram.record([])
        self.selector, self.closing = selectors.EpollSelector(), ExitStack()
        self._due, self._lasts, self._answered = deque(moments), moments[-1], 0

    def run(self) -> tuple[Seen, list[dict[str, Any]]]:
        """Sends all, and tells what became of them, and of what else such a load has."""
        self._used, self.begun = time.process_time(), time.monotonic()
        self.over = self.begun + self._lasts
        with self.closing:
            steps = self._run()
            return self.seen(), steps

    def _run(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def set(self, handle: Any, url: str, **more: Any) -> None:
        """Sets the usual options of a handle, and more by their names."""
        usual = {"URL": url, "PROXY": "", "IPRESOLVE": self.curl.IPRESOLVE_V4}
        for name, value in {**usual, "SSL_VERIFYPEER": 0, "SSL_VERIFYHOST": 0, **more}.items():
            handle.setopt(getattr(self.curl, name), value)

    def due(self) -> list[float]:
        """Moments that have come."""
        now, come = time.monotonic(), []
        while self._due and self.begun + self._due[0] <= now:
            come.append(self.begun + self._due.popleft())
        return come

    def goes_on(self, waiting: int) -> bool:
        """Whether something is due, or waited for not too long."""
        return bool(self._due or (waiting and time.monotonic() < self.over + PATIENCE))

    def ready(self, until: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Sockets that are ready, at the latest when something is due, or at this time."""
        until = min(until, self.begun + self._due[0] if self._due else self.over + PATIENCE)
        # Milliseconds of epoll_wait would be seen in the times.
        select.select([self.selector.fileno()], [], [], max(until - time.monotonic(), 0))
        return self.selector.select(0)

    def note(self, sent: Sent, kind: str = "", *, answered: bool = True, status: int = 0) -> None:
        """The outcome of one: `kind` of the error, if there was one."""
        took = round((time.monotonic() - sent.due) * 1e6)
        self.errors[kind] += bool(kind)
        due, what = round((sent.due - self.begun) * 1e6), status or KINDS.index(kind)
        self.outcomes.append(Outcome(due, took, int(not kind), sent.number, what))
        self._answered += answered
        if answered or kind == "timeout":
            self.times.record_value(max(took, 1))

    def seen(self) -> Seen:
        seconds = time.monotonic() - self.begun
        longest = max((one.took for one in self.outcomes), default=0)
        cpu = time.process_time() - self._used
        load = counted(
            self._answered, seconds, self.octets, self.errors, cpu, max_us=float(longest)
        )
        return Seen(load, self.times, self._answered, self.outcomes)


class Transfers(Client):
    """Requests, each at its moment; of `events` streams the first event is the answer.

    By HTTP/1.1 there are at most so many connections, with one request at a time; by `h2` so many
    connections, with streams. Streams of events go on until the last moment.
    """

    def __init__(
        self,
        base: str,
        requests: Sequence[Request],
        moments: Sequence[float],
        connections: int,
        core: int | None,
        *,
        h2: bool = False,
        events: bool = False,
    ) -> None:
        super().__init__(moments, core)
        self._base, self._h2, self._events = base, h2, events
        self._requests = deque(enumerate(requests))
        self._room = STREAMS if h2 else connections
        self._wakes = [float("inf")] * (connections if h2 else 1)
        self._multis = [self._multi(number, connections) for number in range(len(self._wakes))]
        self._active = [dict[Any, Sent]() for _ in self._multis]
        self._idle: list[Any] = []
        self.gaps = histogram.record([])
        self.closing.callback(self._close)

    def _multi(self, number: int, connections: int) -> Any:
        multi = self.curl.CurlMulti()
        multi.setopt(self.curl.M_SOCKETFUNCTION, partial(self._watch, multi))
        multi.setopt(self.curl.M_TIMERFUNCTION, partial(self._timer, number))
        multi.setopt(self.curl.M_MAX_TOTAL_CONNECTIONS, 1 if self._h2 else connections)
        multi.setopt(self.curl.M_MAXCONNECTS, 1 if self._h2 else connections)
        return multi

    def _watch(self, multi: Any, what: int, fd: int, *_: object) -> None:
        wanted = {self.curl.POLL_IN: 1, self.curl.POLL_OUT: 2, self.curl.POLL_INOUT: 3}.get(what)
        if fd in self.selector.get_map():
            self.selector.unregister(fd)
        if wanted:
            self.selector.register(fd, wanted, multi)

    def _timer(self, number: int, milliseconds: int) -> None:
        after = milliseconds / 1e3 if milliseconds >= 0 else float("inf")
        self._wakes[number] = time.monotonic() + after

    def _close(self) -> None:
        for multi, active in zip(self._multis, self._active, strict=True):
            for handle in active:
                multi.remove_handle(handle)
            multi.close()

    def _run(self) -> list[dict[str, Any]]:
        waiting = deque[Sent]()
        while self.goes_on(len(waiting) + self._unanswered()):
            for due in self.due():
                place, request = self._requests.popleft()
                waiting.append(Sent(due, request, place))
            while waiting:
                number = min(range(len(self._active)), key=lambda n: len(self._active[n]))
                if len(self._active[number]) >= self._room:
                    break
                self._begin(number, waiting.popleft())
            for key, mask in self.ready(min(self._wakes)):
                # What one socket does may end another.
                if key.fd in self.selector.get_map():
                    key.data.socket_action(key.fd, mask)
            now = time.monotonic()
            for number, multi in enumerate(self._multis):
                if self._wakes[number] <= now:
                    self._wakes[number] = float("inf")
                    multi.socket_action(self.curl.SOCKET_TIMEOUT, 0)
                self._end(number, multi)
        left = [one for active in self._active for one in active.values() if not one.last]
        for one in (*left, *waiting):
            self.note(one, "timeout", answered=False)
        return [step("further events", self.gaps.total_count, 0, self.gaps)] * self._events

    def _unanswered(self) -> int:
        return sum(not one.last for active in self._active for one in active.values())

    def _begin(self, number: int, sent: Sent) -> None:
        handle = self._idle.pop() if self._idle else self.curl.Curl()
        handle.reset()
        request, version = sent.request, "1_1"
        if self._h2:
            version = "2TLS" if self._base.startswith("https") else "2_PRIOR_KNOWLEDGE"
        self.set(
            handle,
            self._base + request.target,
            PATH_AS_IS=1,
            PIPEWAIT=int(self._h2),
            HTTP_VERSION=getattr(self.curl, f"CURL_HTTP_VERSION_{version}"),
            **({"POSTFIELDS": request.body} if request.body else {}),
            CUSTOMREQUEST=request.method,
            NOBODY=request.method == "HEAD",
            HTTPHEADER=[*(f"{name}: {value}" for name, value in request.headers), "Expect:"],
            WRITEFUNCTION=partial(self._take, sent),
        )
        self._active[number][handle] = sent
        self._multis[number].add_handle(handle)

    def _take(self, sent: Sent, data: bytes) -> None:
        self.octets += len(data)
        if not self._events:
            return
        *whole, sent.rest = (sent.rest + data.replace(b"\r\n", b"\n")).split(b"\n\n")
        for _ in whole:
            now = time.monotonic()
            if sent.last:
                self.gaps.record_value(max(round((now - sent.last) * 1e6), 1))
            else:
                self.note(sent)
            sent.last = now

    def _end(self, number: int, multi: Any) -> None:
        queued = 1
        while queued:
            queued, right, wrong = multi.info_read()
            for handle in right:
                sent = self._active[number].pop(handle)
                status = handle.getinfo(self.curl.RESPONSE_CODE)
                spoken = handle.getinfo(self.curl.INFO_HTTP_VERSION)
                good = status < 400 or status == sent.request.status
                if self._h2 and spoken != self.curl.CURL_HTTP_VERSION_2:
                    raise LabError(f"{self._base} does not speak HTTP/2")
                if not sent.last and not (good and self._events):
                    self.note(sent, "" if good else "status", status=status)
                elif not sent.last:
                    self.note(sent, "read", answered=False)
                self._give_back(multi, handle)
            for handle, code, _ in wrong:
                sent = self._active[number].pop(handle)
                if not sent.last:
                    self.note(sent, self._kind(code), answered=False)
                self._give_back(multi, handle)

    def _kind(self, code: int) -> str:
        kinds = {
            self.curl.E_COULDNT_CONNECT: "connect",
            self.curl.E_SSL_CONNECT_ERROR: "connect",
            self.curl.E_SEND_ERROR: "write",
            self.curl.E_OPERATION_TIMEDOUT: "timeout",
        }
        return kinds.get(code, "read")

    def _give_back(self, multi: Any, handle: Any) -> None:
        multi.remove_handle(handle)
        self._idle.append(handle)


class Messages(Client):
    """WebSocket messages, each at its moment, on connections in turns; a message comes back."""

    def __init__(
        self,
        url: str,
        text: str,
        moments: Sequence[float],
        connections: int,
        core: int | None,
        *,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(moments, core)
        self._text, self._failed = text, 0
        self._fields = [f"{name}: {value}" for name, value in headers]
        self._handshakes = histogram.record([])
        self._opened = deque[tuple[Any, deque[Sent]]]()
        for _ in range(connections):
            self._open(url)

    def _open(self, url: str) -> None:
        handle, begun = self.curl.Curl(), time.monotonic()
        options = {"CONNECT_ONLY": 2, "HTTPHEADER": self._fields, "TIMEOUT": int(PATIENCE)}
        self.set(handle, url, **options)
        try:
            handle.perform()
        except self.curl.error as error:
            self._failed += 1
            if not self._opened:
                raise LabError(f"{url}: no WebSocket: {error.args[1]}") from None
            return
        self._handshakes.record_value(max(round((time.monotonic() - begun) * 1e6), 1))
        sent = deque[Sent]()
        self._opened.append((handle, sent))
        self.closing.callback(handle.close)
        socket = handle.getinfo(self.curl.ACTIVESOCKET)
        self.selector.register(socket, selectors.EVENT_READ, (handle, sent))

    def _run(self) -> list[dict[str, Any]]:
        while self.goes_on(sum(len(sent) for _, sent in self._opened)):
            for due in self.due():
                self._send(Sent(due))
            for key, _ in self.ready(float("inf")):
                self._receive(*key.data)
        for _, sent in self._opened:
            for one in sent:
                self.note(one, "timeout", answered=False)
        return [step("handshake", self._handshakes.total_count, self._failed, self._handshakes)]

    def _send(self, one: Sent) -> None:
        if not self._opened:
            self.note(one, "connect", answered=False)
            return
        handle, sent = self._opened[0]
        self._opened.rotate(-1)
        try:
            handle.ws_send(self._text)
            sent.append(one)
        except (BlockingIOError, self.curl.error):
            self.note(one, "write", answered=False)

    def _receive(self, handle: Any, sent: deque[Sent]) -> None:
        control = self.curl.WS_PING | self.curl.WS_PONG | self.curl.WS_CLOSE
        try:
            while True:
                data, meta = handle.ws_recv(RECEIVE)
                self.octets += len(data)
                if meta.flags & self.curl.WS_CLOSE:
                    break
                whole = not meta.bytesleft and not meta.flags & (control | self.curl.WS_CONT)
                if whole and sent:
                    self.note(sent.popleft())
        except BlockingIOError:
            return
        except self.curl.error:
            pass
        self.selector.unregister(handle.getinfo(self.curl.ACTIVESOCKET))
        self._opened.remove((handle, sent))
        while sent:
            self.note(sent.popleft(), "read", answered=False)
