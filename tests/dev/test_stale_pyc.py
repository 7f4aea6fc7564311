"""Stale `.pyc` files: two saves within a second, and a new process loads the second."""

from __future__ import annotations

import os
import py_compile
import sys
import time
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.testkit.server import run, wait_for

#: What a version does before it loads the application.
FRESH = """
import os, sys
from poorhttp.plugins.dev.reload import pyc_loader
class WatchedProject:
    def owns(self, file):
        return file.startswith(os.getcwd() + "/")
pyc_loader.install(WatchedProject())
sys.path.insert(0, os.getcwd())
"""

PLAIN = "import os, sys; sys.path.insert(0, os.getcwd())\n"


def printed(folder: Path, code: str) -> str:
    # Empty is unset.
    env = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": ""}
    result = run(sys.executable, "-W", "error", "-c", code, cwd=folder, env=env)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def save(path: Path, text: str, when: float | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    os.replace(draft, path)
    if when is not None:
        os.utime(path, (when, when))


def compiled(path: Path) -> Path:
    return Path(cache_from_source(str(path)))


SECOND = 1_700_000_000


@pytest.mark.parametrize("how", ["import", "package", "file", "editable"])
def test_two_saves_of_the_same_size_in_one_second(how: str, tmp_path: Path) -> None:
    module = tmp_path / {"package": "shop/web.py", "editable": "src/web.py"}.get(how, "web.py")
    name = "shop.web" if how == "package" else "web"
    load = f"import {name} as module; print(module.word)"
    if how == "editable":
        # Its finder is one of those that setuptools writes.
        finder = f"""
from importlib.util import spec_from_file_location
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return spec_from_file_location(name, {str(module)!r}) if name == "web" else None
sys.meta_path.append(Finder)
"""
        load = finder + load
    if how == "package":
        save(tmp_path / "shop" / "__init__.py", "")
    save(module, "word = 'old'\n", SECOND + 0.2)
    py_compile.compile(str(module), doraise=True)
    save(module, "word = 'new'\n", SECOND + 0.8)

    assert printed(tmp_path, PLAIN + load) == "old"
    if how == "file":
        load = f"""
from poorhttp.targets import module
print(module.import_file({str(module)!r}).word)
"""
        # Not the name of another test's.
        assert printed(tmp_path, load) == "old"
    assert printed(tmp_path, FRESH + load) == "new"


def test_a_source_at_rest_is_compiled_once(tmp_path: Path) -> None:
    module = tmp_path / "web.py"
    save(module, "word = 'old'\n")
    rest = 50_000_000
    # The clock of files has ticks of some milliseconds.
    old = module.stat().st_ctime_ns + rest + 20_000_000
    wait_for(lambda: time.time_ns() > old, "the file to be at rest")
    load = (
        f"module = sys.modules.get('poorhttp.plugins.dev.reload.pyc_loader', sys)\n"
        f"module.SETTLE_TIME = {rest}"
        + """
loaded = []
sys.addaudithook(lambda event, arguments: event == "compile" and loaded.append(arguments[1]))
import web
print(web.word, any(str(name).endswith("web.py") for name in loaded))
"""
    )
    assert printed(tmp_path, FRESH + load) == "old True"
    assert compiled(module).exists()
    assert printed(tmp_path, FRESH + load) == "old False"
    # And Python itself takes it.
    assert printed(tmp_path, PLAIN + load) == "old False"


def test_nothing_is_written_for_what_was_just_saved(tmp_path: Path) -> None:
    module = tmp_path / "web.py"
    save(module, "word = 'old'\n", SECOND)
    assert printed(tmp_path, FRESH + "import web; print(web.word)") == "old"
    assert not compiled(module).exists()


def test_tools_find_what_they_look_for(tmp_path: Path) -> None:
    save(tmp_path / "shop" / "__init__.py", "")
    save(tmp_path / "shop" / "web.py", "def fail():\n    raise ValueError('no')\n")
    save(tmp_path / "shop" / "page.txt", "text")
    code = """
import importlib.machinery, importlib.resources, inspect, linecache, pkgutil, traceback
import shop.web
assert isinstance(shop.web.__spec__.loader, importlib.machinery.SourceFileLoader)
assert inspect.getsource(shop.web.fail).startswith("def fail"), inspect.getsource(shop.web)
assert [module.name for module in pkgutil.iter_modules(shop.__path__)] == ["web"]
assert pkgutil.get_data("shop", "page.txt") == b"text"
assert importlib.resources.files("shop").joinpath("page.txt").read_text() == "text"
try:
    shop.web.fail()
except ValueError:
    assert "raise ValueError('no')" in traceback.format_exc()
del sys.modules["shop.web"]
import runpy
assert "fail" in runpy.run_module("shop.web")
print("done")
"""
    assert printed(tmp_path, FRESH + code) == "done"


def test_a_file_that_appears_is_found(tmp_path: Path) -> None:
    code = """
try:
    import late
except ModuleNotFoundError:
    pass
status = os.stat(".")
with open("late.py", "w") as file:
    file.write("word = 'here'")
# As if the folder had not changed, which is how fine its clock may be.
os.utime(".", ns=(status.st_atime_ns, status.st_mtime_ns))
pyc_loader.forget_folders()
import late
print(late.word)
"""
    assert printed(tmp_path, FRESH + code) == "here"


def test_to_forget_folders_loads_nothing(tmp_path: Path) -> None:
    code = (
        "before = set(sys.modules); pyc_loader.forget_folders(); print(set(sys.modules) - before)"
    )
    assert printed(tmp_path, FRESH + code) == "set()"
