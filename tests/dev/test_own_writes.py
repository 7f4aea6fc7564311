"""`poorhttp dev`: files of the project that the application writes, which reload it again."""

from __future__ import annotations

import re
import sys

import pytest

from poorhttp.plugins.dev.reload.own_writes import (
    AT_ONCE,
    AT_ONCE_OF_OTHERS,
    AT_ONCE_WHILE_LOADING,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    QUIET,
    OwnWrites,
)
from tests.support.development import ProjectFolder, answering, wait_text

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


@pytest.mark.parametrize("writes", ["write('generated.py')", "run('generated.py')"])
def test_a_file_that_is_written_again_and_again(writes: str, project: ProjectFolder) -> None:
    save(project, 1, writes)
    with project.develop() as server:
        found = server.wait_line(EXCLUDE)
        # What others save is served as ever.
        for version in (2, 3):
            save(project, version, writes)
            wait_text(server, f"version {version}")
        assert server.log().count("reload_exclude") == 1
    if writes.startswith("run"):
        return
    # With the option there is no cycle: what a cycle would do comes before the next save.
    with project.develop("threading", *found.groups()) as server:
        for version in (4, 5):
            save(project, version, writes)
            wait_text(server, f"version {version}")
        assert not re.search(r"reloaded.*generated", server.log())


def test_a_version_that_has_written_half_of_the_configuration_is_not_ended(
    project: ProjectFolder,
) -> None:
    text = "[http]\\ntarget = app:application\\nbind = 127.0.0.1:0\\n"
    # The second version that is loaded is slower than the watcher expects of a save.
    writes = f"""
with open("loads", "a+") as loads, open("server.ini", "w") as file:
    loads.write("x")
    if loads.tell() == 2:
        time.sleep(0.2)
    file.write("{text}# %s" % time.time())
"""
    (project.folder / "server.ini").write_text(text.replace("\\n", "\n"))
    save(project, 1, writes)
    with project.develop(target="--config=server.ini", bind=()) as server:
        server.wait_line(EXCLUDE)
        save(project, 2, writes)
        wait_text(server, "version 2")


def test_a_configuration_that_is_saved_while_the_one_before_is_loaded(
    project: ProjectFolder,
) -> None:
    text = "[http]\\ntarget = app:application\\nbind = 127.0.0.1:0\\nenv = SAVED="
    saved = f"pathlib.Path('server.ini').write_text('{text}' + number)"
    # The first reload finds the second configuration, and then the third is saved, so long before
    # the watcher starts that it is none of the same tick of the clock.
    launcher = (
        sys.executable,
        "-c",
        "import pathlib, sys, time\n"
        "from poorhttp.cli import main; from poorhttp.worker import service\n"
        "made = service.Service.__init__\n"
        "def init(self, settings, *arguments):\n"
        "    made(self, settings, *arguments)\n"
        "    number = str(int(settings.env[0][1]) + 1)\n"
        f"    if number == '3': {saved}; time.sleep(0.1)\n"
        "service.Service.__init__ = init; sys.argv = sys.argv[5:]; sys.exit(main())",
    )
    project.save("app.py", answering("os.environ['SAVED'].encode()", "import os\n"))
    content = text.replace("\\n", "\n")
    project.save("server.ini", f"{content}1")
    with project.develop(launcher=launcher, target="--config=server.ini", bind=()) as server:
        wait_text(server, "1")
        project.save("server.ini", f"{content}2")
        wait_text(server, "3")


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


def test_cycles_of_other_files_and_of_unknown_writers() -> None:
    """Temporary folders have another name each time; a library in C is not seen to write."""
    now = 100.0
    writes = OwnWrites(lambda: now)
    for number in range(AT_ONCE_OF_OTHERS + 1):
        now += 0.1
        writes.note(f"/tmp{number}/a.py")
        wanted = FIRST_PAUSE if number == AT_ONCE_OF_OTHERS else 0
        assert writes.pause([f"/tmp{number}/a.py"]) == wanted
    now += QUIET + FIRST_PAUSE
    for number in range(AT_ONCE_WHILE_LOADING + 1):
        now += 0.1
        wanted = FIRST_PAUSE if number == AT_ONCE_WHILE_LOADING else 0
        assert writes.pause(["/a"], is_loading=True) == wanted
        # Somebody saves it after it was loaded.
        assert writes.pause(["/a"]) == 0
