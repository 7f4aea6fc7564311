"""The study `influence`: its sentence, missing measurements, and a small run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from loadtests.clients.load import Job, Load
from loadtests.clients.native import fetch
from loadtests.clients.registry import Client
from loadtests.errors import LabError
from loadtests.servers import registry
from loadtests.stats.results import Results
from loadtests.studies import influence
from loadtests.studies.influence import grid, largest
from tests.lab.studies.small_run import run, tables

MADE_UP = ("slow", "middle", "fast")
SPEEDS = {"slow": 100.0, "middle": 1_000.0, "fast": 10_000.0}


def sample(client: str, server: str, number: int, rate: float, busy: float) -> dict[str, Any]:
    return {
        "record": "sample",
        "run": "r",
        "experiment": influence.NAME,
        "scenario": f"page-4, {client}",
        "server": server,
        "client": client,
        "colour": "#000000",
        "round": number,
        "requests": round(rate),
        "seconds": 1.0,
        "rate": rate,
        "octet_rate": 1_000 * rate,
        "errors": {},
        "client_busy": busy,
        "note": "",
        "spins": client == "spinning",
        "server_busy": 0.5,
    }


def made_up(rates: Mapping[str, Callable[[float], tuple[float, float]]]) -> Results:
    """Each client's rate and busy share by the speed of a server; three observations."""
    return Results(
        [
            sample(client, server, number, rate * (1 + 0.01 * number), busy)
            for number in range(3)
            for client, seen in rates.items()
            for server in MADE_UP
            for rate, busy in [seen(SPEEDS[server])]
        ]
    )


Seen = Callable[[float], tuple[float, float]]
VERDICTS: list[tuple[dict[str, Seen], str, list[str]]] = [
    (
        {"good": lambda speed: (speed, 0.4), "better": lambda speed: (1.01 * speed, 0.3)},
        "No, the client was not the bottleneck: none used 97% of a core",
        ["the client explains 0.0%", "the server 100.0%"],
    ),
    (
        # By all but the slow server, and its requests per second stay what they are.
        {
            "good": lambda speed: (speed, speed / 11_000),
            "weak": lambda speed: (min(speed, 500.0), min(1.0, speed / 500)),
        },
        "In part, the client was the bottleneck: 1 of 2 clients used 97%",
        ["(weak with 2 of 3 servers)", "both together 37.3%"],
    ),
    (
        {"one": lambda _: (100.0, 1.0), "two": lambda _: (300.0, 0.99)},
        "Yes, the client was the bottleneck: 2 of 2 clients",
        ["one with all 3 servers", "the client explains 100.0%"],
    ),
    (
        # One that spins is busy with every server, and that says nothing.
        {"spinning": lambda speed: (speed, 1.0), "b": lambda speed: (speed, 0.2)},
        "No, the client was not the bottleneck",
        [],
    ),
]


@pytest.mark.parametrize(("rates", "begins", "says"), VERDICTS)
def test_verdict(rates: dict[str, Seen], begins: str, says: list[str]) -> None:
    section = influence.STUDY.report(made_up(rates))[0]
    assert section.answer.startswith(begins)
    assert all(words in section.answer for words in says)
    assert section.answer.count(". ") == 0
    spins = "Whether spinning was the limit cannot be told" in " ".join(section.text)
    assert spins == ("spinning" in rates)


def test_a_server_that_failed_with_two_clients() -> None:
    whole = made_up({name: lambda speed: (speed, 0.5) for name in ("a", "b", "c")})
    lost = [("a", "middle"), ("b", "middle")]
    results = Results([one for one in whole.samples if (one["client"], one["server"]) not in lost])
    found = grid(results, "rate")
    part = largest(found)
    assert (part.replications, found.left_out(part)) == (3, ["middle"])
    section = influence.STUDY.report(results)[0]
    table = tables([section])["influence-rate"]
    assert [row[0] for row in table.rows] == ["fast", "slow", "middle", "Mean", "Effect"]
    assert table.rows[2][1:3] == [None, None]
    assert table.rows[2][3] is not None
    told = " ".join(section.text)
    assert "without middle" in told
    assert "a with middle; b with middle" in told


def made(name: str, reason: str = "", fails_with: str = "") -> Client:
    """A client that is as ours in C, is missing, or fails."""

    def drive(job: Job, core: int | None) -> Load:
        if fails_with:
            raise LabError(fails_with)
        return fetch.drive(job.port, job.seconds, job.connections, [[job.target]], core=core)

    return Client(name, "#123456", drive, "", lambda: reason, lambda: "1")


def test_a_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = registry.named(["poorhttp single", "poorhttp threading 8"])
    clients = [
        made("one"),
        made("two"),
        made("absent", reason="absent is not installed"),
        made("broken", fails_with="it gave no result"),
    ]
    monkeypatch.setattr(influence, "CLIENTS", clients)
    results = run(influence.STUDY, tmp_path, chosen, clients=None)
    seen = [(one["client"], one["server"], one["round"]) for one in results.samples]
    assert sorted(seen) == sorted(
        (client, server.name, number)
        for client in ("one", "two")
        for server in chosen
        for number in range(influence.REPLICATIONS)
    )
    for one in results.samples:
        assert one["requests"] > 0
        assert one["errors"] == {}
        assert one["octet_rate"] > 10_000 * one["rate"]
        assert one["client_busy"] > 0
    # Each failure in its place: the broken client with both servers, twice.
    assert len(results.failures) == 4
    assert {one["server"] for one in results.missing} == {"client absent"}
    told = " ".join(influence.STUDY.report(results)[0].text)
    assert "it gave no result" in told
    assert "absent is not installed" in told
    variance = tables(influence.STUDY.report(results))["influence-rate-variance"]
    shares = [row[2] for row in variance.rows]
    assert all(isinstance(share, float) for share in shares)
    assert sum(float(str(share)) for share in shares[:-1]) == pytest.approx(1)
