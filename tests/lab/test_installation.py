"""The lab's wheel in a fresh environment, and the lab in a clone that is not built."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.testkit.client import HANG
from tests.testkit.server import ROOT

pytestmark = pytest.mark.xdist_group("lab-installation")

LAUNCHER = """\
#!{python}
import sys
from poorhttp.cli import main
sys.exit(main())
"""
APPLICATION = """\
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
"""
#: Runs commands of the lab in forks of a process that has imported it. Takes their words as JSON, a
#: line for each, and answers with the exit code; their output goes to its standard error.
FORKING = """\
import json, os, sys
from pathlib import Path
import poorlab
sys.path.insert(0, str(Path(poorlab.__file__).with_name("lab")))
import loadtests.__main__
import loadtests.reporting.page
for line in sys.stdin:
    if (pid := os.fork()) == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    sys.exit()
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
sys.argv = ["poorlab", *json.loads(line)]
sys.exit(poorlab.main())
"""
LOG = '127.0.0.1 - - [12/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 2\n'
#: What `pip` fetches, and comparisons (test_verdict.py).
LEFT_OUT = ("peers", "compare")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment as `pip install '.[lab]'` makes it, but for the compilation."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/*/site-packages")
    shutil.copytree(
        ROOT / "poorhttp", packages / "poorhttp", ignore=shutil.ignore_patterns("__pycache__")
    )
    # What the lab needs besides; an editable server there is not read: it has a `.pth` of its own.
    (packages / "others.pth").write_text("\n".join(site.getsitepackages()))
    command = folder / "bin" / "poorhttp"
    command.write_text(LAUNCHER.format(python=folder / "bin" / "python"))
    command.chmod(0o755)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of lab and server, without anything that is built."""
    folder = tmp_path_factory.mktemp("clone")
    left_out = shutil.ignore_patterns("__pycache__", "*.so", "results", "build", "*.egg-info")
    for name in ("loadtests", "apps", "poorhttp", "proxy"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out)
    shutil.copy(ROOT / "LICENSE", folder)
    return folder


@pytest.fixture(scope="module")
def poorlab(python: Path, clone: Path) -> Path:
    """The command, installed by pip: the wheel of the source distribution that a clone makes."""
    build = "import sys; from setuptools import build_meta as by; print(by.build_{}(sys.argv[1]))"
    dist = str(clone / "dist")
    done = ended([sys.executable, "-c", build.format("sdist"), dist], clone / "loadtests")
    ended(["tar", "-xf", done.splitlines()[-1]], clone / "dist")
    (source,) = (clone / "dist").glob("*/")
    done = ended([sys.executable, "-c", build.format("wheel"), dist], source)
    wheel = clone / "dist" / done.splitlines()[-1]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    ended([*pip, "--no-index", "--no-deps", str(wheel)], clone)
    return python.with_name("poorlab")


def own_environ(environ: dict[str, str]) -> dict[str, str]:
    """The environment with these variables, and without the path of the tests' modules."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, **environ}


def ended(command: list[str], folder: Path, **environ: str) -> str:
    """What a command prints, run in a folder; it must not fail."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=own_environ(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def records(path: Path, *wrong: str) -> list[dict[str, object]]:
    """The records of a file of results, of which none may be of these kinds."""
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [one for one in found if one["record"] in wrong] == []
    return found


# In a clone


def test_a_study_in_another_folder(python: Path, clone: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    words = ["serial", "--tiny", "--servers", "poorhttp single", "--output", str(path)]
    words += ["--page", str(tmp_path / "page.html")]
    ended([str(python), "-m", "loadtests", *words], tmp_path, PYTHONPATH=str(clone))
    samples = [one for one in records(path, "missing", "failure") if one["record"] == "sample"]
    assert {one["server"] for one in samples} == {"poorhttp single"}


def test_a_server_that_is_built_is_measured(python: Path) -> None:
    """In a clone with a built server it is that one: who develops it measures what he has built."""
    code = "from loadtests import python_path; print(python_path.uses_installed())"
    assert ended([str(python), "-c", code], ROOT) == "False\n"
    assert sys.executable != str(python)


# Installed


def guided() -> list[list[str]]:
    """The commands of the guide in their order, each in its smallest amount."""
    page = (ROOT / "docs/guides/load-lab.md").read_text(encoding="utf-8")
    found = []
    for line in re.findall(r"^(?:\$ )?(poorlab .*)", page, re.MULTILINE):
        words = [word for word in shlex.split(line, comments=True) if word != "--full"]
        if words[1] == "report":
            assert "results.jsonl" in words
        elif words[1] in ("load", "replay"):
            # The machine may be as busy as it likes; a p99 takes 100 requests.
            words = [word.replace("p99 > 50 ms", "p99 > 900 s") for word in words]
            words.append("--seconds=1")
        else:
            words.append("--budget=2" if words[1] == "advise" else "--tiny")
        if words[1] not in LEFT_OUT and "--url" not in words:
            found.append(words[1:])
    return found


@pytest.fixture(scope="module")
def reader(poorlab: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader of the guide, in a folder with two applications and nothing else."""
    one = Reader(poorlab, tmp_path_factory.mktemp("reader"))
    yield one
    one.end()


class Reader:
    """Runs commands of the lab where neither a compiler nor a shell is on the path."""

    def __init__(self, poorlab: Path, folder: Path) -> None:
        self.poorlab = poorlab
        self.folder = folder
        self.packages = next(poorlab.parent.parent.glob("lib/*/site-packages"))
        self.before = set(self.packages.rglob("*"))
        for name in ("shop.py", "app.py"):
            (folder / name).write_text(APPLICATION)
        (folder / "access.log").write_text(LOG)
        programs = folder / "programs"
        programs.mkdir()
        # Of util-linux: starts a program on a core.
        (programs / "taskset").symlink_to(shutil.which("taskset") or "missing")
        for name in ("gunicorn", "uwsgi"):
            (programs / name).symlink_to(Path(sys.executable).with_name(name))

        path = f"{self.poorlab.parent}:{programs}"
        self.environ = {"PATH": path, "XDG_CACHE_HOME": str(folder / "cache")}
        self.forking: subprocess.Popen[str] | None = None

    def end(self) -> None:
        """Ends the process that forks."""
        if self.forking:
            self.forking.communicate(timeout=HANG)

    def execute(self, *words: str) -> str:
        """What a command prints; it must not fail."""
        return ended([str(self.poorlab), *words], self.folder, **self.environ)

    def run(self, *words: str) -> None:
        """Runs a command, as a fork, which is started quickly; it must not fail."""
        said = self.poorlab.with_name("said.txt")
        if self.forking is None:
            with said.open("w") as output:
                self.forking = subprocess.Popen(
                    [str(self.poorlab.with_name("python")), "-c", FORKING],
                    cwd=self.folder,
                    env=own_environ(self.environ),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    text=True,
                )
        assert self.forking.stdin
        assert self.forking.stdout
        before = said.stat().st_size
        self.forking.stdin.write(f"{json.dumps(words)}\n")
        self.forking.stdin.flush()
        code = self.forking.stdout.readline()
        assert code == "0\n", said.read_bytes()[before:].decode()

    def results(self) -> list[Path]:
        """The files of results, the newest last."""
        return sorted((self.folder / "poorlab-results").glob("*.jsonl"), key=os.path.getmtime)


def of_guide() -> list[ParameterSet]:
    """The commands of the guide; of many searches and loads the others are left to `test-full`."""
    commands = guided()
    assert {words[0] for words in commands} == {"load", "replay", "advise", "serial", "report"}
    cases = []
    for words in commands:
        alike = [each for each in commands if each[0] == words[0]]
        left = {"load": alike[1:-1], "advise": alike[1:], "serial": alike[:-1]}
        is_left = words in left.get(words[0], [])
        marks = [pytest.mark.full] if is_left else []
        cases.append(pytest.param(words, id=" ".join(words), marks=marks))
    return cases


@pytest.mark.parametrize("words", of_guide())
def test_a_command_of_the_guide(reader: Reader, words: list[str]) -> None:
    words = [*words]
    if words[0] == "report":
        shutil.copy(reader.results()[-1], reader.folder / "results.jsonl")
    elif words[0] == "serial" and not {"--servers", "--command"} & {*words}:
        words += ["--servers", "gunicorn sync 2"]
    # The first as it is installed; what follows has the same start.
    (reader.execute if words == guided()[0] else reader.run)(*words)


def test_what_the_commands_of_the_guide_made(reader: Reader) -> None:
    """After the tests above."""
    assert (reader.folder / "poorhttp.ini").is_file()
    measured = set()
    for path in reader.results():
        # On a busy machine a configuration may fail that a search tries: it goes on with others.
        samples = [one for one in records(path, "missing") if one["record"] == "sample"]
        assert samples
        measured |= {one["server"] for one in samples}
    assert "|" in reader.execute("report", str(reader.results()[-1]))
    assert "<svg" in (reader.folder / "page.html").read_text(encoding="utf-8")
    # By commands of the reader's own.
    assert {"gunicorn", "mine"} <= measured
    assert (reader.folder / "page.md").is_file()
    assert (reader.folder / "load.xml").is_file()
    assert list((reader.folder / "figures").glob("*.svg"))
    assert list((reader.folder / "tables").glob("*.csv"))
    # The interpreter's own cache is no file of the lab.
    after = {one for one in reader.packages.rglob("*") if "__pycache__" not in one.parts}
    assert after - reader.before == set()


def test_what_needs_the_source_says_so(poorlab: Path, tmp_path: Path) -> None:
    command = [str(poorlab), "figures"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "in a clone" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_word_that_is_nothing(poorlab: Path, tmp_path: Path) -> None:
    command = [str(poorlab), "compare", "HEAD", "."]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 1
    assert re.match("poorlab: 'HEAD' is no .*`poorlab list`", done.stderr)


def test_only_one_package_is_added(poorlab: Path) -> None:
    """No `loadtests`, which would hide a folder of the user's, or be hidden by it."""
    code = "import importlib.util as u; print(u.find_spec('loadtests'), u.find_spec('apps'))"
    python = str(poorlab.with_name("python"))
    assert ended([python, "-I", "-c", code], poorlab.parent) == "None None\n"
