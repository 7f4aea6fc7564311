"""The servers of the studies: names, colours and pages, start and stop of each."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from loadtests import programs, store
from loadtests.errors import LabError, ServerFailure
from loadtests.servers import peers, registry
from loadtests.servers.pages import with_pages
from loadtests.servers.registry import Server, missing
from loadtests.servers.running import Running
from loadtests.studies import engine

FAST = ("poorhttp single", "lighttpd + 2 × single", "nginx + single", "Apache mod_wsgi 8 threads")


def _installed(server: Server) -> Server:
    """The server; skips the test, or the part of it, if that is not installed."""
    if reason := missing(server):
        pytest.skip(reason)
    return server


def _forgiving(server: Server) -> contextlib.AbstractContextManager[None]:
    """A peer of another build of Python or of another version may fail."""
    return contextlib.nullcontext() if server.ours else contextlib.suppress(ServerFailure)


class TestStart:
    @pytest.mark.parametrize("name", FAST)
    def test_pages(self, name: str) -> None:
        all_ = {server.name: server for server in (*registry.WSGI, *registry.PROXIED)}
        (server,) = with_pages([_installed(all_[name])])
        with _forgiving(server), Running(server, target="/light") as running:
            assert running.processes()
            running.stop()
            assert running.left() == []


def test_what_is_missing_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line of a run says it, but not of a peer that cannot be installed here."""
    absent = programs.Program(["no-such"], "some-package")
    monkeypatch.setitem(programs.PROGRAMS, "nginx", absent)
    monkeypatch.setattr(peers, "names", lambda: ["No-Such-Peer", "no-other-peer"])
    monkeypatch.setattr(peers, "failures", lambda: {"no-other-peer": "no compiler"})
    servers = [
        Server("one", "", "", "no-such-peer"),
        Server("other", "", "", "no-other-peer"),
        Server("proxy", "", "", programs=("nginx",)),
    ]
    lab = engine.Lab(store.Store(tmp_path / "results.jsonl", "now"), 0.1, 1, None, None)
    steps = [engine.Step(server, server.name, str) for server in servers]
    with pytest.raises(LabError):
        engine.run(lab, steps, "test", with_wrk=False, study="serial")
    lab.store.close()
    assert capsys.readouterr().err.splitlines()[0] == (
        "3 servers are not installed and left out; `python -m loadtests peers` installs "
        "no-such-peer; Debian has the others: `apt install some-package`"
    )
