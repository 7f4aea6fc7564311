"""Metrics sent to StatsD: lines, changes, quantiles, a real receiver."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from poorhttp.plugins.monitor.metrics import changes, statsd
from poorhttp.plugins.monitor.metrics.families import collect
from poorhttp.plugins.monitor.options import receiver
from tests.support.binary_upgrade import end, upgrade
from tests.support.forked_command import run_command
from tests.support.status_documents import DOCUMENTS, document, series, troubled
from tests.testkit.client import HANG, Connection
from tests.testkit.process import answers_at_admin, children
from tests.testkit.server import Server, join, patched, wait_for
from tests.testkit.versions import APP, Versions, told

#: A line of StatsD, with or without the tags of DogStatsD.
LINE = re.compile(r"([A-Za-z0-9_.-]+):(\d+(?:\.\d+)?)\|([cg])(?:\|#([^|#\s]+))?")


def lines(
    made: list[object] | None = None, prefix: str = "", tags: tuple[str, ...] | None = None
) -> dict[str, str]:
    """The lines of the last document of a series, by their names; all are as they should be."""
    documents = made or [document()]
    before: changes.Numbers = {}
    for each in documents[:-1]:
        before = changes.numbers(collect(each))  # type: ignore[arg-type]
    metrics = collect(documents[-1])  # type: ignore[arg-type]
    grown = changes.growth(changes.numbers(metrics), before)
    found = {}
    for line in statsd.lines(metrics, grown, prefix, tags):
        match = LINE.fullmatch(line)
        assert match, line
        name, value, kind, labels = match.groups()
        key = f"{name}#{labels}" if labels else name
        assert key not in found
        found[key] = f"{value}|{kind}"
    return found


@pytest.mark.parametrize("tags", [None, (), ("env:prod", "team:web")])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_becomes_lines(name: str, tags: tuple[str, ...] | None) -> None:
    found = lines([DOCUMENTS[name]()], "poorhttp.", tags)
    assert found
    assert all(key.startswith("poorhttp.") for key in found)


def test_changes_are_sent() -> None:
    first, second = series(2, requests=500)
    found = lines([first, second])
    assert found["requests"] == "500|c"
    assert found["responses.2xx"] == "450|c"
    assert found["worker_requests.1"] == "250|c"
    # Gauges are sent as they are, and counters without a change not at all.
    assert found["requests_in_flight"] == "3|g"
    assert "worker_restarts.died" not in found
    assert "info" not in found
    assert "requests_in_hand" not in found


def test_a_counter_that_begins_again_counts_from_there() -> None:
    """A worker was replaced: its successor has answered 7 requests since."""
    first, second = series(2, requests=0)
    second["services"][0]["workers"][0]["requests"] = 7
    found = lines([first, second])
    assert found["worker_requests.1"] == "7|c"
    assert "worker_requests.2" not in found


def test_labels_are_parts_of_the_name_or_tags() -> None:
    plain = lines([troubled()], "web.")
    assert plain["web.shop.workers_wanted"] == "5|g"
    assert plain["web.chat.workers_wanted"] == "1|g"
    assert plain["web.shop.responses.5xx"] == "150|c"
    assert plain["web.shop.tls_certificate_expiry_seconds._etc_ssl_shop_pem"].endswith("|g")
    tagged = lines([troubled()], "web.", ("env:prod",))
    assert tagged["web.workers_wanted#service:shop,env:prod"] == "5|g"
    assert tagged["web.responses#service:shop,code:5xx,env:prod"] == "150|c"
    assert tagged["web.ready#env:prod"] == "0|g"
    assert lines([document()], "", ())["responses#code:5xx"] == "150|c"
    assert lines([document()], "", ())["ready"] == "1|g"


def test_durations_are_quantiles() -> None:
    found = lines([document()])
    counts = document()["services"][0]["figures"]["application"]
    assert found["request_application_seconds.count"] == f"{sum(counts['counts'])}|c"
    assert float(found["request_application_seconds.sum"][:-2]) == pytest.approx(counts["sum"])
    p50, p99 = (float(found[f"request_application_seconds.p{part}"][:-2]) for part in (50, 99))
    assert 0 < p50 < p99
    # Nothing new: no quantiles of long ago.
    quiet = lines([document(), document()])
    assert quiet["request_application_seconds.p99"] == "0|g"
    assert "request_application_seconds.count" not in quiet


def test_datagrams_are_filled_and_not_cut() -> None:
    chance = random.Random(1)
    those = ["x" * chance.randint(1, 300) for _ in range(500)]
    packed = list(statsd.datagrams(those, 1432))
    assert b"\n".join(packed).decode().split("\n") == those
    assert max(map(len, packed)) <= 1432
    assert len(packed) < 70
    assert list(statsd.datagrams([], 10)) == []
    # A line that is longer than a datagram goes alone.
    assert list(statsd.datagrams(["a", "b" * 20, "c"], 10)) == [b"a", b"b" * 20, b"c"]


def test_what_a_killed_process_was_about_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of it: an interval is lost."""
    sent = changes.Sent()
    sent.write({"a": [1.0]})
    assert changes.Sent(os.dup(sent.fd)).read() == {"a": [1.0]}
    write = os.pwrite

    def be_killed(fd: int, data: bytes, place: int) -> int:
        if place == changes.HEADER:
            raise KeyboardInterrupt
        return write(fd, data, place)

    monkeypatch.setattr(os, "pwrite", be_killed)
    with pytest.raises(KeyboardInterrupt):
        sent.write({"a": [2.0]})
    assert sent.read() is None
    sent.close()


@pytest.mark.parametrize("kind", ["udp4", "udp6", "unix", "abstract"])
def test_what_is_sent_arrives(kind: str, tmp_path: Path) -> None:
    kinds: dict[str, tuple[int, Any, str]] = {
        "udp4": (socket.AF_INET, ("127.0.0.1", 0), "127.0.0.1:{}"),
        "udp6": (socket.AF_INET6, ("::1", 0), "[::1]:{}"),
        "unix": (socket.AF_UNIX, f"{tmp_path}/s", f"unix:{tmp_path}/s"),
        "abstract": (socket.AF_UNIX, f"\0{tmp_path.name}/s", f"unix:@{tmp_path.name}/s"),
    }
    family, place, where = kinds[kind]
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(HANG)
        sock.bind(place)
        where = where.format(sock.getsockname()[1])
        those = [f"name{number}:1|c" for number in range(200)]
        statsd.send(receiver(where), those)
        got = b""
        while got.count(b"\n") < len(those) - 1:
            got += sock.recv(65536) + b"\n"
        assert got.decode().split() == those


# From a server


class Receiver:
    """A StatsD that sums up counters, as the real one does, and keeps the last values of gauges."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._receive)
        self.where = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.counters: Counter[str] = Counter()
        self.gauges: dict[str, float] = {}
        self.tags: set[str] = set()

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        join(self._thread)
        self._socket.close()

    def _receive(self) -> None:
        while datagram := self._socket.recv(65536):
            for line in datagram.decode().split("\n"):
                match = LINE.fullmatch(line)
                assert match, line
                name, value, kind, tags = match.groups()
                self.tags |= set((tags or "").split(","))
                if kind == "c":
                    self.counters[name] += float(value)  # type: ignore[assignment]
                else:
                    self.gauges[name] = float(value)

    def wait(self, name: str, value: float) -> None:
        wait_for(lambda: self.counters.get(name, self.gauges.get(name)) == value, f"{name} {value}")


#: A server that sends more often.
QUICK = patched("poorhttp.plugins.monitor.metrics.statsd", INTERVAL=0.05)


def test_a_server_sends(mode: str, versions: Versions) -> None:
    """Each request once: over a reload, the death of the process that sends, and the end."""
    with Receiver() as receiver:
        options = ("--statsd", receiver.where, "--workers", "1")
        with versions.serve(mode, *options, launcher=QUICK) as server:
            asked = 5
            for _ in range(asked):
                told(server)
            receiver.wait("poorhttp.requests", asked)
            receiver.wait("poorhttp.responses.2xx", asked)
            receiver.wait("poorhttp.workers_alive", 1)
            receiver.wait("poorhttp.ready", 1)
            server.process.send_signal(signal.SIGHUP)
            server.wait_log("reloaded: the new version serves")
            told(server)
            receiver.wait("poorhttp.requests", asked + 1)
            receiver.wait("poorhttp.reloads.succeeded", 1)
            wait_for(lambda: len(senders(server)) == 1, "the end of the one before")
            (sender,) = senders(server)
            os.kill(sender, signal.SIGKILL)
            server.wait_log(f"{sender} was killed by SIGKILL and is replaced")
            told(server)
            receiver.wait("poorhttp.requests", asked + 2)
            assert "listening on" in server.log()
            assert "/-/live" not in server.log()
    assert receiver.counters["poorhttp.requests"] == asked + 2


def senders(server: Server) -> list[int]:
    return [pid for pid in children(server.process.pid) if answers_at_admin(pid)]


def test_the_last_requests_are_sent_at_the_end(mode: str, versions: Versions, folder: Path) -> None:
    """Also if somebody has a connection to the admin address."""
    launcher = patched("poorhttp.plugins.monitor.metrics.statsd", INTERVAL=600)
    with Receiver() as receiver:
        options = ("--statsd", receiver.where, "--admin", f"unix:{folder}/admin")
        more = ("--statsd-prefix", "web.a", "--statsd-tags", "env:prod")
        with versions.serve(mode, *options, *more, launcher=launcher) as server:
            for _ in range(3):
                told(server)
            with Connection(f"{folder}/admin") as connection:
                assert connection.request("GET", "/metrics").status == 200
                assert not receiver.gauges
                server.stop()
        assert receiver.counters["web.a.requests"] == 3
        assert {"env:prod", "code:2xx", "state:idle"} <= receiver.tags


def test_an_upgrade_counts_once(mode: str, versions: Versions, tmp_path: Path) -> None:
    with Receiver() as receiver:
        options = ("--statsd", receiver.where, "--pidfile", str(tmp_path / "pid"))
        with versions.serve(mode, *options, launcher=QUICK) as server:
            for _ in range(4):
                told(server)
            receiver.wait("poorhttp.requests", 4)
            pid = upgrade(server, tmp_path / "pid")
            for _ in range(3):
                told(server)
            receiver.wait("poorhttp.requests", 7)
            end(server, pid)
    assert receiver.counters["poorhttp.requests"] == 7


def test_nobody_listens(mode: str, versions: Versions, tmp_path: Path) -> None:
    """The server goes on; the log says it once, and when it is over."""
    with versions.serve(mode, "--statsd", f"unix:{tmp_path}/statsd", launcher=QUICK) as server:
        server.wait_log(f"metrics do not reach StatsD at unix:{tmp_path}/statsd: [Errno 2]")
        told(server)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(HANG)
            sock.bind(f"{tmp_path}/statsd")
            assert b"poorhttp." in sock.recv(65536)
        server.wait_log(f"metrics are sent to StatsD at unix:{tmp_path}/statsd again")
        assert server.log().count("metrics do not reach StatsD") <= 2


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--statsd", "8125"), 2, "has no host"),
        (("--statsd", "127.0.0.1:0"), 2, "is no receiver of datagrams"),
        (("--statsd", "fd:3"), 2, "is no receiver of datagrams"),
        (("--statsd", "https://127.0.0.1:8125"), 2, "is no receiver of datagrams"),
        (("--statsd-prefix", "a b"), 2, "is no prefix of names"),
        (("--statsd-tags", "a|b"), 2, "is no tag"),
        (("--statsd", "127.0.0.1:8125", "--supervisor", "off"), 3, "at odds with statsd"),
        (("--otel", "on", "--supervisor", "off"), 3, "only traces are sent without one"),
    ],
)
def test_what_cannot_be(options: tuple[str, ...], code: int, text: str) -> None:
    done = run_command("serve", APP, "--bind", "127.0.0.1:0", *options)
    assert (done.returncode, text in done.stderr) == (code, True), done.stderr
