"""The next version is forked before a file is saved."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.support.development import IMPATIENT, ProjectFolder, wait_text, write
from tests.testkit.process import children, wait_for_end
from tests.testkit.server import Server, environment, wait_for

#: Imports that are worth a fork server.
APP = """\
import asyncio, decimal, http.server, json, os, unittest, xml.dom.minidom

def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({{"version": "{version}", "pid": os.getpid()}}).encode()]
"""


def resting(server: Server) -> set[int]:
    """Its processes: fork server, watcher, version, and what stands by, when all are there.

    The fork server imports first what the version had to import; the preforked process of before is
    replaced.
    """
    found: list[set[int]] = [set()]

    def is_at_rest() -> bool:
        found.append(set(children(server.process.pid)))
        return len(found[-1]) == 4 and all(found[-1] == before for before in found[-50:])

    wait_for(is_at_rest, "the process that stands by")
    return found[-1]


def save(project: ProjectFolder, server: Server, number: int) -> int:
    project.save("app.py", APP.format(version=number))
    return int(json.loads(wait_text(server, f'"version": "{number}"'))["pid"])


def test_what_stands_by_is_the_next_version(project: ProjectFolder) -> None:
    """Unless it was killed; and it ends with the server."""
    project.save("app.py", APP.format(version=1))
    with project.develop() as server:
        serving = save(project, server, 2)
        for number in (3, 4):
            before = resting(server)
            serving = save(project, server, number)
            assert serving in before
        preforked = max(resting(server) - before)
        os.kill(preforked, signal.SIGKILL)
        wait_for_end(preforked)
        assert save(project, server, 5) not in before | {preforked}
        before = resting(server)
        server.stop()
        for pid in before:
            wait_for_end(pid)


#: Imported at once by the first version and by the probe that tries it; by the fork server, which
#: comes next, when a file is there.
STALLS = """\
import os, time
folder = os.path.dirname(__file__)
for number in range(3):
    try:
        os.mkdir(f"{folder}/imported-{number}")
        break
    except FileExistsError:
        pass
if number == 2:
    while not os.path.exists(folder + "/gate"):
        time.sleep(0.002)
"""

#: Would the main process wait for the fork server, then for longer than a test does.
PATIENT = """\
from poorhttp.plugins.dev.reload import fork_server
fork_server.FORK_TIMEOUT = 3600
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, 0])
def test_the_main_process_does_not_wait_for_an_import(
    number: int, project: ProjectFolder, tmp_path: Path
) -> None:
    installed = tmp_path.with_name(f"{tmp_path.name}-lib") / "site-packages"
    write(installed, {"sitecustomize.py": PATIENT, "stalls.py": STALLS})
    # So that it is not seen by who reads the source.
    app = f"import importlib\nimportlib.import_module('stal' + 'ls')\n{APP}"
    project.save("app.py", app.format(version=1))
    paths = os.pathsep.join([str(installed), environment()["PYTHONPATH"]])
    with project.develop(launcher=IMPATIENT, env={"PYTHONPATH": paths}) as server:
        # What it has imported a version tells behind a request.
        wait_text(server, '"version": "1"')
        wait_for((installed / "imported-2").exists, "the import")
        project.save("app.py", app.format(version=2))
        server.wait_log("version 2 has been loading for")
        if number:
            server.stop(signal.Signals(number))
        else:
            (installed / "gate").touch()
            wait_text(server, '"version": "2"')
