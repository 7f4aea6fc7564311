"""`poorhttp dev`: files of the project that the application writes, which reload it again."""

from __future__ import annotations

import re

import pytest

from poorhttp.plugins.dev.reload.own_writes import (
    AT_ONCE,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    QUIET,
    OwnWrites,
)
from tests.support.development import ProjectFolder, wait_text

#: Writes something else each time it is loaded.
APP = """\
import os, pathlib, subprocess, sys, time
def write(name): pathlib.Path(name).write_text(f"# {{time.time()}}\\n")
def run(name): subprocess.run(["sh", "-c", f"echo '#' $$ > {{name}}"])
{writes}
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"version {version}"]
"""


EXCLUDE = re.compile(r"leave it out with reload_exclude \((\S+) (\S+)\)")


def save(project: ProjectFolder, version: int, writes: str) -> None:
    project.save("app.py", APP.format(version=version, writes=writes))


@pytest.mark.parametrize(
    "writes",
    [
        "write('generated.py')",
        "run('generated.py')",
    ],
)
def test_a_file_that_is_written_again_and_again(writes: str, project: ProjectFolder) -> None:
    save(project, 1, writes)
    with project.develop() as server:
        found = server.wait_line(EXCLUDE)
        # What others save is served as ever.
        for version in (2, 3):
            save(project, version, writes)
            wait_text(server, f"version {version}")
        assert server.log().count("reload_exclude") == 1
    if not writes.startswith("write"):
        return
    # With the option there is no cycle: what a cycle would do comes before the next save.
    with project.develop("threading", *found.groups()) as server:
        for version in (4, 5):
            save(project, version, writes)
            wait_text(server, f"version {version}")
        assert not re.search(r"reloaded.*generated", server.log())


def test_pauses_grow_until_it_is_quiet() -> None:
    now = 100.0
    writes = OwnWrites(lambda: now)

    def change(*names: str, note: bool = True) -> float:
        nonlocal now
        now += 0.1
        for name in names if note else ():
            writes.note(name)
        pause = writes.pause(names)
        now += pause
        return pause

    quick = [0.0] * AT_ONCE
    assert [change("/a") for _ in range(AT_ONCE)] == quick
    assert [change("/a") for _ in range(3)] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    # Somebody else's save is none of these, also together with another one.
    assert change("/b", note=False) == 0
    writes.note("/a")
    assert writes.pause(["/a", "/b"]) == 0
    assert [change("/a") for _ in range(9)][-1] == LONGEST_PAUSE
    now += QUIET + LONGEST_PAUSE
    assert [change("/a") for _ in range(AT_ONCE)] == quick
    assert change("/a") == FIRST_PAUSE
    # What was written long ago somebody else has written now.
    now += QUIET
    assert [change("/a", note=False) for _ in range(9)] == [0.0] * 9
