"""Preimport: modules imported by the fork server, and modules left to each generation.

Each case is a process of its own: a fork server with a project and a folder of installed modules.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.support.development import write
from tests.testkit.server import environment, run

#: A fork server: imports, forks a version, imports what that reports, and forks another one.
FORK_SERVER = """
import gc, json, os, posix, sys, traceback
from poorhttp.config import loader
from poorhttp.config.settings import Settings
from poorhttp.plugins.dev.reload.preimport import import_probe
from poorhttp.plugins.dev.reload.watch.project import WatchedProject
from poorhttp.plugins.dev.reload.preimport.preimport import Preimporter
from poorhttp.worker import mode

told = json.loads(sys.argv[1])
import_probe.IMPORT_TIMEOUT = told["patience"]
settings = Settings(**{"target": "app", **told["options"]})
mode.prepare(mode.load(settings), settings)
begin = (sys.path[:], os.getcwd(), sys.argv[:])
preimporter = Preimporter(WatchedProject.of([settings], None), [settings])


def steps():
    names = list(preimporter.steps())
    assert all(isinstance(name, str) for name in names)
    assert begin == (sys.path[:], os.getcwd(), sys.argv[:])
    return sorted(sys.modules)


def version():
    read, write = os.pipe()
    pid = posix.fork()
    if pid == 0:
        try:
            posix.close(read)
            answer = {}
            gc.disable()
            preimporter.prepare_generation()
            began = set(sys.modules)
            try:
                from poorhttp import targets
                loader.extend_path(settings)
                targets.load(settings.target)
                names = {"answer": answer, "preimporter": preimporter, "began": began}
                exec(told["version"], names)
            except BaseException:
                answer["error"] = traceback.format_exc()
            answer["news"] = preimporter.new_imports()
            answer["again"] = preimporter.new_imports()
            answer["folders"] = sorted(preimporter.folders())
            with open(write, "w") as file:
                json.dump(answer, file)
        finally:
            os._exit(0)
    posix.close(write)
    with open(read) as file:
        answer = json.load(file)
    posix.waitpid(pid, 0)
    return answer


result = {"first": steps(), "cold": version()}
preimporter.add(result["cold"]["news"])
result |= {"second": steps(), "warm": version()}
result |= {"failed": preimporter.failed, "obstacle": preimporter.obstacle}
print(json.dumps(result))
"""


class Installation:
    """A project, and what is installed beside it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.site = folder / "lib" / "site-packages"
        self.project.mkdir()
        self.site.mkdir(parents=True)

    def write(self, name: str, text: str = "") -> None:
        """Write a file of the project."""
        write(self.project, {name: dedent(text)})

    def install(self, **modules: str) -> None:
        """Install modules, `__` being the dot of a package."""
        for name, text in modules.items():
            package, _, module = name.rpartition("__")
            files = {f"{package}/__init__.py": ""} if package else {}
            write(self.site, {**files, f"{package or '.'}/{module}.py": dedent(text)})

    def keep(self, version: str = "", patience: int = 30, **options: Any) -> Any:
        """Run a fork server, and return what it tells; `version` is run in each version."""
        told = {"options": options, "version": dedent(version), "patience": patience}
        path = os.pathsep.join([environment()["PYTHONPATH"], str(self.site)])
        words = (sys.executable, "-c", FORK_SERVER, json.dumps(told))
        result = run(*words, cwd=self.project, env={"PYTHONPATH": path})
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout.splitlines()[-1])
        for which in ("cold", "warm"):
            assert "error" not in answer[which], answer[which]["error"]
            assert answer[which]["again"] == []
        return answer


APPLICATION = """
def application(environ, start_response):
    start_response("200 OK", [])
    return []
"""


@pytest.fixture
def here(tmp_path: Path) -> Installation:
    """A project without any code."""
    return Installation(tmp_path)


# What is imported


def test_a_reading_of_the_project_finds_what_it_imports(here: Installation) -> None:
    names = "below pack__sub pack__named tried late types_only rel cls never star"
    here.install(top="import below", **dict.fromkeys(names.split(), ""))
    here.write("shop/__init__.py", "import rel")
    here.write("shop/web.py", "from .deep import thing\nfrom . import beside")
    here.write("shop/deep.py", "class A:\n    import cls\nthing = 1")
    here.write("shop/beside.py", "from star import *")
    here.write(
        "app.py",
        """
        from typing import TYPE_CHECKING
        import top, pack.sub
        from pack import named
        import shop.web
        try:
            import tried
        except ImportError:
            import absent
        if TYPE_CHECKING:
            import types_only
        if __name__ == "__main__":
            import never
        def application(environ, start_response):
            import late
        """,
    )
    told = here.keep()
    found = {"top", "below", "pack", "pack.sub", "pack.named", "tried", "rel", "cls", "star"}
    assert found <= set(told["first"])
    assert not {"late", "types_only", "never", "absent", "shop", "app"} & set(told["second"])
    assert not found & set(told["cold"]["news"])
    assert told["failed"] == {}
    assert told["obstacle"] == ""


def test_what_a_version_had_to_import_is_warm_for_the_next(here: Installation) -> None:
    here.install(hidden="import deeper", deeper="", late="")
    here.write("app.py", "__import__('hidden')" + APPLICATION)
    told = here.keep(version="import late")
    names = ["deeper", "hidden", "late"]
    assert [name for name in told["cold"]["news"] if name in names] == names
    assert {*names} <= set(told["second"])
    assert told["warm"]["news"] == []
    assert "app" not in told["cold"]["news"]


# What is left to each version


#: Modules that cannot be imported for all versions, and why.
LEFT = [
    ("raise RuntimeError('no\\n  more')", "raises RuntimeError: no more"),
    ("import absent", "needs absent, which is not there"),
    ("import sys; sys.exit(3)", "calls sys.exit(3)"),
    ("raise KeyboardInterrupt", "raises KeyboardInterrupt"),
    ("import os; os._exit(7)", "ends the process (exit code 7)"),
    ("import os; os.kill(os.getpid(), 11)", "crashes (signal 11) when it is imported"),
    ("import threading; threading.Event().wait()", "is not imported within 3 s"),
    ("import config", "needs the project's own config"),
    ("try:\n import config\nexcept ImportError: pass", "needs the project's own config"),
    ("import sys; sys.path.append('/nowhere')", "changes sys.path"),
    ("import sys; sys.argv = ['other']", "changes sys.argv"),
    ("import os; os.chdir('/')", "changes the current folder"),
    ("import signal; signal.signal(15, signal.SIG_IGN)", "changes what signals do"),
    ("kept = open(__file__)", "keeps {site}/odd.py open"),
    (
        "import sys; sys.path.insert(0, {project!r}); import config",
        "needs the project's own config",
    ),
    # It has left nothing behind in what it changed before.
    ("import registry; registry.names.append(1); import config", "needs the project's own config"),
    # There are two of them.
    ("import twice", "needs the project's own twice"),
    ("import thrice", "needs the project's own thrice"),
    (
        "from importlib.machinery import SourceFileLoader as Loader; "
        "Loader('stray', {project!r} + '/config.py').load_module()",
        "imports the project's own stray",
    ),
]


def test_modules_that_are_left(here: Installation, tmp_path: Path) -> None:
    project, site, more = str(here.project), str(here.site), tmp_path / "more"
    names = [f"odd{number}" for number in range(len(LEFT))]
    for name, (text, _) in zip(names, LEFT, strict=True):
        # It does so only where there is no version.
        odd = text.replace("{project!r}", repr(project)).replace("\n", "\n    ")
        here.install(**{name: f"import os, good\nif 'VERSION' not in os.environ:\n    {odd}\n"})
    here.install(good="", other="", registry="names = []", twice="", thrice="")
    write(more, {"thrice.py": "whose = 'own'"})
    here.write("twice.py", "whose = 'own'")
    here.write("config.py")
    imports = f"import {', '.join(names)}, other, registry\n"
    here.write("app.py", f"import os; os.environ['VERSION'] = 'yes'\n{imports}{APPLICATION}")
    version = "import registry, thrice, twice\n"
    version += "answer['own'] = twice.whose, thrice.whose, registry.names"
    told = here.keep(version, patience=3, pythonpath=[str(more)])
    reasons = zip(names, LEFT, strict=True)
    failed = {name: why.replace("{site}/odd", f"{site}/{name}") for name, (_, why) in reasons}
    assert told["failed"] == failed
    assert told["obstacle"] == ""
    assert not {*names} & {*told["second"]}
    # What is wrong with one is no harm to the others.
    assert {"other", "good"} <= set(told["second"])
    assert "registry" in told["first"]
    assert told["warm"]["news"] == []
    assert told["cold"]["own"] == told["warm"]["own"] == ["own", "own", []]


def test_an_editable_install_is_the_projects_own(here: Installation, tmp_path: Path) -> None:
    source = tmp_path / "elsewhere/editable.py"
    write(tmp_path, {"elsewhere/editable.py": "import good\nword = 'own'"})
    here.install(
        good="",
        finder=f"""
        import sys
        from importlib.util import spec_from_file_location
        class Finder:
            @classmethod
            def find_spec(cls, name, path=None, target=None):
                if name == "editable":
                    return spec_from_file_location(name, {str(source)!r})
        sys.meta_path.append(Finder)
        """,
        sitecustomize="import finder",
        plugged="import editable",
    )
    here.write("app.py", "import editable, plugged" + APPLICATION)
    told = here.keep(version="import editable; answer['word'] = editable.word")
    assert told["warm"]["word"] == "own"
    assert "good" in told["first"]
    assert told["failed"] == {"plugged": "needs the project's own editable"}
    assert "editable" not in told["second"]
    assert str(source.parent) in told["warm"]["folders"]


# What makes preimporting impossible


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(60,), name='Ticker', daemon=True).start()",
            "below starts a thread (Ticker)",
        ),
        ("import socket; line = socket.socket()", "below opens a socket"),
        (
            "import subprocess, sys\n"
            "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)",
            "below starts a process",
        ),
    ],
)
def test_an_obstacle(text: str, why: str, here: Installation) -> None:
    here.install(app_imports="import below", below=text, sound="")
    here.write("app.py", "import sound, app_imports" + APPLICATION)
    told = here.keep()
    # A pipe to a process is an obstacle too, whichever is seen first.
    either = (why, "app_imports opens a pipe") if "process" in why else (why,)
    assert told["obstacle"] in [f"{each} when it is imported" for each in either]
    assert list(told["failed"]) == ["app_imports"]
    # The fork server has nothing of it.
    assert "sound" in told["second"]
    assert not {"below", "app_imports"} & set(told["second"])


# What a version sees


def test_a_version_is_like_a_fresh_process(here: Installation) -> None:
    here.install(
        hook="""
        import sys
        class Finder:
            def find_spec(self, name, path, target=None):
                return None
        sys.meta_path.append(Finder())
        """,
        environ="import os; os.environ['SET_BY_MODULE'] = 'yes'",
    )
    here.write("own.py", "word = 'own'")
    here.write("app.py", "import own, hook, environ, random" + APPLICATION)
    told = here.keep(
        version="""
        import linecache, os, random, sys
        answer["path"] = sys.path
        answer["guards"] = [type(finder).__name__ for finder in sys.meta_path]
        answer["random"] = random.random()
        names = "SET_BY_MODULE", "DJANGO_SETTINGS_MODULE"
        answer["environ"] = [os.environ.get(name) for name in names]
        answer["began"] = sorted(began)
        answer["loader"] = type(sys.modules["own"].__loader__).__name__
        """
    )
    cold, warm = told["cold"], told["warm"]
    assert {"hook", "environ"} <= set(warm["began"])
    assert not {"own", "app"} & set(warm["began"])
    assert "ImportBlocker" not in warm["guards"]
    assert warm["guards"].count("CheckedPycFinder") == 1
    assert warm["guards"].count("Finder") == 1
    assert str(here.site) in warm["path"]
    assert cold["random"] != warm["random"]
    assert warm["environ"] == ["yes", None]
    assert warm["loader"] == "CheckedPycLoader"
