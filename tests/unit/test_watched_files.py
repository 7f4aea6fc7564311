"""Files of a project that the development server watches, and their kinds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import poorhttp
from poorhttp.config import loader
from poorhttp.config.registry import Entry, registry
from poorhttp.config.settings import Settings
from poorhttp.plugins.dev.reload.watch import project as limits
from poorhttp.plugins.dev.reload.watch.glob_pattern import Glob
from poorhttp.plugins.dev.reload.watch.project import WatchedProject
from poorhttp.targets.target import Target

Of = Callable[..., WatchedProject]


@pytest.fixture
def of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Of:
    """Makes the project of a server that is started in a folder, with these settings."""

    def make(folder: Path = tmp_path, *, live: bool = True, **settings: object) -> WatchedProject:
        monkeypatch.chdir(folder)
        return WatchedProject.of([Settings(live=live, **settings)], None)

    return make


def files(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("*.sql", ["a.sql", "deep/down/a.sql"], ["a.sql3"]),
        ("data/*.json", ["data/a.json"], ["other/data/a.json"]),
        ("data/*.csv", ["data/a.csv"], ["data/x/a.csv"]),
        ("/srv/*.json", ["srv/a.json"], []),
        ("data/**/*.json", ["data/a.json", "data/x/y/a.json"], ["a.json"]),
        ("generated/**", ["generated/x/y.py", "generated"], ["x/generated/y.py"]),
        ("generated", ["lib/generated/x.py"], []),
        ("generated/", ["generated/x.py"], []),
        ("./a.py", ["a.py"], []),
        ("**/x/*.py", ["x/a.py"], []),
        ("a?c", ["abc"], ["ac"]),
        ("[a-c]x", ["bx"], ["dx"]),
        ("[!a-c]x", ["dx"], ["ax"]),
        ("a*b*c", ["a1b2b3c"], []),
        ("a*b", ["ab"], ["abc"]),
        ("a[", ["a["], []),
    ],
)
def test_what_a_glob_matches(glob: str, matching: list[str], others: list[str]) -> None:
    assert [path for path in [*matching, *others] if Glob(glob).matches(path)] == matching


#: Files by their kind, as long as no folder of theirs says something else.
FILES = {
    "code": (
        *("app.py", "deep/er/module.py", "native.cpython-311-x86_64-linux-gnu.so"),
        *("page.html", "page.jinja2", "mail.j2", "x.mako", "x.tmpl", "de/messages.mo"),
        *("site.ini", "setup.cfg", "pyproject.toml", "conf.yaml", "conf.yml", ".env", ".env.local"),
    ),
    "asset": ("site.css", "x/y.js", "logo.SVG", "photo.jpg", "font.woff2"),
    "": (
        *("data.json", "app.db", "app.sqlite3", "app.sqlite3-wal", "app.log", "notes.txt"),
        *("README", "app.py~", ".app.py.swp", "4913", "app.py.tmp.123", "#app.py#", "._app.py"),
        *("app.py___jb_tmp___", "app.py___jb_old___", "flycheck_app.py", "app_flymake.py"),
        *(".hidden.py", ".git/hooks/x.py", "node_modules/x/y.py", "__pycache__/app.pyc"),
        *("x.egg-info/x.py", ".mypy_cache/x.py", ".#app.py"),
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_kinds(kind: str, tmp_path: Path, of: Of) -> None:
    kinds = {name: of().kind(str(tmp_path / name)) for name in FILES[kind]}
    assert kinds == dict.fromkeys(FILES[kind], kind)


def test_folders_say_what_their_files_are(tmp_path: Path, of: Of) -> None:
    for name in ("pages", "cgi-bin", "public", "public/app"):
        (tmp_path / name).mkdir()
    project = of(
        target="pages:pages",
        mount=["/cgi=cgi:cgi-bin", "/app=public/app/main.py"],
        static=["/s=public"],
    )

    def kind(name: str) -> str:
        return project.kind(str(tmp_path / name))

    assert kind("pages/menu.inc") == kind("pages/x.py") == kind("pages/a.html") == "code"
    assert kind("pages/site.css") == "asset"
    assert kind("pages/guestbook.db") == ""
    # Programs are started anew for each request.
    assert kind("cgi-bin/run.py") == kind("cgi-bin/run") == "asset"
    assert kind("cgi-bin/guestbook.db") == ""
    assert kind("public/index.html") == kind("public/x.json") == kind("public/demo.py") == "asset"
    assert kind("public/index.html~") == ""
    # The deepest folder decides.
    assert kind("public/app/main.py") == kind("public/app/x.html") == "code"


def test_a_target_of_a_new_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names a folder, a file, or nothing in the file system: none of these raises."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file.txt").touch()
    entry = Entry("targets", "queue", "")
    entry._object = Target(lambda rest: None, "queue")
    monkeypatch.setitem(registry.entries["targets"], "queue", entry)
    for rest in ("folder", "folder/file.txt", "amqp://nowhere/at-all", ""):
        project = WatchedProject.of([Settings(target=f"queue:{rest}")], None)
        assert project.roots == [str(tmp_path)], rest


def test_globs_of_the_user(tmp_path: Path, of: Of) -> None:
    files(tmp_path, "shared/sql/a.sql", "shared/sql/a.py", "work/generated/x.py", "work/app.py")
    project = of(
        tmp_path / "work",
        reload_include=["*.txt", "data/**/*.json", "*.css", "../shared/**/*.sql"],
        reload_exclude=["generated/**", "test_*.py", "secret.txt"],
    )

    def kind(name: str) -> str:
        return project.kind(str(tmp_path / "work" / name))

    assert kind("notes.txt") == kind("data/x/y.json") == kind("site.css") == "code"
    assert kind("other.json") == kind("generated/x.py") == kind("deep/test_x.py") == ""
    # What is excluded goes before what is included.
    assert kind("secret.txt") == ""
    assert str(tmp_path / "work/generated") not in project.folders()
    # A glob may lead out of the project.
    assert project.kind(str(tmp_path / "shared/sql/a.sql")) == "code"
    assert project.kind(str(tmp_path / "shared/sql/a.py")) == ""
    assert str(tmp_path / "shared/sql") in project.folders()


def test_hosts_services_and_pythonpath_are_the_project_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, "work/site.ini", "lib/x.py", "one/app.py", "two/index.html", "three/x.html")
    (tmp_path / "work/site.ini").write_text(
        f"[http]\nlive = on\npythonpath = {tmp_path}/lib\n"
        f"[service:a]\ntarget = {tmp_path}/one/app.py\nbind = unix:a\n"
        f"[service:b]\ntarget = static:{tmp_path}/two\nbind = unix:b\n"
        f"[host:example.org]\ntarget = pages:{tmp_path}/three\n"
    )
    monkeypatch.chdir(tmp_path / "work")
    project = WatchedProject.of(loader.load({}, {}, "site.ini"), "site.ini")
    names = ("work", "lib", "one", "two", "three")
    assert set(project.folders()) == {str(tmp_path / name) for name in names}
    assert project.kind(str(tmp_path / "two/index.html")) == "asset"
    assert project.kind(str(tmp_path / "three/x.html")) == "code"


def test_what_the_server_writes_does_not_reload_it(tmp_path: Path, of: Of) -> None:
    files(tmp_path, "compiled/x.html.py", "logs/error.html")
    project = of(pages_modules="compiled", error_log="./logs/error.html", target="pages:.")
    assert project.kind(str(tmp_path / "compiled/x.html.py")) == ""
    assert project.kind(str(tmp_path / "logs/error.html")) == ""
    assert str(tmp_path / "compiled") not in project.folders()


def test_whose_a_module_is(tmp_path: Path, of: Of) -> None:
    project = of()
    files(tmp_path, ".venv/pyvenv.cfg", "env/pyvenv.cfg", "env/bin/tool.py")
    library = os.path.dirname(os.__file__)

    # An editable install is one of the project's, wherever it lies.
    own = (str(tmp_path / "app.py"), "relative.py", "/somewhere/else/src/package/__init__.py")
    others = (
        *(None, "<frozen os>", os.__file__, poorhttp.__file__, pytest.__file__),
        os.path.join(library, "lib-dynload", "_json.so"),
        os.path.join(library, "site-packages", "flask", "__init__.py"),
        "/usr/lib/python3/dist-packages/apt.py",
        str(tmp_path / ".venv/lib/python3/site-packages/x.py"),
        *(str(tmp_path / ".venv/x.py"), str(tmp_path / "env/bin/tool.py")),
    )
    assert [path for path in (*own, *others) if project.owns(path)] == [*own]
    assert project.kind(os.path.join(library, "site-packages", "flask", "app.py")) == "outside"
    assert project.kind(os.path.join(library, "site-packages", "flask", "x.json")) == ""
    assert project.kind("/somewhere/else/src/package/x.py") == "code"
    assert project.kind("/somewhere/else/src/package/x.html") == ""


def test_folders_without_a_source_are_not_watched(tmp_path: Path, of: Of) -> None:
    files(
        tmp_path,
        *("app.py", "shop/web/views.py", ".git/objects/00/x", "node_modules/x/y/z.js"),
        *("env/pyvenv.cfg", "env/lib/x.py", "shop/__pycache__/x.pyc", "target/CACHEDIR.TAG"),
        *("target/debug/x.rs", "x.egg-info/PKG-INFO", "lib/site-packages/x.py", ".idea/x.xml"),
    )
    expected = {str(tmp_path / name) for name in ("", "shop", "shop/web", "lib")}
    assert set(of().folders()) == expected


def test_the_server_itself_is_not_watched(of: Of, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor what the system keeps in folders, for one who starts it in /."""
    ours = os.path.dirname(poorhttp.__file__)
    watched = of(Path(ours).parent).folders()
    assert not any(folder.startswith(ours) for folder in watched)
    monkeypatch.setattr(limits, "FOLDERS", 100)
    assert not {"/proc", "/sys"} & set(of(Path("/")).folders())


def test_a_folder_that_is_named_is_watched_whatever_its_name(tmp_path: Path, of: Of) -> None:
    files(tmp_path, ".build/site/app.py", ".build/other/x.py")
    project = of(target=".build/site/app.py")
    assert project.folders() == [str(tmp_path), str(tmp_path / ".build/site")]
    assert project.kind(str(tmp_path / ".build/site/app.py")) == "code"


def test_links_are_followed_and_no_folder_is_watched_twice(tmp_path: Path, of: Of) -> None:
    files(tmp_path, "work/a/x.py", "elsewhere/deep/y.py")
    (tmp_path / "work/loop").symlink_to(tmp_path / "work")
    (tmp_path / "work/a/up").symlink_to("..")
    (tmp_path / "work/same").symlink_to("a")
    (tmp_path / "work/shared").symlink_to("../elsewhere")
    (tmp_path / "work/broken").symlink_to("nowhere")
    names = ("work", "work/a", "work/shared", "work/shared/deep")
    assert of(tmp_path / "work").folders() == [str(tmp_path / name) for name in names]
