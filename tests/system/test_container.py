"""conf/container: the server as process 1, with few privileges."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests.network.hosts import Network
from tests.support.container import Container, only
from tests.support.network import hosts
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, wait_for

TOKEN = "0123456789abcdef0123456789abcdef"
ECHO = {"POORHTTP_TARGET": f"{ROOT}/tests/apps/echo.py"}


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """The container has a network of its own, so its ports are what they are."""
    if os.geteuid() != 0:
        pytest.skip("a container is made by root only")
    with hosts("client", "container") as network:
        yield network


def test_it_serves(network: Network) -> None:
    with Container(network["container"]) as container:
        with container.connect(network["client"]) as connection:
            assert connection.request("GET", "/light").status == 200
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{container.init}/status").read_text().splitlines()
        )
        assert status["NSpid"].split()[-1] == "1"
        assert status["Uid"].split() == [only("USER").partition(":")[0]] * 4
        assert status["Groups"].strip() == ""
        for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"):
            assert int(status[f"Cap{kind}"], 16) == 0, kind
        assert status["NoNewPrivs"] == "1"
        for place in ("/", "/srv/app", "/etc/poorhttp", "/usr/lib"):
            done = container.run("touch", f"{place}/new")
            assert "Read-only file system" in done.stderr
        assert container.stop(signal.Signals[only("STOPSIGNAL")]) == 0
        wait_for(lambda: "GET /light HTTP/1.1" in container.log(), "the line of the request")


def test_it_says_how_it_is(network: Network) -> None:
    """To whoever is in the container, as its health check is."""
    check = json.loads(only("HEALTHCHECK").partition("CMD")[2])
    with Container(network["container"]) as container:
        done = container.run(sys.executable, *check[1:])
        assert (check[0], done.returncode) == ("python", 0), done.stderr
        with pytest.raises(ConnectionRefusedError):
            container.connect(network["client"], 9080)
        wrong = [word.replace("/-/live", "/-/lives") for word in check]
        assert container.run(sys.executable, *wrong[1:]).returncode != 0
        assert container.stop(signal.SIGTERM) == 0


def test_a_pod_is_not_ready_before_it_ends(network: Network, tmp_path: Path) -> None:
    """What the probes and Prometheus see of the configuration for Kubernetes."""
    config = ROOT / "conf/kubernetes/poorhttp.ini"
    client, shorter = network["client"], {"POORHTTP_DRAIN_DELAY": "1"}
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    user, _, group = only("USER").partition(":")
    os.chown(token, int(user), int(group))
    files = {str(token): "/etc/poorhttp-admin/token"}
    with Container(network["container"], config, env=shorter, files=files) as container:
        with container.connect(client, 9080) as admin, container.connect(client) as connection:
            assert connection.request("GET", "/light").status == 200
            assert admin.request("GET", "/-/live").status == 200
            assert admin.request("GET", "/-/ready").status == 200
            metrics = admin.request("GET", "/-/metrics", f"Authorization: Bearer {TOKEN}").body
            assert b"\npoorhttp_utilization 0\n" in metrics
            os.kill(container.init, signal.SIGTERM)
            wait_for(lambda: admin.request("GET", "/-/ready").status == 503, "that it is not ready")
            assert admin.request("GET", "/-/live").status == 200
            with container.connect(client) as late:
                assert late.request("GET", "/light").status == 200
        assert container.process.wait(HANG) == 0


def test_without_tmp(network: Network) -> None:
    """Then it does not start, and says what is missing: not only at the first large upload."""
    with pytest.raises(AssertionError, match=r"no file can be created in /tmp: Read-only"):
        Container(network["container"], env=ECHO, temporary=False)
