"""The promised figures of servers behind a proxy, read from stored samples."""

from __future__ import annotations

from collections.abc import Callable

from loadtests.reporting.promises import Places, Promise
from loadtests.servers.proxies.setups import GATEWAYS, UNIX, Setup
from loadtests.stats.results import Results, spread

TESTS = ("serial", "parallel", "crowd")
WHICH = {"hello": "`hello`", "light": "the light page", "heavy": "the heavy page"}


def _mode(name: str) -> str:
    return name.removeprefix("poorhttp ")


def _failed(results: Results) -> Places:
    """Of each setup and test; a run without an answer is a failure besides, and told as such."""
    chosen = results.experiment("proxies")
    return {
        f"{server}, {scenario}": found
        for scenario in chosen.scenarios()
        for server in chosen.servers(scenario)
        if (found := spread([sum(chosen.rounds(scenario, server, "failed").values())]))
    }


def _against(page: str, ours: Callable[[Setup], bool]) -> Callable[[Results], Places]:
    """CPU per request of our servers, without nginx, to uWSGI's in the same round."""

    def read(results: Results) -> Places:
        scenario = f"pass-{page}-64"
        return {
            _mode(setup.name): found
            for setup in GATEWAYS
            if setup.against and ours(setup)
            if (found := results.ratio(scenario, setup.name, setup.against, "cpu_us"))
        }

    return read


def _by(words: str) -> Callable[[Setup], bool]:
    return lambda setup: setup.name.endswith((f" by {words}", f" by {words}{UNIX}"))


FAILED = Promise(
    "",
    "failed requests of all tests, alone and behind lighttpd, nginx and HAProxy",
    0,
    "",
    _failed,
    places=0,
)
COSTS = tuple(
    Promise(
        "",
        f"CPU per request of the servers for {words}, `{how}` to us, against `uwsgi_pass` to uWSGI",
        1,
        "×",
        _against(page, _by(protocol)),
    )
    for page, words in WHICH.items()
    for how, protocol in (("uwsgi_pass", "uwsgi"), ("proxy_pass", "HTTP (kept)"))
)
