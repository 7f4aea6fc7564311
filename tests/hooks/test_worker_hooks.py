"""Worker hooks of a plug-in (`poorhttp.worker_hooks`): when they are called, and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.forked_command import run_command
from tests.support.plug_in import install
from tests.testkit.server import ROOT, Server

APP = "tests.apps.gate:application"

#: Notes each call in a file; raises in the method that the environment names.
NOTING = """\
import os
from poorhttp.worker.plugin_hooks import WorkerHooks

def noting(name):
    def method(self, *arguments):
        with open(os.environ["NOTES"], "a") as notes:
            notes.write(f"{name}\\n")
        if os.environ.get("FAILS") == name:
            raise KeyError(name)
        return getattr(WorkerHooks, name)(self, *arguments)
    return method

HOOKS = type("Noting", (WorkerHooks,), {name: noting(name) for name in NAMES})()
"""
IN_MAIN = ("complete", "check", "approve", "opened")
IN_WORKER = ("start", "before_loading", "wrap_target", "wrap", "serve")
NAMES = (*IN_MAIN, *IN_WORKER, "stop", "try_open")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment with the plug-in, which `plugins` names."""
    site = tmp_path / "site"
    site.mkdir()
    text = f"NAMES = {NAMES}\n{NOTING}"
    install(site, "noting", {"worker_hooks": "noting = noting:HOOKS"}, {"noting": text})
    notes = str(tmp_path / "notes")
    return {"PYTHONPATH": f"{ROOT}:{site}", "POORHTTP_PLUGINS": "noting", "NOTES": notes}


def noted(tmp_path: Path) -> list[str]:
    """The methods that were called."""
    return (tmp_path / "notes").read_text().split()


@pytest.mark.parametrize(
    "options", [(), ("--preload", "on"), ("--supervisor", "off")], ids=["", "preload", "alone"]
)
def test_their_order(
    mode: str, options: tuple[str, ...], env: dict[str, str], tmp_path: Path
) -> None:
    with Server(APP, mode, *options, "--workers", "1", cwd=tmp_path, env=env) as server:
        assert server.get("/process").status == 200
    in_worker = list(IN_WORKER)
    if options[:1] == ("--preload",):
        # The application is loaded before the worker is forked.
        in_worker.remove("start")
        in_worker.insert(in_worker.index("serve"), "start")
    assert noted(tmp_path) == [*IN_MAIN, *in_worker, "stop"]


def test_a_check_calls_what_it_can(env: dict[str, str], tmp_path: Path) -> None:
    done = run_command("check", APP, "--bind", "127.0.0.1:0", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert noted(tmp_path) == ["complete", "try_open", "check", "approve", "wrap_target"]


@pytest.mark.parametrize("name", [*IN_MAIN, "start", "serve"])
def test_one_that_raises_is_named(name: str, env: dict[str, str], tmp_path: Path) -> None:
    words = ("serve", APP, "--bind", "127.0.0.1:0")
    done = run_command(*words, cwd=tmp_path, env={**env, "FAILS": name})
    assert done.returncode == 4
    wanted = f"plug-in noting of noting (poorhttp.worker_hooks): {name}: KeyError: '{name}'"
    assert wanted in done.stderr
    assert "Traceback" not in done.stderr


def test_an_end_that_fails_is_logged(env: dict[str, str], tmp_path: Path) -> None:
    env["FAILS"] = "stop"
    log = ("--error-log", "error.log")
    with Server(APP, "threading", *log, cwd=tmp_path, env=env, tracebacks=True):
        pass
    text = (tmp_path / "error.log").read_text()
    assert "the end of a plug-in failed: ApplicationError: plug-in noting of noting" in text
