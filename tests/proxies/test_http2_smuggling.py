"""Request smuggling in HTTP/2 through HAProxy and nginx in front of the server.

What the proxies pass on in HTTP/1.1, HTTP/2, uwsgi, SCGI and FastCGI is one request or none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from proxy.programs import PROGRAMS
from tests.packages import need
from tests.support.check_each import check_each
from tests.support.http2_client import Client, Stream
from tests.support.proxies import HAPROXY, WebServer, nginx_text, reserve
from tests.testkit.cases.http2 import StreamCase, read_streams
from tests.testkit.server import Server, wait_for

CASES = [*read_streams()]

#: Proxies normalize paths and hosts, and are believed what they say of a client.
CHANGED = {"PATH_INFO", "RAW_URI", "HTTP_HOST", "REMOTE_ADDR", "wsgi.url_scheme", "HTTPS"}

#: What each proxy speaks to our server.
WAYS = {"haproxy": ("h1", "h2"), "nginx": ("http", "uwsgi", "scgi", "fastcgi")}
EACH = [(program, way) for program, ways in WAYS.items() for way in ways]


def haproxy_text(ports: dict[str, int], server: Server) -> str:
    """A configuration of HAProxy with a place for each way."""
    places = [
        f"listen {way}\n    bind 127.0.0.1:{port} proto h2\n    http-reuse always\n"
        f"    server only 127.0.0.1:{server.port_of('http')} proto {way}\n"
        for way, port in ports.items()
    ]
    return HAPROXY + "".join(places)


def nginx_servers(ports: dict[str, int], server: Server) -> list[str]:
    """The servers of nginx, one for each way."""
    servers = []
    for way, port in ports.items():
        to = f"127.0.0.1:{server.port_of(way)}"
        passed = f"{way}_pass {to}; include /etc/nginx/{way}_params;"
        if way == "http":
            passed = "proxy_pass http://kept; proxy_http_version 1.1; proxy_set_header Host $host;"
            passed += 'proxy_set_header Connection "";'
            servers.append(f"upstream kept {{ server {to}; keepalive 4; }}")
        servers.append(f"server {{ listen 127.0.0.1:{port} http2; location / {{ {passed} }} }}")
    return servers


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    bind = ("127.0.0.1:0", *(f"{scheme}://127.0.0.1:0" for scheme in WAYS["nginx"][1:]))
    with Server(
        "tests/apps/echo.py", "threading", "--trusted-proxies=127.0.0.1", bind=bind
    ) as server:
        yield server


@pytest.fixture(scope="module")
def ports(
    server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[str, str], int]]:
    """Where each proxy listens for each way."""
    found: dict[tuple[str, str], int] = {}
    with ExitStack() as stack:
        for program, ways in WAYS.items():
            need(program)
            folder = tmp_path_factory.mktemp(program)
            reserved = [stack.enter_context(reserve()) for _ in ways]
            of_ways = {way: each.getsockname()[1] for way, each in zip(ways, reserved, strict=True)}
            config = folder / "config"
            words: tuple[str, ...] = (PROGRAMS[program].path(),)
            if program == "haproxy":
                config.write_text(haproxy_text(of_ways, server))
                words += ("-db", "-f", str(config))
            else:
                config.write_text(nginx_text(folder, nginx_servers(of_ways, server)))
                words += ("-c", str(config), "-p", str(folder))
            front = stack.enter_context(WebServer(*words, reserved=reserved))
            wait_for(front.is_listening, program)
            found |= {(program, way): port for way, port in of_ways.items()}
        yield found


def ask(made: Client, case: StreamCase) -> Stream:
    """What becomes of a request, until its stream or its connection ends."""
    stream = made.begin_with(case.fields, ended=case.body is None)
    # A proxy may close the connection while frames are sent to it.
    with suppress(BrokenPipeError, ConnectionResetError):
        if case.body is not None:
            made.h2.send_data(stream.number, case.body, end_stream=True)
            made.flush()
        while not (stream.is_over or made.closed):
            made.receive()
    return stream


@pytest.mark.parametrize(("program", "way"), EACH)
def test_one_request_or_none(
    ports: dict[tuple[str, str], int], server: Server, program: str, way: str
) -> None:
    address = ("127.0.0.1", ports[program, way])

    def check(case: StreamCase) -> None:
        before = server.log_size()
        with Client(address) as made:
            stream = ask(made, case)
        if stream.status == 200:
            answer = json.loads(stream.body)
            assert answer["body"].encode("latin-1") in (b"", case.body)
            found = {key: answer["environ"].get(key) for key in case.environ.keys() - CHANGED}
            assert found == {key: case.environ[key] for key in found}
        # What was sent too much would be answered in place of this request.
        with Client(address) as made:
            after = made.get("/after")
            assert json.loads(after.body)["environ"]["PATH_INFO"] == "/after"
        log = server.log(before)
        assert log.count("ran ") == 1 + (stream.status == 200), log
        assert "/never" not in log

    check_each(CASES, check)
