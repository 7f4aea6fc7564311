"""Transports that plug-ins add, `poorhttp.transports`; options that need an address with TLS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.certificate import certificate
from tests.support.forked_command import run_command
from tests.support.plug_in import install
from tests.support.tls_client import connected, write
from tests.testkit.server import ROOT, Server

#: Protocols `sealed`, whose certificate is that of a variable, and others that are wrong.
SEALED = """\
import os

from poorhttp import _core
from poorhttp.net.transport import Transport
from poorhttp.process.safe_open import open_regular

class Sealed(Transport):
    title = "Sealed"

    def __init__(self):
        paths = [os.environ["SEALED"]]
        settings = _core.TlsSettings(paths, paths, opener=open_regular)
        self.config = _core.TlsConfig(settings)

    @classmethod
    def of(cls, settings):
        return cls()

    def reactor_arguments(self, listeners):
        return {"tls": self.config, "hsts": "max-age=7"}

    def describe(self):
        return ["sealed well\\n"]

    def warnings(self):
        return ["the seal is thin"]

class Raising(Sealed):
    @classmethod
    def of(cls, settings):
        return {}["seal"]

class Failing(Sealed):
    def log_warnings(self):
        raise OSError("no wax")
"""
POINTS = "\n".join(f"{name.lower()} = sealed:{name}" for name in ("Sealed", "Raising", "Failing"))


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment with the plug-in, which `plugins` names."""
    site = tmp_path / "site"
    site.mkdir()
    install(site, "sealed", {"transports": POINTS}, {"sealed": SEALED})
    paths = os.pathsep.join([str(ROOT), str(site)])
    sealed = write(tmp_path, "sealed.pem", certificate().issued)
    return {"PYTHONPATH": paths, "POORHTTP_PLUGINS": "sealed", "SEALED": sealed}


def test_a_transport_of_others_carries_http(env: dict[str, str]) -> None:
    bind = ("sealed://127.0.0.1:0",)
    with Server("tests/apps/secure.py", "threading", env=env, bind=bind) as server:
        port = int(server.urls.rpartition(":")[2])
        with connected(port) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            received = b"".join(iter(lambda: sock.recv(65536), b""))
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Strict-Transport-Security: max-age=7\r\n" in received
        assert b'"scheme": "https"' in received
        server.wait_log("listening on sealed://127.0.0.1:")


def test_what_it_says_of_itself_is_shown(env: dict[str, str]) -> None:
    words = ("tests/apps/secure.py", "--bind", "sealed://127.0.0.1:0")
    done = run_command("check", *words, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nSealed:\nsealed well\nwarning: the seal is thin\n" in done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [("raising", "of: KeyError: 'seal'"), ("failing", "log_warnings: OSError: no wax")],
)
def test_one_that_raises_is_named(name: str, message: str, env: dict[str, str]) -> None:
    words = ("tests/apps/secure.py", "--bind", f"{name}://127.0.0.1:0")
    done = run_command("serve", *words, env=env)
    assert done.returncode != 0
    named = f"poorhttp: plug-in {name} of sealed (poorhttp.transports): {message}\n"
    assert done.stderr.endswith(named)


@pytest.mark.parametrize(
    "name", ["tls-certificate", "tls-key", "tls-ocsp", "tls-client-ca", "redirect-to-https", "hsts"]
)
def test_an_option_without_an_address(name: str) -> None:
    value = {"redirect-to-https": "on", "hsts": "60"}.get(name, "x")
    words = ("tests/apps/secure.py", "--bind", "127.0.0.1:0", f"--{name}={value}")
    done = run_command("check", *words)
    assert done.returncode != 0
    assert f"poorhttp: --{name}: no address of bind speaks TLS; write one as" in done.stderr
