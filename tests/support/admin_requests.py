"""Made-up requests to the address `admin`, right and wrong, of which none has an effect."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable

from tests.testkit.client import Closed, Connection

#: Statuses that made-up requests may get.
STATUSES = {200, 202, 400, 401, 403, 404, 405, 408, 409, 411, 413, 414, 415, 417, 431, 501, 505}

#: What requests are made up of: of commands that need an argument, which is never a right one.
PATHS = (
    *("/", "/-/live", "/-/ready", "/-/metrics", "/metrics", "/-/status", "/-/control/jobs/1-1"),
    *("/-/control/log-level", "/-/control/reload%00", "/-/control/profile", "/-/control/none"),
    *("/-/control/../status", "//", "*", "/-/control/jobs/", "/-/", "/\xff", "/%ff", "/?a=b"),
)
FIELDS = (
    *("Content-Type: application/json", "Content-Type: text/plain", "Content-Type: ;"),
    *("Origin: http://localhost", "Origin: null", "Sec-Fetch-Site: cross-site", "Origin: \xff"),
    *("Authorization: Basic :", "Authorization: Bearer", "Authorization: \xe9", "Accept: */*;q=x"),
    *("Expect: 100-continue", "Connection: close", "Connection: upgrade", "Upgrade: websocket"),
    *("Transfer-Encoding: chunked", "Content-Length: 5", "Host: [", "Host: :", "Accept: \x80"),
)
BODIES = (
    *(b"", b"{}", b'{"level": "x"}', b'{"pid": 1e999}', b'{"pid": -1}', b'{"pid": [1]}'),
    *(b"[" * 900, b'{"service": "\\ud800"}', b'{"\\u0000": 1}', b'{"level": null}'),
    *(b"\xff\xfe", b"nul", b"NaN"),
    *(b'{"pid": 1%s}' % (b"0" * 500), b'{"level": "\xc3\xa9"}', b'{"a": {"b": 1}}', b'"x"'),
)


def made_up(chance: random.Random) -> tuple[str, bytes]:
    """A method and the bytes of a request."""
    method = chance.choice(["GET", "POST", "POST", "POST", "HEAD", "PUT", "\xe9"])
    body = chance.choice(BODIES)
    fields = chance.sample(FIELDS, chance.randrange(4))
    if chance.random() < 0.7:
        fields += ["Host: localhost", "Content-Type: application/json"]
    fields.append(f"Content-Length: {len(body)}")
    lines = [f"{method} {chance.choice(PATHS)} HTTP/1.1", *fields, "", ""]
    sent = "\r\n".join(lines).encode("latin-1") + body
    if chance.random() < 0.3:
        place = chance.randrange(len(sent))
        sent = sent[:place] + chance.randbytes(chance.randrange(4)) + sent[place + 1 :]
    return method, sent


def send_made_up(chance: random.Random, connect: Callable[[], Connection]) -> None:
    """Send one; an AssertionError with its bytes for an answer that it must not get."""
    method, sent = made_up(chance)
    with connect() as connection:
        connection.send(sent)
        # What is not complete is not waited for.
        connection.socket.shutdown(socket.SHUT_WR)
        try:
            response = connection.response("HEAD" if method == "HEAD" else "GET")
        except Closed:
            return
        assert response.status in STATUSES, (sent, response)
