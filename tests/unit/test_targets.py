"""Loading of targets, and messages about targets that cannot be loaded."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poorhttp import dispatch
from poorhttp.config.registry import registry
from poorhttp.errors import ApplicationError
from poorhttp.targets import load
from tests.support.plug_in import install, known
from tests.support.wsgi_call import ask

APPLICATION = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [__name__.encode()]
"""

TABLE = """
from poorhttp import dispatch as http
from page import hello

handlers = {"/": (http.METHOD_GET, hello)}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that is the current one, and Python's modules and path as they were after."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    sys.path_importer_cache.clear()


def write(path: Path, text: str = APPLICATION) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def failure(target: str) -> ApplicationError:
    """Why a target cannot be loaded."""
    with pytest.raises(ApplicationError) as caught:
        load(target)
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.exit_code == 4
    return caught.value


# What is loaded


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("shop.web:application", "shop.web"),
        ("shop.web", "shop.web"),
        ("shop/web.py:application", "shop.web"),
        ("shop/web.py", "shop.web"),
        ("./shop/web.py", "shop.web"),
        ("plain.py", "plain"),
        ("plain:application", "plain"),
        ("wsgi:plain:application", "plain"),
        ("wsgi:sub/plain2.py", "plain2"),
        ("sub/plain2.py:application", "plain2"),
        # A file imports its neighbours, one of a package relatively.
        ("sub/web.py", "plain2"),
        ("deep/store/site/web.py", "store.parts"),
    ],
)
def test_a_module_and_a_file(folder: Path, target: str, name: str) -> None:
    write(folder / "shop/__init__.py", "")
    write(folder / "shop/web.py")
    write(folder / "plain.py")
    write(folder / "sub/plain2.py")
    write(folder / "sub/web.py", "from plain2 import application")
    write(folder / "deep/store/__init__.py", "")
    write(folder / "deep/store/site/__init__.py", "")
    write(folder / "deep/store/site/web.py", "from ..parts import application")
    write(folder / "deep/store/parts.py")
    assert ask(load(target)).text == name


def test_wsgi_is_a_scheme_unless_it_is_a_module(folder: Path) -> None:
    assert failure("wsgi:application")
    write(folder / "wsgi.py", APPLICATION + "create_app = lambda: application\n")
    assert ask(load("wsgi:application")).text == "wsgi"
    assert ask(load("wsgi:create_app()")).text == "wsgi"
    assert ask(load("wsgi:wsgi:application")).text == "wsgi"
    write(folder / "other.py")
    assert ask(load("wsgi:other.py")).text == "other"


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("app = found", ""),
        ("application = found; app = None", ""),
        ("class site: wsgi = found", ":site.wsgi"),
        ("def make_app(): return found", ":make_app()"),
        ("class site:\n    @staticmethod\n    def make(): return found", ":site.make()"),
        ("class site:\n    def __call__(self, e, s): return []\nweb = site()", ":web"),
    ],
)
def test_the_callable(folder: Path, text: str, expression: str) -> None:
    write(folder / "web.py", f"def found(environ, start_response): return []\n{text}\n")
    assert callable(load(f"web.py{expression}"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('"test"', "test"),
        ("'a:b', \"c(d:e)\"", "a:b,c(d:e)"),
        ("1, -2.5, None, [True], ('a',), {'b': {3}}", "1,-2.5,None,[True],('a',),{'b': {3}}"),
        ('name="x:y", n=2', "name=x:y,n=2"),
        ('"web.py:make()"', "web.py:make()"),
        (" ", ""),
    ],
)
@pytest.mark.parametrize("place", ["web", "web.py", "north(1):south/web.py", "wsgi:web"])
def test_a_factory_is_given_literals(folder: Path, place: str, arguments: str, told: str) -> None:
    text = (
        "class shop:\n"
        "    @staticmethod\n"
        "    def make(*a, **k):\n"
        "        text = ','.join([*map(str, a), *(f'{n}={v}' for n, v in k.items())])\n"
        "        def application(environ, start_response):\n"
        "            start_response('200 OK', [('Content-Type', 'text/plain')])\n"
        "            return [text.encode()]\n"
        "        return application\n"
        "make = shop.make\n"
    )
    write(folder / "web.py", text)
    write(folder / "north(1):south/web.py", text)
    assert ask(load(f"{place}:make({arguments})")).text == told
    assert ask(load(f"{place}:shop.make({arguments})")).text == told


def test_a_script_of_mod_wsgi(folder: Path) -> None:
    """It may have the name of the module that it imports; its bytecode is not kept."""
    write(folder / "shop.py")
    write(folder / "shop.wsgi", "from shop import application\nname = __name__\n")
    for target in ("shop.wsgi", "shop.wsgi:application", f"{folder}/shop.wsgi"):
        assert ask(load(target)).text == "shop"
    assert sys.modules["shop_wsgi"].name == "shop_wsgi"
    assert len([*folder.rglob("*.pyc")]) <= 1


def test_files_of_one_name_do_not_get_into_each_others_way(folder: Path) -> None:
    for shop in ("north", "south", "far/south"):
        write(folder / shop / "web.py", APPLICATION + f"\nwhere = {shop!r}\n")
    names = [ask(load(f"{shop}/web.py")).text for shop in ("north", "south", "far/south")]
    assert names == ["web", "south_web", "south_web_2"]
    assert [sys.modules[name].where for name in names] == ["north", "south", "far/south"]


def test_a_file_is_run_once(folder: Path) -> None:
    write(folder / "web.py", APPLICATION + "\nimport sys\nsys.path.append('/ran')\n")
    assert load("web.py") is load("./web.py:application") is load("web:application")
    assert sys.path.count("/ran") == 1


# Dispatch tables


@pytest.mark.parametrize(
    "target", ["dispatch:site", "dispatch:site/", "dispatch:site/dispatch_table.py"]
)
def test_a_dispatch_table(folder: Path, target: str) -> None:
    write(folder / "site/dispatch_table.py", TABLE)
    write(folder / "site/page.py", "def hello(req): return 'Hello'")
    application = load(target)
    assert isinstance(application, dispatch.Application)
    assert application.folder == str(folder / "site")
    assert ask(application).text == "Hello"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("dispatch:", "names no folder"),
        ("dispatch:sites", 'there is no folder sites; did you mean "dispatch:site"?'),
        ("dispatch:./sites", 'there is no folder ./sites; did you mean "dispatch:./site"?'),
        ("dispatch:far/away", "there is no folder far/away"),
        ("dispatch:site", 'table.py in the folder site; did you mean "dispatch_tabel.py"'),
        ("dispatch:site", "there is no dispatch_table.py in the folder site"),
        ("dispatch:empty", "there is no dispatch_table.py in the folder empty"),
        ("dispatch:wrong", "handlers['/'] is 5, it should be (http.METHOD_GET, function)"),
        ("dispatch:broken", "cannot be imported: ZeroDivisionError: division by zero ("),
    ],
)
def test_a_dispatch_table_that_is_none(folder: Path, target: str, message: str) -> None:
    write(folder / "site/dispatch_tabel.py", TABLE)
    write(folder / "wrong/dispatch_table.py", "handlers = {'/': 5}")
    write(folder / "broken/dispatch_table.py", "handlers = {'/': 1 / 0}")
    (folder / "empty").mkdir()
    assert message in str(failure(target))


# What is wrong


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "no application is named: say package.module:callable"),
        ("  ", "no application is named"),
        (":application", "names no module"),
        ("web.py:", "names no callable after the colon"),
        ("web.py:app lication", '"app lication" is not the name of a callable'),
        ("web.py:app ; mine", "or create_app(); a comment needs a line of its own"),
        ("web.py:application(1", '"application(1" is not the name of a callable'),
        ("w-b:application", '"w-b" is neither a module nor a file'),
        ("weg.py", 'there is no file weg.py in {folder}; did you mean "web.py"?'),
        ("shob/web.py", 'there is no folder {folder}/shob; did you mean "shop"?'),
        ("shop", "shop has neither application nor app"),
        ("./shop", "{folder}/shop is a folder, not a file; say {folder}/shop/FILE.py:callable"),
        ("./site", "{folder}/site is a folder, not a file; say dispatch:{folder}/site"),
        ("weg:application", "there is no module weg, in {folder} or elsewhere on Python's path"),
        ("weg:application", 'on Python\'s path; did you mean "web"?'),
        ("shop.weg:application", "there is no module shop.weg"),
        ("dispach:site", 'there is neither a module nor a scheme "dispach" (in dispach:site)'),
        ("dispach:site", 'did you mean "dispatch:site"?'),
        ("web:aplication", 'web has no "aplication" ({folder}/web.py)'),
        ("web:aplication", 'did you mean "application"?'),
        ("web.py:site.wsgy", 'web.py:site has no "wsgy"; did you mean "wsgi"?'),
        ("web.py:number", "web.py:number is not an application: it cannot be called, it is 5"),
        ("web.py:number()", "web.py:number(): number cannot be called, it is 5"),
        ("web.py:make_app", "takes no arguments, an application takes two (PEP 3333)"),
        ("more.py:create_app", "takes one argument, an application takes two (PEP 3333); where it"),
        ("more.py:create_app", "makes the application, say more.py:create_app()"),
        ("more.py:of", "say more.py:of(...), with its arguments"),
        ("more.py:make_app", "its name says that it makes an application; say more.py:make_app()"),
        ("more.py:of(name)", 'the arguments of "of(name)" have to be literals'),
        ("more.py:of(*[1])", 'the arguments of "of(*[1])" have to be literals'),
        ("more.py:of(**{})", 'the arguments of "of(**{{}})" have to be literals'),
        ("more.py:of(1)(2)", 'the arguments of "of(1)(2)" have to be literals'),
        ("more.py:of(1, 2)", "more.py:of(1, 2) failed: TypeError: of() takes 1 positional"),
        ("web.py:make_app", "where it makes the application, say web.py:make_app()"),
        ("web.py:broken()", "web.py:broken() failed: ZeroDivisionError: division by zero"),
        ("web.py:broken()", "({folder}/web.py, line 9)"),
        ("web.py:leaving()", "web.py:leaving() failed: SystemExit: sys.exit(3) was called"),
        ("web.py:leaving()", "({folder}/web.py, line 10)"),
        ("web.py:asking()", "web.py:asking() failed: TypeError: asking() missing 1 required"),
        ("web.py:none()", "web.py:none() is not an application: it cannot be called, it is None"),
        ("factory.py", "factory.py has neither application nor app"),
        ("factory.py", "did you mean factory.py:create_app()?"),
        ("other.py", 'other.py has neither application nor app; did you mean "other.py:Applic'),
        ("empty.py", "app: say which callable it is, as empty.py:NAME"),
        ("none.py", "none.py:application is not an application: it cannot be called, it is None"),
        ("text.txt", "is not a Python file: its name must end in .py or .wsgi"),
    ],
)
def test_what_is_wrong_is_told(folder: Path, target: str, message: str) -> None:
    write(
        folder / "web.py",
        "def application(environ, start_response): return []\n"
        "def make_app(): return application\n"
        "class site:\n"
        "    wsgi = application\n"
        "number = 5\n"
        "import sys\n"
        "def asking(name): return application\n"
        "def none(): pass\n"
        "def broken(): return 1 / 0\n"
        "def leaving(): sys.exit(3)\n",
    )
    write(folder / "shop/__init__.py", "")
    write(folder / "site/dispatch_table.py", TABLE)
    write(folder / "factory.py", "def create_app(): return None")
    more = "def create_app(config=None): pass\ndef of(name): pass\ndef make_app(a=1, b=2): pass\n"
    write(folder / "more.py", more)
    write(folder / "other.py", "class Application: pass")
    write(folder / "empty.py", "")
    write(folder / "none.py", "application = None")
    write(folder / "text.txt", "")
    assert message.format(folder=folder) in str(failure(target))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n1 / 0", "ZeroDivisionError: division by zero ({folder}/web.py, line 2)"),
        ("def f(:\n", "SyntaxError: invalid syntax ({folder}/web.py, line 1)"),
        ("import nothing_there", "ModuleNotFoundError: No module named 'nothing_there' ("),
        ("import nothing_there", "({folder}/web.py, line 1)"),
        ("from json import nothing", "({folder}/web.py, line 1)"),
        ("import json\n\njson.loads('{')", "JSONDecodeError: Expecting property name"),
        ("import json\n\njson.loads('{')", "({folder}/web.py, line 3)"),
        ("import neighbour", "LookupError: deep inside ({folder}/neighbour.py, line 3)"),
        ("import sys\nsys.exit(2)", "SystemExit: sys.exit(2) was called ({folder}/web.py, line 2)"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines ("),
        ("raise AssertionError", "AssertionError ({folder}/web.py, line 1)"),
        ("raise GeneratorExit('x')", "GeneratorExit: x ({folder}/web.py, line 1)"),
    ],
)
@pytest.mark.parametrize("target", ["web.py", "web", "web:application"])
def test_a_module_that_fails_is_told(folder: Path, target: str, text: str, message: str) -> None:
    write(folder / "web.py", text)
    write(folder / "neighbour.py", "def f():\n    #\n    raise LookupError('deep inside')\nf()\n")
    error = failure(target)
    assert "cannot be imported: " in str(error)
    assert message.format(folder=folder) in str(error)
    assert error.__cause__ is not None
    assert error.__cause__.__traceback__ is not None
    assert "web" not in sys.modules


def test_the_interrupt_of_a_person_is_not_a_failure(folder: Path) -> None:
    write(folder / "web.py", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load("web.py")


def test_a_module_that_hides_behind_pythons_own_is_told(folder: Path) -> None:
    write(folder / "json.py")
    assert os.path.join("json", "__init__.py") in str(failure("json:application"))


# Schemes of others


@pytest.fixture
def plug_in(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], None]]:
    """Installs a distribution whose scheme `tea` is the function `load` of the text."""
    site = tmp_path_factory.mktemp("site")
    with known(site, monkeypatch):
        yield lambda text: install(
            site, "teapot", {"targets": "tea = teapot:load"}, {"teapot": text}
        )


def test_a_scheme_of_somebody_else(plug_in: Callable[[str], None]) -> None:
    plug_in(
        "def load(rest):\n"
        "    def application(environ, start_response):\n"
        "        start_response('200 OK', [('Content-Type', 'text/plain')])\n"
        "        return [rest.encode()]\n"
        "    return application\n"
    )
    assert ask(load("tea:green/leaves:hot")).text == "green/leaves:hot"


def test_a_module_comes_before_a_scheme(folder: Path, plug_in: Callable[[str], None]) -> None:
    plug_in("load = None")
    write(folder / "tea.py")
    assert ask(load("tea:application")).text == "tea"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("load = 5", 'the plug-in of the scheme "tea" is not a function'),
        ("1 / 0", 'the plug-in of the scheme "tea" cannot be loaded: ZeroDivisionError'),
        ("", 'the plug-in of the scheme "tea" cannot be loaded: AttributeError'),
        ("def load(rest): return 1 / 0", "tea:green cannot be loaded: ZeroDivisionError"),
        ("def load(rest): return 5", "tea:green is not an application: 5"),
        (
            "from poorhttp.errors import ApplicationError\n"
            "def load(rest): raise ApplicationError('no water')",
            "no water",
        ),
    ],
)
def test_a_scheme_of_somebody_else_that_fails(
    plug_in: Callable[[str], None], text: str, message: str
) -> None:
    plug_in(text)
    assert message in str(failure("tea:green"))


def test_an_installed_module_comes_before_a_scheme_that_was_meant(folder: Path) -> None:
    """Its name is near that of a scheme, and it is not in the current folder."""
    write(folder / "elsewhere/dispach.py")
    sys.path.insert(0, str(folder / "elsewhere"))
    assert ask(load("dispach:application")).text == "dispach"


@pytest.mark.parametrize("scheme", registry.names("targets"))
def test_each_scheme_takes_the_rest_and_perhaps_settings(scheme: str) -> None:
    target = registry.entries["targets"][scheme].load()
    parameters = list(inspect.signature(target.load).parameters)
    assert parameters[1:] == ["settings"] * target.takes_settings


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("poorhttp.dispatch.request", "poorhttp.plugins.apps.dispatch.request"),
        ("poorhttp.pages.session", "poorhttp.plugins.apps.pages.session"),
        ("poorhttp.dev.discovery.django.wsgi", "poorhttp.plugins.discovery.django.wsgi"),
        ("poorhttp.dev.discovery.bottle_default", "poorhttp.plugins.discovery.bottle_default"),
    ],
)
def test_a_module_that_users_have_written_down(former: str, present: str) -> None:
    """Also by `poorhttp init`, as the target of an ini file."""
    assert importlib.import_module(former) is importlib.import_module(present)
