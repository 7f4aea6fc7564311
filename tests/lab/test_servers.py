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


@pytest.mark.parametrize("name", FAST)
def test_start_and_stop(name: str) -> None:
    (found,) = (one for one in (*registry.WSGI, *registry.PROXIED) if one.name == name)
    if reason := missing(found):
        pytest.skip(reason)
    (server,) = with_pages([found])
    # A peer of another build of Python or of another version may fail.
    forgiving = contextlib.nullcontext() if server.ours else contextlib.suppress(ServerFailure)
    with forgiving, Running(server, target="/light") as running:
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
