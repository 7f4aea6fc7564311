"""Recorded requests: an access log (Common, Combined or ours in JSON), JSON Lines, or HAR."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from loadtests.advise.asking import Requests
from loadtests.clients.connection import BODILESS
from loadtests.clients.native.replay import Request
from loadtests.errors import LabError

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


def recorded(file: Path) -> Requests:
    """The requests of a file, whose kind is seen from what it holds.

    Raises LabError, with the line, for what cannot be understood.
    """
    return _requests(file, [request for _, request in _entries(file)])


def like(file: Path) -> Requests:
    """The requests of an access log, at the rate of its busiest minute.

    All its lines count for the rate, also those that cannot be sent again. Raises LabError.
    """
    entries = _entries(file)
    moments = sorted(moment for moment, _ in entries if moment is not None)
    if not moments:
        raise LabError(f"{file}: no times, and so no rate; --requests takes files without")
    # A log tells whole seconds.
    seconds = moments[-1] - moments[0] + 1
    average = len(moments) / seconds
    rate, when = average, ""
    if seconds > MINUTE:
        rate = max(Counter(moment // MINUTE for moment in moments).values()) / MINUTE
        when = f" in its busiest minute, {average:,.1f} on average"
    asked = _requests(file, [request for _, request in entries])
    return replace(asked, rate=rate, words=f"{asked.words}, {rate:,.1f}/s{when}")


def _requests(file: Path, read: list[Request | None]) -> Requests:
    """Those that can be sent again, evenly chosen if there are very many."""
    requests = [request for request in read if request is not None]
    left_out = len(read) - len(requests)
    if not requests:
        why = f"; {left_out:,} were left out: failures, and bodies that were not recorded"
        raise LabError(f"{file}: holds no request that could be sent again{why * bool(left_out)}")
    words = f"{len(requests):,} requests of {file.name}"
    requests = requests[:: math.ceil(len(requests) / MOST)]
    return Requests(requests, words + (f" ({left_out:,} left out)" if left_out else ""))


def _entries(file: Path) -> list[Entry]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise LabError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise LabError(f"{file}:{line}: not UTF-8") from None
    whole = _object(text)
    if "log" in whole:
        return list(_of_har(file, whole["log"]))
    return list((_of_lines if text.lstrip().startswith("{") else _of_log)(file, text))


def _object(text: str) -> dict[str, Any]:
    """The file as one object, if it is one."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _of_log(file: Path, text: str) -> Iterator[Entry]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.match(line.strip())
        if match is None:
            raise LabError(
                f"{file}:{number}: no line of an access log (Common or Combined), and no JSON"
            )
        moment = _moment(match["time"], "%d/%b/%Y:%H:%M:%S %z")
        status = int(match["status"]) if match["status"] != "-" else 0
        request = _REQUEST.fullmatch(_plain(match["request"]))
        # What was no request then is none now, and bodies are not in a log.
        if request is None or status >= 500 or not _sendable(request[1], request[2]):
            yield moment, None
            continue
        headers = [
            (name, _plain(match[group]))
            for name, group in (("Referer", "referer"), ("User-Agent", "agent"))
            if match[group] not in (None, "", "-")
        ]
        yield moment, _request(f"{file}:{number}", request[1], request[2], headers, "", status)


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


def _of_lines(file: Path, text: str) -> Iterator[Entry]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
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
        of_a_log = "remote_addr" in said
        unsendable = of_a_log and not _sendable(method, said["target"])
        if said["target"] is None or status >= 500 or unsendable:
            yield moment, None
            continue
        headers = said.get("headers") or {}
        pairs = list(headers.items()) if isinstance(headers, dict) else headers
        body = said.get("body") or ""
        yield moment, _request(where, method, said["target"], pairs, body, status)


def _of_har(file: Path, log: Any) -> Iterator[Entry]:
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise LabError(f'{file}: HAR without "entries"')
    for number, entry in enumerate(entries, 1):
        where = f"{file}: entry {number}"
        try:
            asked = entry["request"]
            method, url = asked["method"], urlsplit(asked["url"])
            pairs = [(field["name"], field["value"]) for field in asked.get("headers", ())]
            body = (asked.get("postData") or {}).get("text") or ""
            status = int((entry.get("response") or {}).get("status") or 0)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise LabError(f"{where}: no request as HAR 1.2 has it: {error!r}") from None
        if url.scheme not in ("http", "https") or status >= 500:
            yield None, None
            continue
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        yield None, _request(where, method, target, pairs, body, status)


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
    return Request(target, method, tuple(kept), body.encode(), status if status >= 400 else 0)
