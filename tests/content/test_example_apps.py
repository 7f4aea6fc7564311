"""The example applications, called as WSGI servers call them; `apps/downloads` over a socket."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from poorhttp.targets import load
from tests.support.wsgi_call import ask
from tests.testkit.server import Server, run

if TYPE_CHECKING:
    pass

APPS = Path(__file__).parents[2] / "apps"


def links(page: str) -> dict[str, str]:
    """The links of a page, by their last segment and the way of handing out."""
    found = re.findall(r'href="(/(\w+)/([^?]*)\?[^"]*)"', page)
    return {f"{way} {name}": href.replace("&amp;", "&") for href, way, name in found}


@pytest.mark.parametrize("way", ["sendfile", "accel", "wrapper"])
def test_downloads_refuse(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    application = load(str(APPS / "downloads/app.py"))
    link = links(ask(application).text)[f"{way} terms.txt"]
    until = int(re.findall(r"until=(\d+)", link)[0])
    for wrong in (
        link.partition("?")[0],
        link.replace("terms.txt", "price-list.csv"),
        *(link.replace(str(until), other) for other in (str(until + 1), "x")),
        *(link[:-1], f"{link[:-1]}é"),
    ):
        assert ask(application, wrong).status == 403, wrong
    below = [f"/{way}{path}" for path in ("", "/", "/none", "/../app.py")]
    for nowhere in ("/terms.txt", "/x/y", *below):
        assert ask(application, nowhere).status == 404, nowhere
    # Its time is over.
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3601)
    assert ask(application, link).status == 403


def test_downloads_are_sent_by_the_server(mode: str) -> None:
    content = (APPS / "downloads/files/terms.txt").read_bytes()
    with Server("--config=apps/downloads/downloads.ini", mode) as server:
        found = links(server.get("/").body.decode())
        for way in ("sendfile", "accel", "wrapper"):
            answer = server.get(found[f"{way} terms.txt"])
            assert (answer.status, answer.body) == (200, content)
            assert answer.get("Content-Type") == "application/octet-stream"
            assert answer.get("X-Sendfile") is answer.get("X-Accel-Redirect") is None
        answer = server.get(found["sendfile terms.txt"], "Range: bytes=0-3")
        assert (answer.status, answer.body) == (206, content[:4])
        assert server.get(found["accel terms.txt"] + "0").status == 403
        assert server.get("/protected/terms.txt").status == 404


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("hello/app.py", "Hello, world!"),
        ("page/app.py", "</html>"),
        ("echo/app.py", '"path": "/"'),
        ("slow/app.py?seconds=0.001", "slept 0.001 s"),
        ("stream/app.py?chunks=2&size=4&delay=0.001", "0 ..1 .."),
        ("upload/app.py", "<form"),
        ("errors/app.py", "/raise-before"),
    ],
)
def test_examples_answer(path: str, text: str) -> None:
    file, _, query = path.partition("?")
    assert text in ask(load(str(APPS / file)), f"/?{query}").text


def test_light_and_heavy() -> None:
    application = load(f"dispatch:{APPS / 'lightheavy'}")
    assert 600 <= len(ask(application, "/light").body) <= 700
    verdicts = re.findall(r"<li><code>(.*)</code>: (yes|no)</li>", ask(application, "/heavy").text)
    assert [verdict for _, verdict in verdicts] == ["yes"] * 6 + ["no"] * 9
    assert ask(application, "/heavy", "HEAD").body == b""
    assert ask(application, "/light", "POST").status == 405
    assert ask(application, "/other").status == 404


def test_the_bare_page_needs_nothing_of_ours() -> None:
    code = "import sys, bare; print('poorhttp' in sys.modules)"
    done = run(sys.executable, "-S", "-c", code, cwd=APPS / "lightheavy")
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_sizes_of_the_site(tmp_path: Path) -> None:
    """As in the Uniserve study: 8.6 kB, 1.9 kB and so on."""
    run(sys.executable, APPS / "site" / "make_site.py", tmp_path, "--klone")
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == {
        **{f"index{number}.html": 8_600 for number in range(1, 6)},
        "logo.gif": 1_900,
        "2.jpg": 44_000,
        "3.png": 66_100,
        "4.gif": 79_600,
        "5.png": 145_000,
        "page.html": 1_536,
        "large.bin": 10 * 2**20,
    }
