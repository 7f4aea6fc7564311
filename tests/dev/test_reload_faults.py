"""`poorhttp dev`: faults of applications, of users and of the system."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import pytest

from loadtests.network.port import free_port
from tests.support.development import APP, IMPATIENT, PART, ProjectFolder, version, wait_text, write
from tests.testkit.client import Connection
from tests.testkit.process import children, stopped, watches
from tests.testkit.server import ROOT, Program, command, wait_for

#: Is loaded when somebody lets it.
WAITS = """\
import os, time

def wait():

    while not os.path.exists("go"): time.sleep(0.01)

VERSION = {version}
wait()
"""

#: A factory that runs a line first.
CREATES = """\
import os, time

def create():
    {}
    return lambda environ, start_response: start_response("204 No Content", []) or []
"""


@pytest.mark.parametrize("reload", ["on", pytest.param("full", marks=pytest.mark.full)])
def test_a_version_that_takes_long_says_where_it_is(
    mode: str, reload: str, project: ProjectFolder
) -> None:
    with project.develop(mode, "--autoreload", reload, launcher=IMPATIENT) as server:
        kept = server.connect()
        assert kept.request("GET", "/").json()["version"] == "1"
        where = "part.py, line 5, in wait\npart.py, line 8, in &lt;module&gt;\napp.py, line 2"

        def page() -> str:
            project.save("part.py", WAITS.format(version=2))
            return wait_text(server, "has been loading for 2 s", "text/html")

        # On a busy machine it may not have come so far by then.
        wait_for(lambda: where in page(), "the place where it waits")
        assert "/__poorhttp__/" in page()
        server.wait_log("has been loading for 2 s: part.py, line 5")
        answer = kept.request("GET", "/")
        assert b"has been loading" in answer.body
        assert answer.status == 503
        (project.folder / "go").write_text("")
        server.wait_log("reloaded in")
        # Whoever has given the page may not have heard of it by now.
        wait_for(lambda: kept.request("GET", "/").status == 200, "an answer")
        assert kept.request("GET", "/").json()["part"] == "2"
        assert version(server) == "1"


@pytest.mark.parametrize(
    ("names", "target", "place"),
    [
        (["josé/shop.py"], "shop:create()", "shop.py"),
        (
            # The package of the application is seen, and not the library that it calls.
            [f"lib/site-packages/{name}.py" for name in ("library", "shop/app", "shop/__init__")],
            "shop.app:create()",
            "{}/lib/site-packages/shop/app.py",
        ),
    ],
)
def test_a_first_version_that_takes_long_says_where_it_is(
    names: list[str], target: str, place: str, tmp_path: Path
) -> None:
    """Not the line of the command that loads it; and clients may come again, until it serves."""
    library, *users = names
    sources = {library: CREATES.format("while not os.path.exists('go'): time.sleep(0.01)")}
    for name in users:
        sources[name] = CREATES.format("library.create()").replace("import", "import library,", 1)
    write(tmp_path, sources)
    (tmp_path / "josé").mkdir(exist_ok=True)
    # A command in a file that belongs to nobody, as `bin/poorhttp` of an installation does.
    write(tmp_path, {"bin/impatient": IMPATIENT[-1]})
    port = free_port()
    words = command("dev", target, "--bind", f"127.0.0.1:{port}")
    launcher = (sys.executable, tmp_path / "bin/impatient")
    env = {"PYTHONPATH": f"{ROOT}:{tmp_path}/lib/site-packages"}
    with Program(*launcher, *words, cwd=tmp_path / "josé", env=env) as program:
        program.wait_log(f"version 1 has been loading for 2 s: {place.format(tmp_path)}, line 4\n")
        with Connection(("127.0.0.1", port)) as connection:
            for method, body in (("GET", None), ("HEAD", None), ("POST", b"name=value")):
                answer = connection.request(method, "/", body=body)
                assert answer.status == 503
                assert ("Retry-After", "2") in answer.headers
            (tmp_path / "josé/go").touch()
            program.wait_line()


def test_the_first_version_may_end_its_process(project: ProjectFolder) -> None:
    project.save("part.py", "import os\nos._exit(0)\n")
    with project.develop() as server:
        wait_text(server, "while it was loaded", "text/html")
        project.save("part.py", PART.format(version=2))
        wait_for(lambda: server.get("/").status == 200, "the version that is mended")


def test_the_folder_goes_and_comes_back(tmp_path: Path) -> None:
    project = ProjectFolder(tmp_path / "project")
    with project.develop(tracebacks=True) as server:
        watcher = next(pid for pid in children(server.process.pid) if watches(pid))
        # At once: else the version that finds the files gone may still find an empty folder, and
        # that it goes too is no change of a file.
        with stopped(watcher):
            shutil.rmtree(project.folder)
        wait_text(server, "the folder to search for app was removed", "text/html")
        project.save("part.py", PART.format(version=2))
        project.save("app.py", APP.format(version=2))
        wait_for(lambda: server.get("/").status == 200, "the version that has come back")
        assert version(server) == "2"
        assert "a task of the main process failed" not in server.log()


def test_a_new_configuration_is_read_once(project: ProjectFolder) -> None:
    configuration = "[http]\ntarget = app:application\nbind = 127.0.0.1:0\n"
    file = project.folder / "server.ini"
    file.write_text(configuration)
    with project.develop(target="--config=server.ini", bind=()) as server:
        for number in range(1, 4):
            project.save("server.ini", configuration + "#" * number)
            server.wait_log("reloaded: the new version serves", number)
        # Whatever came twice would have been told before this.
        project.save_version(2)
        wait_for(lambda: version(server) == "2", "the next version")
        assert server.log().count("main] info: reloading") == 3


def test_a_main_process_of_its_own_is_not_for_development(project: ProjectFolder) -> None:
    with project.develop() as server:
        server.process.send_signal(signal.SIGUSR2)
        server.wait_log("with autoreload the main process cannot be replaced")
        project.save_version(2)
        wait_for(lambda: version(server) == "2", "the next version")
