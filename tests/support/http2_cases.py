"""Protocol cases of HTTP/1 as requests of HTTP/2.

What a case is about may not exist in HTTP/2: `Meaningless` names the kind, and `REASONS` says why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.testkit.cases.exchanges import Case

Fields = list[tuple[bytes, bytes]]

#: Kinds of cases without a meaning in HTTP/2.
REASONS = {
    "lines": "HTTP/2 has a list of names and values: no line ends, empty or folded lines, colons",
    "version": "a request of HTTP/2 has no version; one of HTTP/1.0 has other rules for its end",
    "scheme": "a proxy may write https whatever its clients speak, and it is not believed",
    "connection": "HTTP/2 has no fields about the connection, and refuses them",
    "coding": "there are no codings before chunked, and no list of them",
    "chunks": "DATA frames have no syntax that could be wrong",
}

#: Fields of the kind `connection`, and the values with which they have a meaning.
OF_CONNECTION: dict[bytes, tuple[bytes, ...]] = {
    b"connection": (b"close", b"keep-alive"),
    b"te": (b"trailers",),
    **dict.fromkeys((b"keep-alive", b"proxy-connection", b"upgrade", b"http2-settings"), ()),
}

REQUEST_LINE = re.compile(rb"([^ ]*) (.*) ([^ ]*)", re.DOTALL)
ABSOLUTE = re.compile(rb"http://([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
HOST = re.compile(rb"[\w.:\[\]-]+")
#: A list that ends with `chunked`.
CODINGS = re.compile(rb"(?:(?!chunked)[\w ]*,)+ *chunked[ ,]*|chunked *,")
#: The line before a chunk, with at most one short extension.
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;\w{1,20}=\w{1,20})?\r\n")


class Meaningless(Exception):
    """What a case is about does not exist in HTTP/2; its argument is the kind."""


@dataclass
class Request:
    """A request as a client of HTTP/2 sends it."""

    pseudo: Fields
    fields: Fields
    content: bytes = b""
    trailers: Fields = field(default_factory=list)
    #: The client sends its end; if not, it announces more than it sends.
    ended: bool = True

    def head(self, *, authority: bool) -> Fields:
        """The fields, with the only Host as `:authority` or as `host`."""
        hosts = [value for name, value in self.fields if name == b"host"]
        if not authority or len(hosts) != 1:
            return [*self.pseudo, *self.fields]
        rest = [each for each in self.fields if each[0] != b"host"]
        return [*self.pseudo, (b":authority", hosts[0]), *rest]


def translated(case: Case) -> list[Request]:
    """The requests of a case up to the last that is answered. Meaningless."""
    rest = case.send
    requests = []
    for _ in case.statuses:
        request, rest = first_request(rest)
        requests.append(request)
    return requests


def first_request(sent: bytes) -> tuple[Request, bytes]:
    """The first request in some bytes, and the bytes behind it. Meaningless."""
    head, end, rest = sent.partition(b"\r\n\r\n")
    line, *lines = head.split(b"\r\n")
    if not end or re.search(rb"[\r\n]", b"".join([line, *lines])):
        raise Meaningless("lines")
    parts = REQUEST_LINE.fullmatch(line)
    if parts is None:
        raise Meaningless("lines")
    method, target, version = parts.groups()
    if version != b"HTTP/1.1":
        raise Meaningless("version")
    if target[:8].lower() == b"https://":
        raise Meaningless("scheme")
    fields = fields_of(lines)
    if absolute := ABSOLUTE.fullmatch(target):
        host, target = absolute.groups()
        if target[:1] != b"/":
            target = (b"*" if method == b"OPTIONS" and not target else b"/") + target
        # It replaces Host, which has to be right nevertheless (RFC 9112 section 3.2.2).
        fields = [
            (name, host if name == b"host" and HOST.fullmatch(value) else value)
            for name, value in fields
        ]
    pseudo = [(b":method", method), (b":scheme", b"http"), (b":path", target)]
    codings = [value.lower() for name, value in fields if name == b"transfer-encoding"]
    is_chunked = codings == [b"chunked"] and b"content-length" not in dict(fields)
    if CODINGS.fullmatch(b",".join(codings)):
        raise Meaningless("coding")
    # DATA frames take the place of chunks; another coding is refused in both versions.
    dropped = (b"connection", b"transfer-encoding") if is_chunked else (b"connection",)
    request = Request(pseudo, [each for each in fields if each[0] not in dropped])
    lengths = [value for name, value in fields if name == b"content-length"]
    if is_chunked:
        request.content, request.trailers, rest = without_chunks(rest)
    elif len(lengths) == 1 and re.fullmatch(rb"[0-9]{1,18}", lengths[0]):
        length = int(lengths[0])
        request.content, rest = rest[:length], rest[length:]
        request.ended = len(request.content) == length
    return request, rest


def fields_of(lines: list[bytes]) -> Fields:
    """The fields in lines; those that HTTP/2 has not are checked. Meaningless."""
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or line[:1] in (b" ", b"\t"):
            raise Meaningless("lines")
        name, value = name.lower(), value.strip(b" \t")
        if name in OF_CONNECTION and value.lower() not in OF_CONNECTION[name]:
            raise Meaningless("connection")
        fields.append((name, value))
    return fields


def without_chunks(sent: bytes) -> tuple[bytes, Fields, bytes]:
    """The content of chunks, the trailers, and the bytes behind them. Meaningless."""
    content = b""
    while True:
        size = CHUNK.match(sent)
        if size is None:
            raise Meaningless("chunks")
        length, sent = int(size[1], 16), sent[size.end() :]
        if not length:
            break
        chunk, sent = sent[:length], sent[length:]
        if len(chunk) < length or sent[:2] != b"\r\n":
            raise Meaningless("chunks")
        content, sent = content + chunk, sent[2:]
    if sent[:2] == b"\r\n":
        return content, [], sent[2:]
    head, end, rest = sent.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    if not end or re.search(rb"[\r\n]", b"".join(lines)):
        raise Meaningless("lines")
    return content, fields_of(lines), rest
