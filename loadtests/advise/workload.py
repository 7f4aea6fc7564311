"""What `advise` asks the application for: requests for paths, recorded requests, or a Locust file.

Recorded are an access log (Common, Combined or ours in JSON), JSON Lines, or HAR.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from loadtests.clients import locust
from loadtests.clients.connection import BODILESS
from loadtests.clients.native import replay
from loadtests.clients.native.replay import Request, Seen
from loadtests.errors import LabError
from loadtests.measure import histogram

SEED = 8
Entry: TypeAlias = "tuple[float | None, Request | None]"
"""When, and the request; None for what is not recorded, or cannot be sent again."""
MOST = 10_000
"""Requests that are taken from a file."""
MINUTE = 60
OF_THE_CONNECTION = frozenset(
    ("connection", "content-length", "transfer-encoding", "keep-alive", "upgrade", "te", "expect")
)
"""Header fields that our client sets itself, or that it does not speak."""

_LINE = re.compile(
    r'\S+ \S+ .*?\[(?P<time>[^\]]*)\] "(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}|-) \S+'
    r'(?: "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)")?'
)
_REQUEST = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP/\d\.\d")
_TARGET = re.compile(r"[/*][\x21-\x7e]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True)
class Workload:
    """Requests in their order, again from the first; or `locustfile`, and what its users request.

    `rate`: how many a second, 0 if nothing is known of that.
    """

    requests: Sequence[Request]
    words: str
    rate: float = 0.0
    locustfile: Path | None = None

    @property
    def first(self) -> Request:
        """What is sent to see whether a server answers: the first whose answer can have a body."""
        bodies = (one for one in self.requests if one.method != "HEAD")
        return next(bodies, self.requests[0] if self.requests else Request())

    def drive(self, port: int, warm: float, seconds: float, connections: int, rate: float) -> Seen:
        """Sends them; from any core, as the server may use all.

        Locust has as many users as there would be connections and counts when all are there; it
        cannot send by the clock.
        """
        if not self.locustfile:
            asked = self.requests
            return replay.drive(port, seconds, connections, asked, rate=rate, seed=SEED, warm=warm)
        if reason := locust.missing():
            raise LabError(reason)
        url = f"http://127.0.0.1:{port}"
        load = locust.own(self.locustfile, url, connections, seconds)
        return Seen(load, histogram.record([]), load.requests)


def from_locust(file: Path) -> Workload:
    """The user's own Locust file."""
    if not file.is_file():
        raise LabError(f"{file}: there is no such file")
    return Workload([], f"Locust with {file.name}", locustfile=file)


def from_paths(paths: Sequence[str], option: str = "--target") -> Workload:
    """GET of each path in turns; `option` is what they come from."""
    for path in paths:
        if not path.startswith("/") or not path.isascii() or set(path) & set(" \r\n\t"):
            raise LabError(f"{option} {path!r}: begins with / and is written as in a request")
    shown = " ".join(paths[:3]) + (" …" if len(paths) > 3 else "")
    return Workload([Request(path) for path in paths], f"GET {shown}")


def recorded(file: Path, *, at_its_rate: bool = False) -> Workload:
    """The requests of a file, whose kind is seen from what it holds; of very many every n-th.

    Raises LabError, with the line, for what cannot be understood.
    """
    entries = _entries(file)
    rate, when = _busiest(file, entries) if at_its_rate else (0.0, "")
    requests = [request for _, request in entries if request is not None]
    left_out = len(entries) - len(requests)
    if not requests:
        why = f"; {left_out:,} were left out: failures, and bodies that were not recorded"
        raise LabError(f"{file}: holds no request that could be sent again{why * bool(left_out)}")
    words = f"{len(requests):,} requests of {file.name}"
    words += f" ({left_out:,} left out)" if left_out else ""
    return Workload(requests[:: math.ceil(len(requests) / MOST)], words + when, rate)


def timed(file: Path) -> tuple[list[tuple[float, Request]], int]:
    """The requests of a log with their times in seconds from the first, and how many were left out.

    A log that tells whole seconds has the requests of a second spread evenly over it. Raises
    LabError.
    """
    entries = _entries(file)
    known = sorted(
        ((moment, request) for moment, request in entries if moment is not None and request),
        key=itemgetter(0),
    )
    if not known:
        raise LabError(f"{file}: holds no request with a time that could be sent again")
    together, seen = Counter(moment for moment, _ in known), Counter[float]()
    whole = all(moment.is_integer() for moment in together)
    placed = []
    for moment, request in known:
        placed.append((moment - known[0][0] + seen[moment] / together[moment] * whole, request))
        seen[moment] += 1
    return placed, len(entries) - len(known)


def _busiest(file: Path, entries: list[Entry]) -> tuple[float, str]:
    """The rate in the busiest minute of a log, of all lines, and the words for it."""
    moments = sorted(moment for moment, _ in entries if moment is not None)
    if not moments:
        raise LabError(f"{file}: no times, and so no rate; --requests takes files without")
    # A log tells whole seconds.
    seconds = moments[-1] - moments[0] + 1
    average = len(moments) / seconds
    if seconds <= MINUTE:
        return average, f", {average:,.1f}/s"
    rate = max(Counter(moment // MINUTE for moment in moments).values()) / MINUTE
    return rate, f", {rate:,.1f}/s in its busiest minute, {average:,.1f} on average"


def _entries(file: Path) -> list[Entry]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LabError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise LabError(f"{file}:{line}: not UTF-8") from None
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict) and "log" in whole:
        log = whole["log"]
        entries = log.get("entries") if isinstance(log, dict) else None
        if not isinstance(entries, list):
            raise LabError(f'{file}: HAR without "entries"')
        return [_of_har(f"{file}: entry {number}", one) for number, one in enumerate(entries, 1)]
    read = _of_json if text.lstrip().startswith("{") else _of_log
    lines = enumerate(text.splitlines(), 1)
    return [read(f"{file}:{number}", line) for number, line in lines if line.strip()]


def _of_log(where: str, line: str) -> Entry:
    match = _LINE.match(line.strip())
    if match is None:
        raise LabError(f"{where}: no line of an access log (Common or Combined), and no JSON")
    moment = _moment(match["time"], "%d/%b/%Y:%H:%M:%S %z")
    status = int(match["status"]) if match["status"] != "-" else 0
    request = _REQUEST.fullmatch(_plain(match["request"]))
    # What was no request then is none now, and bodies are not in a log.
    if request is None or status >= 500 or not _sendable(request[1], request[2]):
        return moment, None
    headers = [
        (name, _plain(match[group]))
        for name, group in (("Referer", "referer"), ("User-Agent", "agent"))
        if match[group] not in (None, "", "-")
    ]
    return moment, _request(where, request[1], request[2], headers, "", status)


def _moment(text: Any, form: str = "") -> float | None:
    """Seconds since 1970 of a time (without a form: ISO 8601); None if it is none."""
    try:
        # Python 3.10 does not know Z.
        text = text.replace("Z", "+00:00")
        return (datetime.strptime(text, form) if form else datetime.fromisoformat(text)).timestamp()
    except (AttributeError, ValueError):
        return None


def _sendable(method: Any, target: Any) -> bool:
    """Whether a request of a log can be sent again: bots send what is no target."""
    return method in BODILESS and isinstance(target, str) and bool(_TARGET.fullmatch(target))


def _plain(text: str) -> str:
    """Undoes the escapes of a log."""
    return re.sub(
        r"\\(x[0-9a-fA-F]{2}|.)",
        lambda match: chr(int(match[1][1:], 16)) if len(match[1]) == 3 else match[1],
        text,
    )


def _of_json(where: str, line: str) -> Entry:
    try:
        said = json.loads(line)
    except ValueError as error:
        raise LabError(f"{where}: not JSON: {error}") from None
    if not isinstance(said, dict) or "target" not in said:
        raise LabError(f'{where}: no object with "target", and perhaps method, headers, body')
    status = said.get("status") or 0
    if not isinstance(status, int):
        raise LabError(f'{where}: "status" is not a number')
    method = said.get("method", "GET")
    moment = _moment(said.get("time"))
    # Our own log has null where there was no request, and never a body.
    unsendable = "remote_addr" in said and not _sendable(method, said["target"])
    if said["target"] is None or status >= 500 or unsendable:
        return moment, None
    headers = said.get("headers") or {}
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    return moment, _request(where, method, said["target"], pairs, said.get("body") or "", status)


def _of_har(where: str, entry: Any) -> Entry:
    try:
        asked = entry["request"]
        method, url = asked["method"], urlsplit(asked["url"])
        pairs = [(field["name"], field["value"]) for field in asked.get("headers", ())]
        body = (asked.get("postData") or {}).get("text") or ""
        status = int((entry.get("response") or {}).get("status") or 0)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise LabError(f"{where}: no request as HAR 1.2 has it: {error!r}") from None
    if url.scheme not in ("http", "https") or status >= 500:
        return None, None
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return None, _request(where, method, target, pairs, body, status)


def _request(where: str, method: Any, target: Any, headers: Any, body: Any, status: int) -> Request:
    if not isinstance(method, str) or not _TOKEN.fullmatch(method) or method == "CONNECT":
        raise LabError(f"{where}: {method!r} is not a method")
    if not isinstance(target, str) or not _TARGET.fullmatch(target):
        raise LabError(f"{where}: {target!r} is not a target: /path?query, in ASCII")
    if not isinstance(body, str):
        raise LabError(f"{where}: the body is not a text")
    kept = []
    try:
        for name, value in headers:
            if name.startswith(":") or name.lower() in OF_THE_CONNECTION:
                continue
            if not _TOKEN.fullmatch(name) or re.search(r"[\0\r\n]", value):
                raise LabError(f"{where}: {name!r} is not a header field")
            value.encode("latin-1")
            kept.append((name, value))
    except (TypeError, ValueError, AttributeError):
        raise LabError(f"{where}: headers are names and values, texts in Latin-1") from None
    return Request(target, method, tuple(kept), body.encode(), status)
