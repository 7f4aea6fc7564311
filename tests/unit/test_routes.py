"""Routes from settings: the list for the core, and the application."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from poorhttp.config import loader
from poorhttp.config.settings import Settings
from poorhttp.errors import ApplicationError, ConfigError
from poorhttp.plugins.apps.cgi.local_redirect import LOCAL_REDIRECT, mount
from poorhttp.targets.mounts import Mounts
from poorhttp.targets.routes import Routes
from tests.apps import mounted
from tests.support.wsgi_call import ask

APP = "tests.apps.mounted"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with folders in it, where we are."""
    for name in ("files", "more"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str) -> Routes:
    """The routes of an ini file."""
    Path("x.ini").write_text(text)
    return Routes(loader.load({}, {}, "x.ini")[0])


def told(application: Any, path: str, **headers: str) -> dict[str, Any]:
    """What the application that answers tells."""
    answer = ask(application, path, headers=headers)
    found: dict[str, Any] = json.loads(answer.body)
    return found


def table(routes: Routes, site: Path) -> list[tuple[str, str, str | None]]:
    """The list for the core, with folders as they are named from `site`."""
    return [
        (host, prefix, folder and os.path.relpath(folder, site))
        for host, prefix, folder, _ in routes.table()
    ]


def test_nothing_without_files() -> None:
    settings = Settings(target=f"{APP}:one", mount=[f"/a={APP}:two", f"/b={APP}:three"])
    assert Routes(settings).table() == []


def test_each_host_has_a_route_for_everything(site: Path) -> None:
    """Otherwise the core would look among those of other hosts."""
    routes = read(
        "[http]\nstatic = /=files\nstatic_listing = on\n[host:a.example]\nstatic = /x=more\n"
        f"static_listing = off\n[host:*.example]\ntarget = {APP}:one\n"
    )
    assert table(routes, site) == [
        ("", "", "files"),
        ("a.example", "/x", "more"),
        ("a.example", "", None),
        ("*.example", "", None),
    ]
    assert [row[3].static_listing for row in routes.table()] == [True, False, False, True]


def test_files_that_let_the_application_answer(site: Path) -> None:
    routes = read(
        f"[http]\ntarget = {APP}:one\nstatic = /=files\n  /a=more\nmount = /a={APP}:two\n"
        "static_fallthrough = on\n"
    )
    assert table(routes, site) == [("", "/a", "more"), ("", "", "files")]
    application = routes.load()
    assert told(application, "/x")["name"] == "one"
    assert told(application, "/a/x")["name"] == "two"
    either_way = Settings(mount=["/a=static:more", f"/a={APP}:two"], static_fallthrough=True)
    assert table(Routes(either_way), site)[0] == ("", "/a", "more")


def test_the_target_alone_is_called_as_it_is(site: Path) -> None:
    assert Routes(Settings(target=f"{APP}:one")).load() is mounted.one
    assert Routes(Settings(target=f"{APP}:one", static="/x=files")).load() is mounted.one
    given = Routes(Settings(static="/x=files"), mounted.two)
    assert given.application is given.load() is mounted.two


@pytest.mark.parametrize(
    ("path", "name", "script", "rest"),
    [
        ("/", "one", "", "/"),
        ("/ab", "one", "", "/ab"),
        ("/a", "two", "/a", ""),
        ("/a/", "two", "/a", "/"),
        ("/a/x/y", "two", "/a", "/x/y"),
        ("/a/b", "three", "/a/b", ""),
        ("/a/b/c", "three", "/a/b", "/c"),
        ("/a/bc", "two", "/a", "/bc"),
        ("//a", "one", "", "//a"),
        ("/a//b", "two", "/a", "//b"),
        ("/" * 8000, "one", "", "/" * 8000),
        ("/a" + "/" * 8000, "two", "/a", "/" * 8000),
        ("/A", "one", "", "/A"),
        ("/gr\xc3\xb6\xc3\x9fe/x", "three", "/gr\xc3\xb6\xc3\x9fe", "/x"),
    ],
)
def test_the_longest_prefix_of_whole_segments(path: str, name: str, script: str, rest: str) -> None:
    mounts = [f"/a={APP}:two", f"/a/b/={APP}:three", f"/größe={APP}:three"]
    application = Routes(Settings(target=f"{APP}:one", mount=mounts)).load()
    found = told(application, path)
    assert (found["name"], found["SCRIPT_NAME"], found["PATH_INFO"]) == (name, script, rest)


def test_below_a_script_name_that_is_there_already() -> None:
    found = told(Mounts({"": {"/a": Mounts({"": {"/b": mounted.one}})}}), "/a/b/c")
    assert (found["SCRIPT_NAME"], found["PATH_INFO"]) == ("/a/b", "/c")


def test_hosts(site: Path) -> None:
    application = read(
        f"[http]\ntarget = {APP}:one\n[host:*.example.org]\ntarget = {APP}:three\n"
        f"[host:example.org [::1]]\ntarget = {APP}:two\n"
        f"[host:*.deep.example.org]\ntarget = {APP}:one\n"
    ).load()
    names = {
        "two": ("example.org", "EXAMPLE.org.:8080", "[::1]", "[::1]:8080"),
        "three": ("www.example.org", "a.b.example.org"),
        "one": ("b.deep.example.org", "xexample.org", "", "[::2]:8080"),
    }
    for name, hosts in names.items():
        assert [told(application, "/", Host=host)["name"] for host in hosts] == [name] * len(hosts)


def test_what_is_mounted_twice_is_loaded_once(site: Path) -> None:
    (site / "counting.py").write_text(
        "made = []\ndef make():\n    made.append(1)\n"
        "    return lambda environ, start_response: (start_response('200 OK', []), [b''])[1]\n"
    )
    read("[http]\nmount = /a=counting:make()\n  /b=counting:make()\n[host:x]\n").load()
    import counting  # type: ignore[import-not-found]

    assert counting.made == [1]


def test_only_programs_are_told_how() -> None:
    seen: list[bool] = []

    def look(environ: Any, start_response: Any) -> list[bytes]:
        seen.append(LOCAL_REDIRECT in environ)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return []

    def whole(*request: Any) -> Any:
        return application(*request)

    application = Mounts({"": {"/p": mount(mounted.program, "/p", whole), "": look}})
    ask(application)
    ask(application, "/p?/")
    assert seen == [False, False]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("static = /a=none", r'^x\.ini:2: static: "none" is not a folder; .* from /'),
        ("static = /a=file", r'^x\.ini:2: static: "file" is not a folder; did you mean "files"'),
        ("static =\n  /a=files\n  /b=none", r'^x\.ini:4: static: "none" is not a folder'),
        ("target = static:none", r'^x\.ini:2: target: "none" is not a folder'),
        ("target = static:", r"^x\.ini:2: target: the path is empty; say static:FOLDER$"),
        ("mount = /a=static:none", r'^x\.ini:2: mount: "none" is not a folder'),
        ("static = /a=x.ini", r'^x\.ini:2: static: "x\.ini" is not a folder'),
        ("x_sendfile = none", r'^x\.ini:2: x_sendfile: "none" is not a folder'),
        ("x_accel_redirect = /a=none", r'^x\.ini:2: x_accel_redirect: "none" is not a folder'),
        ("mount =\n  /a=x:y\n  /b=x:y\n  /a/=x:z", r'^x\.ini:5: mount: "/a" {}3: mount says$'),
        ("static =\n  /a=files\n  /a=more", r'^x\.ini:4: static: "/a" {}3: static says$'),
        ("target = x:y\nmount = /=x:z", r'^x\.ini:3: mount: "/" {}2: target says$'),
        (
            "mount = /a=x:y\nstatic = /a=files",
            r'^x\.ini:3: static: "/a" {}2: mount says; static_fallthrough = on lets',
        ),
        (
            "target = x:y\n[host:b c]\nmount = /a=x:y\nstatic = /a=files",
            r'^x\.ini:5: static: "b/a" {}4: mount says; ',
        ),
        ("mount = /a=tcp:x:y", r"^x\.ini:2: mount: a TCP service has neither hosts nor paths; "),
        ("[host:a]\ntarget = tcp:x:y", r"^x\.ini:3: target: a TCP service has neither"),
        (
            "target = tcp:x:y\nmount = /a=x:y",
            r"^x\.ini:2: target: a TCP service .* beside it, as x\.ini:3: mount does",
        ),
    ],
)
def test_mistakes(text: str, complaint: str, site: Path) -> None:
    served = r"is served already, as x\.ini:"
    with pytest.raises(ConfigError, match=complaint.replace("{}", served)):
        read(f"[http]\n{text}\n")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("target = none:x", ""),
        (f"mount =\n  /a={APP}:one\n  /b=none:x", r"x\.ini:4: mount: "),
        (f"target = {APP}:one\n[host:x]\ntarget = none:x", r"x\.ini:4: target: "),
    ],
)
def test_a_target_that_cannot_be_loaded(text: str, place: str, site: Path) -> None:
    with pytest.raises(ApplicationError, match=f"^{place}there is no module none"):
        read(f"[http]\n{text}\n").load()


def test_a_target_in_the_folder_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules are looked for in the current folder; the message says where there is one."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "only_there.py").write_text("def app(environ, start_response): ...\n")
    file = project / "shop.ini"
    monkeypatch.chdir(tmp_path)
    elsewhere = rf"{project}, the folder of shop.ini: start there, or write"
    nowhere = r"^there is no (module|file) ((?!chdir).)*$"
    for name, message in (("only_there", elsewhere), ("neither", nowhere)):
        for target in (f"{name}:app", f"{name}.py:app"):
            file.write_text(f"[http]\ntarget = {target}\n")
            (settings,) = loader.load({}, {}, str(file))
            with pytest.raises(ApplicationError, match=message):
                Routes(settings).load()
