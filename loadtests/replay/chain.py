"""Visits that are chains of requests: a token or a cookie of a response goes into the next request.

A client in Python, for some hundreds of requests a second: how busy it was tells whether it was the
limit.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

from loadtests.clients.connection import unverified
from loadtests.clients.load import Load
from loadtests.clients.native.replay import Outcome, Seen, step
from loadtests.errors import LabError
from loadtests.measure import histogram

TIMEOUT = 30.0
BEGINNING = 60
"""Characters of a body that are shown."""
IDEMPOTENT = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE")
_TARGET = re.compile(r"/[\x21-\x7e]*")
_SAVED = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Link:
    """A request of a chain. `{name}` in its texts is what an earlier response said.

    `save` has the patterns that find such texts in a response, its head or body: the first group.
    A body is JSON or a form, unless a header says what else.
    """

    target: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    save: Mapping[str, re.Pattern[str]] = field(default_factory=dict)

    def headed(self, headers: Sequence[tuple[str, str]]) -> Link:
        """The same with these header fields besides its own, which go before."""
        own = {name.lower() for name in self.headers}
        more = {name: value for name, value in headers if name.lower() not in own}
        return replace(self, headers={**more, **self.headers})

    def __str__(self) -> str:
        return f"{self.method} {self.target}"


def read(file: Path) -> list[Link]:
    """The chain of a file of JSON Lines. Raises LabError, with the line."""
    links = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{file}: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            links.append(_link(json.loads(line)))
        except (ValueError, re.error) as error:
            raise LabError(f"{file}:{number}: {error}") from None
    if not links:
        raise LabError(f"{file}: no requests")
    return links


def _link(said: Any) -> Link:
    """A line of the file. Raises ValueError or re.error if it is none."""
    keys = f"keys: {' '.join(one.name for one in fields(Link))}"
    if not isinstance(said, dict) or "target" not in said:
        raise ValueError(f'no object with "target"; {keys}')
    for key, value in said.items():
        if key not in vars(Link("")):
            raise ValueError(f"there is no key {key!r}; {keys}")
        known = value if key in ("headers", "save") else {key: value}
        if not isinstance(known, dict) or not all(isinstance(one, str) for one in known.values()):
            kind = "an object whose values are texts" if known is value else "a text"
            raise ValueError(f"{key!r} is {kind}, not {json.dumps(value)}; {keys}")
    if not _TARGET.fullmatch(said["target"]):
        raise ValueError(f"the target {said['target']!r} is not written as in a request: /path")
    save = {name: re.compile(text) for name, text in said.get("save", {}).items()}
    if wrong := [name for name, pattern in save.items() if not pattern.groups]:
        raise ValueError(f"the pattern of {wrong[0]!r} has no group")
    return Link(**{**said, "save": save})


def typed(headers: Mapping[str, str], body: str) -> dict[str, str]:
    """These header fields, with the type of a body of which they do not say it."""
    if not body or "content-type" in map(str.lower, headers):
        return {**headers}
    try:
        kind = "json" if isinstance(json.loads(body), dict | list) else ""
    except ValueError:
        kind = ""
    return {"Content-Type": f"application/{kind or 'x-www-form-urlencoded'}", **headers}


@dataclass
class Visit:
    """What became of a chain: seconds of each link that was answered rightly.

    `failed` is why it ended early, and `said` the beginning of the body of such an answer. `unsaid`
    of its requests were sent again, as the server had closed behind a response.
    """

    due: float
    times: list[float] = field(default_factory=list)
    took: float = 0.0
    failed: str = ""
    said: str = ""
    unsaid: int = 0


def _answer(
    connection: HTTPConnection,
    host: str,
    link: Link,
    saved: dict[str, str],
    cookies: dict[str, str],
    told: Visit,
) -> tuple[HTTPResponse, str]:
    def filled(text: str) -> str:
        return _SAVED.sub(lambda found: saved.get(found[1], found[0]), text)

    headers = {name: filled(value) for name, value in link.headers.items()}
    if cookies:
        headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    body = filled(link.body)
    headers = typed(headers, body)
    if "host" not in map(str.lower, headers):
        headers["Host"] = host
    asked = link.method, filled(link.target), body.encode() or None, headers
    is_kept = connection.sock is not None
    try:
        connection.request(*asked)
        response = connection.getresponse()
    except ConnectionError:
        if not is_kept or link.method not in IDEMPOTENT:
            raise
        # The server has closed behind a response without saying so (RFC 9112 section 9.3.1).
        told.unsaid += 1
        connection.close()
        connection.request(*asked)
        response = connection.getresponse()
    text = response.read().decode("utf-8", errors="replace")
    for value in response.headers.get_all("Set-Cookie", []):
        name, _, rest = value.partition("=")
        cookies[name.strip()] = rest.partition(";")[0]
    return response, f"{response.headers}\n{text}"


def visit(
    place: tuple[str, int],
    host: str,
    links: Sequence[Link],
    begun: float,
    due: float,
    tls: ssl.SSLContext | None = None,
) -> Visit:
    """Makes the requests of a chain one after the other, on one connection."""
    told, saved, cookies = Visit(due), dict[str, str](), dict[str, str]()
    connection = HTTPConnection(*place, timeout=TIMEOUT)
    if tls:
        connection = HTTPSConnection(*place, timeout=TIMEOUT, context=tls)
    since = begun + due
    try:
        for link in links:
            response, text = _answer(connection, host, link, saved, cookies, told)
            took = time.monotonic() - since
            if response.status >= 400:
                told.failed = f"{link}: status {response.status}"
                told.said = " ".join(text.partition("\n\n")[2].split())[:BEGINNING]
                break
            found = {name: pattern.search(text) for name, pattern in link.save.items()}
            if missing := [name for name, match in found.items() if match is None]:
                told.failed = f"{link}: no {missing[0]} in the response"
                break
            told.times.append(took)
            saved |= {name: match[1] for name, match in found.items() if match}
            since = time.monotonic()
    except (OSError, HTTPException, ValueError) as error:
        told.failed = f"{links[len(told.times)]}: {type(error).__name__}"
    finally:
        connection.close()
    told.took = time.monotonic() - begun - due
    return told


def drive(
    place: tuple[str, int],
    host: str,
    links: Sequence[Link],
    moments: Sequence[float],
    connections: int,
    core: int | None,
    *,
    tls: bool = False,
) -> tuple[Seen, list[dict[str, Any]]]:
    """Begins a visit at each moment; what became of the visits, and of each link."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    context = unverified() if tls else None
    begun, used = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(connections) as pool:
        tasks = []
        for due in moments:
            time.sleep(max(begun + due - time.monotonic(), 0))
            tasks.append(pool.submit(partial(visit, place, host, links, begun, due, context)))
        visits = [task.result() for task in tasks]
    seconds = time.monotonic() - begun
    busy = (time.process_time() - used) / seconds
    whole = [one for one in visits if not one.failed]
    said = {v.failed: f', such as "{v.said}"' * bool(v.said) for v in visits if v.failed}
    errors = Counter(one.failed + said[one.failed] for one in visits if one.failed)
    longest = max((one.took * 1e6 for one in whole), default=0.0)
    load = Load(len(whole), seconds, 0, max_us=longest, errors=dict(errors), busy=busy)
    unsaid = sum(one.unsaid for one in visits)
    load = replace(load, opened=len(visits) + unsaid, unsaid=unsaid)
    outcomes = [Outcome(int(v.due * 1e6), int(v.took * 1e6), int(not v.failed)) for v in visits]
    steps = []
    for number, link in enumerate(links):
        times = [one.times[number] * 1e6 for one in visits if len(one.times) > number]
        failed = sum(len(one.times) == number for one in visits if one.failed)
        steps.append(step(str(link), len(times), failed, histogram.record(times)))
    return Seen(load, histogram.record(v.took * 1e6 for v in whole), len(whole), outcomes), steps
