"""Client addresses through the gateways of proxy/, also with forged fields.

test_balanced.py and test_tls_site.py have them through the other configurations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.proxies import APP, TRUST, Proxy, check_client
from tests.testkit.server import Server

#: What is spoken at each port of a configuration, in their order.
PROTOCOLS = {
    "lighttpd": ("uwsgi", "scgi", "fastcgi"),
    "nginx": ("uwsgi", "scgi", "fastcgi"),
    "haproxy": ("fastcgi", "proxied"),
    "apache2": ("uwsgi", "scgi", "fastcgi"),
}


@pytest.fixture(scope="module")
def sockets() -> Iterator[Path]:
    """The folder with the sockets of a server that speaks all of them."""
    with TemporaryDirectory() as name:
        protocols = ("uwsgi", "scgi", "fastcgi")
        bind = [f"{protocol}+unix:{name}/{protocol}.sock" for protocol in protocols]
        bind.append(f"unix:{name}/proxied.sock")
        options = ("-c", "proxy/gateway.ini", *TRUST, "--proxy-protocol", bind[-1])
        with Server(APP, "threading", *options, bind=tuple(bind)):
            yield Path(name)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_gateway(name: str, sockets: Path) -> None:
    body = b"x" * 3_000_000
    with TemporaryDirectory() as folder:
        for protocol in PROTOCOLS[name]:
            (Path(folder) / f"{protocol}.sock").symlink_to(sockets / f"{protocol}.sock")
        with Proxy(name, "gateway", Path(folder)) as proxy:
            proxy.wait_listening()
            for port in proxy.ports[: len(PROTOCOLS[name])]:
                check_client(proxy, port, "http")
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
