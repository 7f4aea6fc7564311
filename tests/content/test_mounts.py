"""Mounts and published folders over sockets: in all modes, with `preload`, reloads and mistakes."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import poorhttp
from tests.apps import mounted
from tests.conftest import Serve
from tests.support.forked_command import run_command
from tests.support.nobody import Nobody
from tests.testkit.client import Connection
from tests.testkit.server import Server, alone

ALONE = True

APP = "tests.apps.mounted"
MOUNTS = ("--mount", f"/a={APP}:two", "--mount", f"/a/b={APP}:three")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with two files."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "index.html").write_text("the index")
    (folder / "page.html").write_text("<p>a page")
    return folder


def told(server: Server, target: str, method: str = "GET") -> dict[str, Any]:
    """What the application that answers tells."""
    answer = server.request(method, target)
    assert answer.status == 200, answer
    found: dict[str, Any] = answer.json()
    return found


# Applications


def test_who_answers(serve: Serve) -> None:
    """On one connection: what an application changes in its environ, the next does not see."""
    asked = [
        ("/", "one", "", "/"),
        ("/a", "two", "/a", ""),
        ("/%61/x?y", "two", "/a", "/x"),
        ("/a/x", "two", "/a", "/x"),
        ("/a%2fb", "three", "/a/b", ""),
        ("/a/b/", "three", "/a/b", "/"),
        ("/ab", "one", "", "/ab"),
        ("http://any/a/b/c", "three", "/a/b", "/c"),
    ]
    with serve(f"{APP}:one", *MOUNTS).connect() as connection:
        for target, *expected in sorted(asked * 2) + asked:
            found = connection.request("GET", target).json()
            assert [found[key] for key in ("name", "SCRIPT_NAME", "PATH_INFO")] == expected
            assert found["REQUEST_URI"] == target


def test_nobody_there(mode: str) -> None:
    with Server(f"--mount=/a={APP}:two", mode, *alone(mode)) as server:
        answer = server.get("/nowhere")
        assert (answer.status, answer.body) == (404, b"404 Not Found\n")
        assert answer.get("Content-Type") == "text/plain; charset=utf-8"
        assert server.request("POST", "/nowhere", body=b"content").status == 404
        assert told(server, "/a/x")["name"] == "two"


def test_preload_loads_every_target_once(mode: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    (tmp_path / "loaded.py").write_text(
        f"import os\nwith open({str(pids)!r}, 'a') as file:\n    file.write(f'{{os.getpid()}} ')\n"
        "from tests.apps.mounted import two as application\n"
    )
    options = ("--mount", f"/a={tmp_path}/loaded.py", "--preload")
    with Server(f"{APP}:one", mode, *options) as server:
        assert told(server, "/a")["name"] == "two"
        (template,) = pids.read_text().split()
        assert told(server, "/a")["pid"] != int(template)


def test_a_reload_takes_up_other_mounts(mode: str, tmp_path: Path, files: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_text(f"[http]\nmount = /a={APP}:two\n")
    with Server(f"{APP}:one", mode, "-c", str(file)) as server:
        assert told(server, "/a")["name"] == "two"
        file.write_text(f"[http]\nmount = /a={APP}:three\nstatic = /f={files}\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        assert told(server, "/a")["name"] == "three"
        assert server.get("/f/page.html").body == b"<p>a page"
        file.write_text(f"[http]\nmount = /a={APP}:three\nstatic = /f={files}/none\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("not reloaded; the previous version keeps serving: ")
        server.wait_log(f"{file}:3: static: ")
        assert server.get("/f/page.html").status == 200


# Folders


def test_files_beside_applications(serve: Serve, files: Path) -> None:
    options = (*MOUNTS, "--static", f"/a/files={files}", "--static", f"/a/b/c/d={files}")
    server = serve(f"{APP}:one", *options)
    for target, name in [
        *(("/a/file", "two"), ("/a/filespage.html", "two"), ("/a/b/c", "three")),
        *(("/", "one"), ("/page.html", "one"), ("/x/a/files/page.html", "one")),
    ]:
        assert told(server, target)["name"] == name
    for prefix in ("/a/files", "/a/b/c/d"):
        answer = server.get(f"{prefix}/page.html")
        assert (answer.status, answer.body) == (200, b"<p>a page")
        assert answer.get("Content-Type") == "text/html; charset=utf-8"
        assert server.get(f"{prefix}/").body == b"the index"
        assert server.get(f"{prefix}?a=b").get("Location") == f"{prefix}/?a=b"
        assert server.get(f"{prefix}/none").status == 404
        assert server.request("POST", f"{prefix}/page.html").status == 405


def test_an_application_answers_where_there_is_no_file(serve: Serve, files: Path) -> None:
    options = (*MOUNTS, "--static", f"/={files}", "--static", f"/a={files}", "--static-fallthrough")
    server = serve(f"{APP}:one", *options)
    for path in ("/page.html", "/a/page.html"):
        assert server.get(path).body == b"<p>a page"
    assert told(server, "/none")["name"] == "one"
    assert told(server, "/a/none")["PATH_INFO"] == "/none"
    assert told(server, "/a/b/page.html")["name"] == "three"
    assert told(server, "/a/page.html", "POST")["name"] == "two"


def test_hosts_have_files_of_their_own(mode: str, files: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "page.html").write_text("<p>another")
    file = tmp_path / "x.ini"
    file.write_text(
        f"[http]\nstatic_header = /=X-From: all\n[host:a.example]\ntarget = static:{files}\n"
        f"[host:b.example]\nstatic = /x={tmp_path}/more\nstatic_header = /=X-From: b\n"
    )
    with Server(f"{APP}:one", mode, "-c", str(file), *alone(mode)) as server:

        def get(host: str, target: str) -> tuple[int, bytes, str | None]:
            with server.connect() as connection:
                connection.host = host
                answer = connection.request("GET", target)
            return answer.status, answer.body[:9], answer.get("X-From")

        assert get("a.example", "/page.html") == (200, b"<p>a page", "all")
        assert get("B.EXAMPLE:80", "/x/page.html") == (200, b"<p>anothe", "b")
        assert get("b.example", "/page.html")[0] == 404
        assert get("a.example", "/x/page.html")[0] == 404
        assert get("c.example", "/page.html")[1].startswith(b'{"name": ')


def test_programs_answer_by_the_name_of_anything(mode: str, files: Path, tmp_path: Path) -> None:
    """What RFC 3875 calls a local redirect: the application names what the core has."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "go").write_text('#!/bin/sh\nprintf "Location: %s\\n\\n" "$QUERY_STRING"\n')
    (folder / "go").chmod(0o755)
    options = ("--mount", f"/bin=cgi:{folder}", "--static", f"/files={files}")
    with Server(f"{APP}:programs", mode, *options) as server, server.connect() as connection:
        for program in ("/program", "/bin/go"):
            for method in ("GET", "POST"):
                answer = connection.request(method, f"{program}?/files/page%2ehtml?x=y")
                assert (answer.status, answer.body) == (200, b"<p>a page")
            assert connection.request("HEAD", f"{program}?/files/page.html").status == 200
            assert connection.request("GET", f"{program}?/files/none").status == 404
            found = connection.request("POST", f"{program}?/else?x=y", body=b"content").json()
            assert (found["name"], found["PATH_INFO"]) == ("one", "/else")
        assert connection.request("GET", "/bin/go?/bin/go?/files/none").status == 404
        assert connection.request("GET", f"/bin/go{'?/bin/go' * 20}").status == 500
    # The same where programs are all that is there beside files.
    with Server(f"cgi:{folder}", mode, "--static", f"/files={files}") as server:
        assert server.get("/go?/files/page.html").body == b"<p>a page"


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--mount", "/x=none:y"], 4, "--mount: there is no module none"),
        (["--mount", "/x=wsg:y:z"], 4, '--mount: there is neither a module nor a scheme "wsg"'),
        (["--static", "/x=none"], 3, '--static: "none" is not a folder; relative'),
        (["--static", "/x=docs", "--mount", f"/x={APP}:one"], 3, "static_fallthrough = on lets"),
        (["--static", "/=docs"], 3, "as TARGET says; static_fallthrough = on lets"),
    ],
)
def test_mistakes(words: list[str], code: int, complaint: str) -> None:
    done = run_command("serve", f"{APP}:one", "--bind", "127.0.0.1:0", *words)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_closed_to_the_workers(folder: Path) -> None:
    folder.chmod(0o755)
    closed = folder / "closed"
    closed.mkdir(mode=0)
    done = Nobody(folder).run("serve", f"static:{closed}", "--bind", "127.0.0.1:0")
    assert done.returncode == 3, done.stderr
    assert f"TARGET: {closed} is closed to user " in done.stderr
    assert "Traceback" not in done.stderr


def test_server_with_mounts_and_files(files: Path) -> None:
    def get(path: str) -> bytes:
        with Connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as connection:
            answer = connection.request("GET", path)
        return answer.body if answer.status == 200 else b"%d" % answer.status

    options = {"mount": [f"/a={APP}:two"], "static": f"/f={files}"}
    with poorhttp.Server(mounted.one, **options) as server:  # type: ignore[arg-type]
        assert b'"one"' in get("/")
        assert b'"two"' in get("/a")
        assert get("/f/page.html") == b"<p>a page"
    # Without an application.
    for server in (poorhttp.Server(f"static:{files}"), poorhttp.Server(static=f"/={files}")):
        with server:
            assert (get("/page.html"), get("/none")) == (b"<p>a page", b"404")
