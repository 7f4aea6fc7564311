"""The debugger's error pages: their content, access control, and consoles."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.conftest import Serve
from tests.support.browser import Browser
from tests.support.forked_command import run_command
from tests.testkit.client import Connection, Response
from tests.testkit.process import children
from tests.testkit.server import Server, command, run, wait_for

APP = "tests/apps/raising.py"
HTML = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
#: The key, in WebDriver.
ENTER = "\ue007"
OURS = (
    "poorhttp/worker/wsgi.py",
    "poorhttp/plugins/dev/debug/",
    "poorhttp/plugins/apps/dispatch",
    "poorhttp/plugins/apps/pages",
)


@pytest.fixture(scope="module")
def server(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Server:
    os.environ["RAISING_FOLDER"] = str(tmp_path_factory.getbasetemp())
    # Several have no console.
    return serve(APP, "--debug", "on", "--workers", "1", tracebacks=True)


@pytest.fixture
def lone() -> Server:
    return Server(APP, "threading", "--debug", "on", tracebacks=True)


def text_of(response: Response) -> str:
    return response.body.decode()


def pin_of(server: Server) -> str:
    return server.wait_line(re.compile(r"ask for the PIN ([\d-]+)[^\d-]"))[1]


# What is shown

SHOWN = {
    "/before": ("ValueError: before, with", "in before"),
    "/after": ("ValueError: after start_response", "in application"),
    "/deep": ("RecursionError", "in deep"),
    "/chained": ("KeyError: 'chained'", "ValueError: before, with", "direct cause"),
    "/grouped": ("grouped",),
    "/leave": ("SystemExit: 7", "in leave"),
    "/surrogate": ("half \\udcff of it",),
    "/unspeakable": ("Unspeakable: <exception str() failed>",),
    "/latin": ("ValueError", "latin.py"),
    "/none": ("TypeError: the application returned None",),
}


@pytest.mark.parametrize("path", SHOWN)
def test_text_and_page(server: Server, path: str) -> None:
    before = server.log().count("the application failed")
    response, page = server.get(path, "Accept: */*"), server.get(path, HTML)
    for answer, kind in ((response, "text/plain"), (page, "text/html")):
        assert answer.status == 500
        assert answer.get("Content-Type") == f"{kind}; charset=utf-8"
    assert response.get("Cache-Control") == "no-store"
    text, html = text_of(response), text_of(page)
    for part in SHOWN[path]:
        assert part in text
    if path != "/none":
        assert re.match(r"( *\+ Exception Group )?Traceback \(most recent call last\):", text)
    assert "Werkzeug" in html
    assert "<b>" not in html.partition("<!--")[0]
    assert len(html) < 4_000_000
    assert not any(ours in text + html for ours in OURS)
    # Once each, and by nobody else.
    server.wait_log("the application failed", before + 2)
    assert server.log().count("the application failed") == before + 2
    assert "Debugging middleware" not in server.log()


def test_sent_already(server: Server) -> None:
    with server.connect() as connection:
        connection.send_request("GET", "/middle", HTML)
        assert b"some" in connection.rest()
    server.wait_log("in the middle")
    assert text_of(server.get("/close", HTML)) == "all"
    server.wait_log("in close")


# Exceptions that the application handles


@pytest.fixture(scope="module")
def handling(serve: Serve) -> Server:
    return serve("tests/apps/handling.py", "--debug", "on", tracebacks=True)


@pytest.mark.parametrize(
    ("path", "status"),
    [("logged", 500), ("printed", 500), ("written", 500), ("info", 500), ("busy", 503)],
)
def test_handled(handling: Server, path: str, status: int) -> None:
    """What it logs, prints or passes to `start_response` is shown, and is in the log once."""
    end = "KeyError: 'no pears in 1'\n"

    def logged() -> int:
        return len(re.findall(f"^ *{end}", handling.log(), re.MULTILINE))

    before = logged()
    page = handling.get(f"/{path}", HTML)
    assert page.status == status
    assert "<title>KeyError: &#39;no pears in 1&#39;" in text_of(page)
    assert re.findall('class="function">(.*?)<', text_of(page))[-1] == "fail"
    text = handling.get(f"/{path}", "Accept: */*")
    assert (text.status, text.get("Content-Type")) == (status, "text/plain; charset=utf-8")
    assert text_of(text).endswith(end)
    # Lines of a later request come behind those of earlier ones.
    handling.get("/logged")
    wait_for(lambda: logged() >= before + 3, "the exceptions in the log")
    assert logged() == before + 3


def test_handled_and_left(handling: Server) -> None:
    """A response that is fine, or is not about an exception of this request, stays as it is."""
    for path in ("fine", "none", "thread"):
        assert text_of(handling.get(f"/{path}", HTML)) == "sorry"
    assert text_of(handling.get("/late", HTML)) == "somesorry"
    # A program gets what it understands, a person the page.
    assert text_of(handling.get("/json", "Accept: */*")) == "sorry"
    assert "<title>KeyError" in text_of(handling.get("/json", HTML))


@pytest.mark.parametrize("source", ["flask", "django"])
def test_framework_with_its_own_switch_off(tmp_path: Path, mode: str, source: str) -> None:
    """With Flask's or Django's debug mode off, their own page for errors is what is developed."""
    text = {"flask": FLASK, "django": DJANGO.replace("DEBUG=True", "DEBUG=False")}[source]
    (tmp_path / "shop.py").write_text(text)
    env = {"FLASK_DEBUG": "0"}
    with Server("shop.py", mode, "--debug", "on", cwd=tmp_path, env=env, tracebacks=True) as server:
        page = server.get("/before", HTML)
        assert page.status == 500
        assert "Werkzeug" not in text_of(page)
        assert "JSONDecodeError" not in text_of(page)


# The console


def test_console_in_browser(lone: Server, browser: Browser) -> None:
    last = "[...document.querySelectorAll('div.frame')].at(-1)"
    with lone as server:
        browser.open(f"http://127.0.0.1:{server.port}/before")
        assert "ValueError: before" in browser.run("document.title")
        browser.wait_for(f"{last}.querySelector('img')")
        browser.run(f"{last}.querySelector('img').click()")
        browser.wait_for("document.querySelector('.pin-prompt form').checkVisibility()")
        browser.find(".pin-prompt [name=pin]").send_keys(pin_of(server) + ENTER)
        browser.wait_for("window.EVALEX_TRUSTED && document.querySelector('pre.console form')")
        browser.find("pre.console input").send_keys("basket['apples'] + 1" + ENTER)
        output = "document.querySelector('pre.console div.output').innerText"
        browser.wait_for(f"{output}.includes('42')")
        assert ">>> basket['apples'] + 1" in browser.run(output)
        browser.run(f"{last}.querySelector('details.values summary').click()")
        browser.wait_for(f"{last}.querySelector('details.values').innerText.includes('basket')")
        # Who opens a console is told the PIN once more, here.
        server.wait_log(pin_of(server), 2)
        assert server.log().count(pin_of(server)) == 2


class Console:
    """A console, as Werkzeug's script uses it."""

    def __init__(self, server: Server, host: str = "localhost") -> None:
        self.server = server
        self.host = host
        html = self.get("/before", HTML)
        self.secret = re.findall(r'SECRET = "(\w+)"', html)[0]
        self.frame = re.findall(r'id="frame-(\d+)"', html)[-1]
        self.enabled = "EVALEX = true" in html
        self.values = "basket<td>" in html
        self.html = html
        self.cookie = "Cookie: a=b"

    def get(self, target: str, *headers: str) -> str:
        with self.server.connect() as connection:
            connection.host = self.host
            response = connection.request("GET", target, *headers)
        cookie = response.get("Set-Cookie")
        if cookie is not None:
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            self.cookie = f"Cookie: {cookie.partition(';')[0]}"
        return text_of(response)

    def again(self) -> str:
        return self.get("/before", HTML, self.cookie)

    def part(self, secret: str = "") -> str:
        """The values of the last frame, as the page asks for them."""
        part = re.findall(r'data-part="(\d+)"', self.html)[-1]
        return self.ask(secret, part=part)

    def ask(self, secret: str = "", **arguments: str) -> str:
        words = "&".join(f"{key}={quote(value)}" for key, value in arguments.items())
        return self.get(f"/?__debugger__=yes&s={secret or self.secret}&{words}", self.cookie)

    def enter(self, pin: str) -> str:
        return self.ask(cmd="pinauth", pin=pin)

    def run(self, code: str, frame: str = "") -> str:
        return self.ask(cmd=code, frm=frame or self.frame)


def test_console_and_values_ask_for_the_pin(server: Server) -> None:
    """A `Host` that is trusted says nothing: a proxy on this machine names itself."""
    console = Console(server)
    assert console.enabled
    for pin in ("", "123-456-789-012"):
        assert not pin or '"auth": false' in console.enter(pin)
        assert "locked" in console.run("6 * 7")
        assert "enter the PIN" in console.part()
    assert not console.values
    assert not Console(server).values
    assert '"auth": true' in console.enter(pin_of(server))
    assert "42" in console.run("6 * 7")
    assert "42" in console.run("basket['apples'] + 1")
    assert "frames of this page are gone" in console.run("6 * 7", frame="1")
    assert "basket<td>" in console.part()
    assert "basket<td>" in console.again()
    # Elsewhere the names are those of the application.
    assert server.get("/console").body == b"fine"
    # Whoever has not seen the page knows nothing of its secret.
    assert "basket<td>" not in console.part("guessed")
    assert "42" not in console.ask("guessed", cmd="6 * 7", frm=console.frame)
    # The cookie is worth nothing where a foreign name leads here.
    console.host = "evil.example"
    assert "basket<td>" not in console.again()
    assert "enter the PIN" in console.part()


def test_guessing(lone: Server) -> None:
    with lone as server:
        console = Console(server)
        console.enter("1")
        # As if that had been done before: each of them takes a while.
        assert "ask for the PIN" in server.log()
        found = []
        for pid in (server.process.pid, *children(server.process.pid)):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                # It may be closed while we look.
                with suppress(FileNotFoundError):
                    found += [path] * ("poorhttp-pin" in os.readlink(path))
        assert found
        assert found[0].read_bytes() == b"\1"
        with found[0].open("r+b") as file:
            file.write(b"\x0a")
        assert '"exhausted": true' in console.enter(pin_of(server))
        assert "locked" in console.run("6 * 7")


def test_hosts(server: Server) -> None:
    """A page of somebody else's has a name that leads to us (DNS rebinding)."""
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil", "8.8.8.8"):
        console = Console(server, host)
        assert not console.enabled, host
        assert not console.values
        assert 'data-part="' not in console.html
        assert host in console.html.partition("No values and no console")[2]
        assert "auth" not in console.enter(pin_of(server)), host
        trusted = Console(server)
        trusted.enter(pin_of(server))
        trusted.host = host
        assert "42" not in trusted.run("6 * 7"), host
    for host in ("127.0.0.1:80", "[::1]:8080", "shop.localhost", "127.9.9.9"):
        console = Console(server, host)
        assert console.enabled, host
        assert '"auth": true' in console.enter(pin_of(server)), host


@pytest.mark.parametrize("mode", ["forking"], indirect=True, scope="session")
def test_several_workers(serve: Serve) -> None:
    server = serve(APP, "--debug", "on", tracebacks=True)
    console = Console(server)
    assert not console.enabled
    assert "No console: 2 workers serve" in console.html
    # Whichever of them is asked, all know who has entered the PIN.
    console.enter(pin_of(server))
    assert all("basket<td>" in console.again() for _ in range(5))


def test_forced() -> None:
    name = os.uname().nodename
    options = ("threading", "--debug", "forced")
    with Server(APP, *options, bind=("0.0.0.0:0",), tracebacks=True) as server:
        for host in ("10.1.2.3:80", f"{name}:8080", "localhost"):
            assert Console(server, host).enabled, host
        assert not Console(server, "evil.example").enabled


def test_pin_of_ones_own() -> None:
    env = {"WERKZEUG_DEBUG_PIN": "11-22"}
    with Server(APP, "threading", "--debug", "on", env=env, tracebacks=True) as server:
        assert pin_of(server) == "11-22"
        assert '"auth": true' in Console(server).enter("1122")
    options = ("--supervisor", "off", "--debug", "on")
    env = {"WERKZEUG_DEBUG_PIN": "off"}
    with Server(APP, "single", *options, env=env, tracebacks=True) as server:
        server.wait_log("ask for no PIN")
        assert "42" in Console(server).run("6 * 7")


# What it may be bound to


@pytest.mark.parametrize(
    ("subcommand", "bind"), [("serve", "0.0.0.0:0"), ("check", "[::]:0"), ("serve", "fd")]
)
def test_exposed(subcommand: str, bind: str) -> None:
    with socket.create_server(("0.0.0.0", 0)) as sock:
        if bind == "fd":
            bind = f"fd:{sock.fileno()}"
        if bind == "[::]:0" and not socket.has_ipv6:
            pytest.skip("no IPv6 here")
        words = command(subcommand, APP, "--debug", "on", "--bind", "127.0.0.1:0", "--bind", bind)
        done = run(*words, inherit=[sock.fileno()])
    assert done.returncode == 3, done.stderr
    assert "--debug: refused on" in done.stderr
    assert "forced" in done.stderr
    if bind.startswith("fd:"):
        assert f"({bind})" in done.stderr


def test_not_exposed(folder: Path) -> None:
    binds = ("127.0.0.1:0", "localhost:0", f"unix:{folder}/s", "127.3.2.1:0")
    words = [word for bind in binds for word in ("--bind", bind)]
    assert run_command("check", APP, "--debug", "on", *words).returncode == 0
    forced = run_command("check", APP, "--debug", "forced", "--bind", "0.0.0.0:0")
    assert forced.returncode == 0
    unix = (f"unix:{folder}/s",)
    with (
        Server(APP, "threading", "--debug", "on", bind=unix, tracebacks=True),
        Connection(f"{folder}/s") as connection,
    ):
        assert connection.request("GET", "/before", HTML).status == 500


# Frameworks, and targets of our own


#: Of the module `json`, below `loads`.
PARSING = ["decode", "raw_decode"]

FLASK = """
import json
from flask import Flask, current_app, request

app = Flask(__name__)

@app.get("/before")
def before():
    basket = {"apples": 41}
    json.loads("{in a view")

@app.get("/debug")
def debug():
    return str(app.debug)
"""

DJANGO = """
import json
import sys
import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import path

settings.configure(
    DEBUG=True, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x",
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"] * 3, SHOP_COLOUR="umber",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": ["."]}],
)

def before(request):
    basket = {"apples": 41}
    json.loads("{in a view")

def missing(request):
    raise Http404("gone")

def template(request):
    return render(request, "basket.html", {"fruit": iter([])})

urlpatterns = [path("before", before), path("missing", missing), path("template", template)]
application = get_wsgi_application()
"""


def check_template(server: Server, folder: Path) -> None:
    """Its source is shown to everybody, request and settings to those who have the PIN."""
    console = Console(server)
    console.html = console.get("/template?colour=teal", HTML)
    assert "TemplateSyntaxError" in console.html
    assert f"{folder}/basket.html:3" in console.html
    assert "     2 | &lt;b&gt;two&lt;/b&gt;\n&gt;    3 | {% for %}\n" in console.html
    [part] = re.findall(r'settings</summary><div data-part="(\d+)"', console.html)
    for secret in ("SHOP_COLOUR", "umber"):
        assert secret not in console.html
        assert secret not in console.ask(part=part)
    console.enter(pin_of(server))
    technical = console.ask(part=part)
    for shown in ("SHOP_COLOUR", "umber", "teal", "Request information", "Template error"):
        assert shown in technical
    assert "umber" in console.get("/template", HTML, console.cookie)
    place = f"In the template {folder}/basket.html:3\n"
    lines = "       2 | <b>two</b>\n  >    3 | {% for %}\n"
    assert place + "       1 | one\n" in (text := text_of(server.get("/template")))
    assert lines in text
    server.wait_log(f"failed in the template {folder}/basket.html:3")
    server.wait_log("  >    3 | {% for %}\n")


@pytest.mark.parametrize("source", [FLASK, DJANGO], ids=["flask", "django"])
def test_framework(tmp_path: Path, mode: str, source: str) -> None:
    (tmp_path / "shop.py").write_text(source)
    (tmp_path / "basket.html").write_text("one\n<b>two</b>\n{% for %}\nfour\n")
    with Server(
        "shop.py", mode, "--debug", "on", "--workers", "1", cwd=tmp_path, tracebacks=True
    ) as server:
        console = Console(server)
        assert "JSONDecodeError: Expecting" in console.html
        assert console.html.count("in a view") < 12
        # It begins with the application; what follows of libraries is named as it is imported.
        assert re.findall('class="function">(.*?)<', console.html) == ["before", "loads", *PARSING]
        assert re.search(r'title="/[^"]+/json/__init__.py">json/__init__.py</cite>:<', console.html)
        assert not console.values
        console.enter(pin_of(server))
        assert "apples" in console.again().partition("basket<td>")[2][:40]
        [view, *_] = re.findall(r'id="frame-(\d+)"', console.html)
        assert "42" in console.run("basket['apples'] + 1", view)
        text = text_of(server.get("/before", "Accept: application/json"))
        assert "JSONDecodeError: Expecting" in text
        assert "site-packages" not in text
        server.wait_log("Traceback", 3)
        assert server.log().count("Traceback") == 3
        if source is FLASK:
            assert server.get("/debug").body == b"True"
            assert "/before" in console.run("request.path + current_app.name", view)
        else:
            missing = server.get("/missing", HTML)
            assert missing.status == 404
            assert "gone" in text_of(missing)
            check_template(server, tmp_path)
