"""httpbin, with the tests of the library `requests` as its client: over HTTP and over TLS."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from tests.programs.running.application import Application, Steps
from tests.support.proxies import reserve
from tests.testkit.client import HANG
from tests.testkit.server import Program, wait_for

WSGI = """
import sys
sys.path.insert(0, {!r})
from httpbin import app as application
"""

#: The fixtures of pytest-httpbin, with servers that run already.
PLUGIN = """
import os
import pytest

class Served:
    def __init__(self, url):
        self.url = url

@pytest.fixture(scope="session")
def httpbin():
    return Served(os.environ["HTTPBIN"])

@pytest.fixture(scope="session")
def httpbin_secure():
    return Served(os.environ["HTTPBIN_SECURE"])

@pytest.fixture
def httpbin_ca_bundle(monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", os.environ["HTTPBIN_CA"])
"""

#: All tests but those that send to an address of another network.
TESTS = (
    *("python", "-m", "pytest", "-p", "served", "-p", "no:cacheprovider", "tests"),
    *("-k", "not test_connect_timeout and not test_total_timeout_connect"),
)


class Httpbin(Application):
    # httpbin itself asks for a greenlet with which no current gevent runs, and does not use it.
    requirements = (
        *("requests[socks]==2.34.2", "pytest==9.2.0", "trustme==1.2.1", "pytest-mock==3.17.0"),
        *("flask==3.1.3", "brotlicffi==1.2.1.0", "decorator==5.3.1", "six==1.17.0"),
    )
    sources = ("httpbin==0.10.4", "requests==2.34.2", "pytest-httpbin==2.1.0")

    def prepare(self) -> None:
        Path("wsgi.py").write_text(WSGI.format(str(self.source("httpbin"))))
        Path("served.py").write_text(PLUGIN)

    def drive(self) -> Steps:
        certificates = self.source("pytest-httpbin") / "pytest_httpbin" / "certs"
        with reserve() as port:
            address = port.getsockname()
            secure = f"{address[0]}:{address[1]}"
            os.environ |= {
                "HTTPBIN": self.url,
                "HTTPBIN_SECURE": f"https://{secure}",
                "HTTPBIN_CA": str(certificates / "client.pem"),
                "PYTHONPATH": os.getcwd(),
            }
            words = self.command_with_tls(secure, certificates)
            with Program(*words, cwd=Path.cwd(), env=dict(os.environ), merged=True) as server:
                wait_for(lambda: accepts(address), "accept")
                report = f"--junit-xml={Path.cwd()}/report.xml"
                self.run(*TESTS, report, cwd=self.source("requests"))
                server.process.terminate()
                yield "end of the server with TLS", server.process.wait(HANG)
        steps = [*self.report()]
        yield "tests", len(steps)
        yield from steps

    def command_with_tls(self, address: str, certificates: Path) -> list[str]:
        """The command that starts a second server, with TLS."""
        pair = [str(certificates / "server.pem"), str(certificates / "server.key")]
        if self.server == self.reference:
            options = ["--bind", address, "--certfile", pair[0], "--keyfile", pair[1]]
        else:
            options = ["--bind", f"https://{address}"]
            options += ["--tls-certificate", pair[0], "--tls-key", pair[1]]
        words = self.command()
        bind = words.index("--bind")
        return [*words[:bind], *options, *words[bind + 2 :]]


def accepts(address: tuple[str, int]) -> bool:
    """Whether a server accepts connections there."""
    with suppress(ConnectionRefusedError), socket.create_connection(address):
        return True
    return False
