"""Client addresses through each configuration of proxy/, also with forged fields."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from proxy.programs import PROGRAMS
from tests.support.proxies import APP, Pair, Proxy
from tests.testkit.server import Server

#: What a client may write, in the hope that somebody believes it.
FORGED = [
    "Forwarded: for=192.0.2.66;proto=gopher;host=forged.example",
    'forwarded: for="[2001:db8::66]:66"',
    "X-Forwarded-For: 192.0.2.66",
    "X-Forwarded-For: 127.0.0.1, 192.0.2.66, 127.0.0.1",
    "x-forwarded-for: 192.0.2.66:66",
    "X-Forwarded-Proto: https",
    "X-Forwarded-Proto: http",
    "X-Forwarded-Host: forged.example",
    "X-Forwarded-Port: 66",
    "X-Forwarded-Prefix: /forged",
    "X_Forwarded_For: 192.0.2.66",
    "X_Forwarded_Proto: https",
    "X_Forwarded_Prefix: /forged",
    "Script-Name: /forged",
    "Remote-Addr: 192.0.2.66",
    "HTTPS: on",
]

#: Even where the addresses of clients are trusted, whatever for: with `balanced`, they are.
TRUST = ("--trusted-proxies", "unix", "--trusted-proxies", "127.0.0.1")

#: Signs of them in what an application hears.
SIGNS = ("192.0.2.66", "2001:db8", "forged", "gopher", "'66'")


def heard(environ: dict[str, Any]) -> dict[str, Any]:
    """What an application is told of who asks, and how."""
    names = ("REMOTE_ADDR", "wsgi.url_scheme", "SERVER_NAME", "SERVER_PORT", "SCRIPT_NAME")
    forwarded = [name for name in environ if "FORWARDED" in name]
    return {name: environ.get(name) for name in (*names, "PATH_INFO", "HTTP_HOST", *forwarded)}


def check(proxy: Proxy, port: int, scheme: str) -> None:
    """The application hears the truth, whatever a client writes."""
    honest = heard(proxy.echo(port=port))
    assert honest["REMOTE_ADDR"] == "127.0.0.1"
    assert honest["wsgi.url_scheme"] == scheme
    assert honest["SCRIPT_NAME"] == ""
    assert honest["PATH_INFO"] == "/echo"
    for field in [*FORGED, *(f"{field}\r\n{field}" for field in FORGED[:10])]:
        environ = proxy.echo(field, port=port)
        assert heard(environ) == honest, field
        del environ["REMOTE_PORT"]
        if "FORWARDED" in field.upper():
            assert not [sign for sign in SIGNS if sign in str(environ)], field


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair(APP) as pair:
        yield pair


@pytest.mark.parametrize("name", PROGRAMS)
def test_balanced(name: str, pair: Pair, tmp_path: Path) -> None:
    with Proxy(name, "balanced", tmp_path, pair.ports) as proxy:
        check(proxy.wait_listening(), proxy.port, "http")


@pytest.mark.parametrize("name", ["lighttpd", "nginx", "haproxy"])
def test_site(name: str) -> None:
    with TemporaryDirectory() as folder:
        bind = (f"unix:{folder}/poorhttp.sock",)
        with (
            Server(APP, "threading", "-c", "proxy/site.ini", *TRUST, bind=bind),
            Proxy(name, "site", Path(folder)) as proxy,
        ):
            check(proxy.wait_listening(), proxy.port, "https")


#: What is spoken at each port of a configuration, in their order.
PROTOCOLS = {
    "lighttpd": ("uwsgi", "scgi", "fastcgi"),
    "nginx": ("uwsgi", "scgi", "fastcgi"),
    "haproxy": ("fastcgi", "proxied"),
    "apache2": ("uwsgi", "scgi", "fastcgi"),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_gateway(name: str) -> None:
    body = b"x" * 3_000_000
    with TemporaryDirectory() as folder:
        kinds = ["" if protocol == "proxied" else f"{protocol}+" for protocol in PROTOCOLS[name]]
        bind = [
            f"{kind}unix:{folder}/{protocol}.sock"
            for kind, protocol in zip(kinds, PROTOCOLS[name], strict=True)
        ]
        options = (*TRUST, "--proxy-protocol", bind[-1]) if kinds[-1] == "" else TRUST
        with (
            Server(APP, "threading", "-c", "proxy/gateway.ini", *options, bind=tuple(bind)),
            Proxy(name, "gateway", Path(folder)) as proxy,
        ):
            proxy.wait_listening()
            for port in proxy.ports[: len(bind)]:
                check(proxy, port, "http")
                with proxy.connect(port) as connection:
                    for path in ("/light", "/heavy", "/light?a=b%20c&d"):
                        assert connection.request("GET", path).status == 200
                        assert connection.request("HEAD", path).status == 200
                    target = "/echo/p%C3%A9%20th?q=%20"
                    answer = connection.request("POST", target, body=body).json()
                    assert answer["body"].encode() == body
                    environ = answer["environ"]
                    assert environ["PATH_INFO"].encode("latin-1").decode() == "/echo/pé th"
                    assert environ["QUERY_STRING"] == "q=%20"
                    assert environ["REMOTE_ADDR"] == "127.0.0.1"
