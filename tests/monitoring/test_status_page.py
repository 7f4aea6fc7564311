"""The status page: in a real browser, its bytes, and its stream of events."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.support.admin_address import Admin
from tests.support.browser import Browser
from tests.support.certificate import certificate
from tests.support.http2_client import Client, tls
from tests.testkit.client import Connection
from tests.testkit.process import stopped, workers
from tests.testkit.server import Server, patched, wait_for

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

APP = "tests/apps/watched.py"
PAGES = "tests/apps/status_pages.py"

#: Width and height of windows, in pixels.
DESK, PHONE = (1280, 900), (390, 844)

#: Whether what is on the page is wider than the window.
SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

#: The numbers of the tiles, by their names.
TILES = """Object.fromEntries([...document.querySelectorAll('.tile')].map(
    tile => [tile.querySelector('dt').innerText, tile.querySelector('dd b').innerText]))"""

#: The texts of each row of the table with a caption.
ROWS = """[...[...document.querySelectorAll('table')].find(
    table => table.caption.innerText == '%s').rows].map(
    row => [...row.cells].map(cell => cell.innerText.trim()))"""

#: Contrast of a text with the paper behind it (WCAG 2), for each kind of element.
CONTRASTS = """[...document.querySelectorAll(
    'h1, h2, h3, dt, dd b, caption, th, td, code, small, .pill, .notices li, .good, .bad, a, button'
    )].filter(element => element.innerText).map(element => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([red, green, blue]) => [red, green, blue].map(value => value / 255).map(
        value => value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4).reduce(
        (sum, value, place) => sum + value * [.2126, .7152, .0722][place], 0);
    let paper = element;
    while (paper && numbers(getComputedStyle(paper).backgroundColor)[3] === 0)
        paper = paper.parentElement;
    const below = paper ?? document.documentElement;
    const behind = light(numbers(getComputedStyle(below).backgroundColor));
    const ink = light(numbers(getComputedStyle(element).color));
    const ratio = (Math.max(ink, behind) + .05) / (Math.min(ink, behind) + .05);
    return [ratio, element.outerHTML.slice(0, 80)];
})"""


@pytest.fixture(scope="module")
def served() -> Iterator[Admin]:
    """One server for all tests that do not mind what others have done to it."""
    with Server(APP, "threading", "--admin", "127.0.0.1:0", "--workers", "2") as server:
        yield Admin(server)


@pytest.fixture(scope="module")
def pages() -> Iterator[Server]:
    """Pages of made-up documents."""
    with Server(PAGES, "threading") as server:
        yield server


@pytest.fixture
def look(driver: Chrome, browser: Browser) -> Iterator[Browser]:
    """A tab without a message of the browser about the page, at the end of the test."""
    said(driver)
    yield browser
    for feature in ("Emulation.setEmulatedMedia", "Emulation.clearDeviceMetricsOverride"):
        driver.execute_cdp_cmd(feature, {})
    assert said(driver) == []


def said(driver: Chrome) -> list[object]:
    """What the browser has reported since the last call: errors, and breaches of the policy.

    That a server which has ended cannot be reached does not count.
    """
    found = driver.get_log("browser")  # type: ignore[no-untyped-call]
    return [each for each in found if "net::ERR_CONNECTION_REFUSED" not in each["message"]]


def show(driver: Chrome, size: tuple[int, int], scheme: str) -> None:
    """Have a window of this size, and prefer light or dark."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme_feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_feature]})


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("in-order", DESK, "light"),
        ("troubled", DESK, "dark"),
        ("troubled", PHONE, "light"),
        ("fresh", PHONE, "dark"),
        ("hostile", PHONE, "light"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value[0]),
)
def test_looks(
    name: str, size: tuple[int, int], scheme: str, driver: Chrome, look: Browser, pages: Server
) -> None:
    """It fits the window, and everything can be read."""
    show(driver, size, scheme)
    look.open(f"{pages.urls}/{name}/")
    look.wait_text("Live: updated every two seconds.")
    assert not look.run(SCROLLS)
    contrasts = look.run(CONTRASTS)
    assert contrasts
    assert [each for each in contrasts if each[0] < 4.5] == []
    colour = look.run("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", colour)[:3])) > 384) == (scheme == "light")
    # Each table has a name and headings; each drawing says what it shows.
    unnamed = "[...document.querySelectorAll('table')].filter(table => !table.caption.innerText)"
    assert look.run(unnamed) == []
    assert look.run("document.querySelectorAll('tbody tr:not(.doing):not(:has(th))').length") == 0
    assert look.run("document.querySelectorAll('svg:not([aria-label])').length") == 0


def test_every_text_is_escaped(pages: Server) -> None:
    """In the bytes of the page and of its event."""
    page = pages.get("/hostile/")
    event = pages.get("/hostile/-/events").body.decode()
    name, data = re.fullmatch(r"retry: 2000\nevent: (\w+)\ndata: (.*)\n\n", event).groups()  # type: ignore[union-attr]
    assert name == "content"
    for text in (page.body.decode(), json.loads(data)):
        content = text.partition("<main")[2] or text
        assert not re.search(r"<(script>|img|svg/|/title></style)", content)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert not any(letter in text for letter in "\u202e\u2066\u200b\x1b\x07")


def test_streams_of_http2(look: Browser, tmp_path: Path) -> None:
    """Of a browser and of another client over TLS: each request has its line."""
    gate = tmp_path / "gate"
    certificate().write(tmp_path / "pem")
    options = ("--tls-certificate", str(tmp_path / "pem"), "--http2=tls", "--workers=1")
    bind = ("https://127.0.0.1:0",)
    with Server(APP, "threading", *options, "--admin=127.0.0.1:0", bind=bind) as server:
        look.open(f"https://127.0.0.1:{server.port_of('https')}/")
        (entry,) = look.run("performance.getEntriesByType('navigation')")
        assert entry["nextHopProtocol"] == "h2"
        with Client(tls(server, "h2")) as made:
            held = [made.begin(f"/{name}?until={gate}") for name in ("one", "two")]
            wait_for(lambda: server.log().count(f"entered {gate}\n") == 2, "two requests")
            look.open(Admin(server).url)
            look.wait_text("GET /one?until=")
            look.wait_text("GET /two?until=")
            assert look.run(f"{TILES}['In flight']") == "2"
            # The handshakes are over.
            assert look.run(ROWS % "Connections now, by state")[1] == ["reading", "0"]
            gate.touch()
            assert {made.whole(stream).status for stream in held} == {200}


def test_load_and_a_killed_worker(driver: Chrome, look: Browser, tmp_path: Path) -> None:
    """Without loading the page again: figures, requests in flight, errors, and a new worker."""
    gate = tmp_path / "gate"
    hostile = "/" + quote("<b>&\"'") + "/<script>alert(1)</script>"
    with Server(APP, "threading", "--admin", "127.0.0.1:0", "--workers", "2") as server:
        admin = Admin(server)
        show(driver, DESK, "dark")
        look.open(admin.url)
        look.wait_text("Live: updated every two seconds.")
        look.run("window.stays = true")
        for _ in range(20):
            assert server.get("/fast").status == 200
        assert server.get("/broken?status=500").status == 500
        with server.connect() as connection:
            connection.send(b"GET /<i>\0 HTTP/1.1\r\nHost: test\r\n\r\n")
            assert connection.response().status == 400
        look.wait_for(f"{ROWS % 'Responses since the start'}[2][1] == '20'")
        look.wait_for(f"{ROWS % 'Responses since the start'}[5][1] == '1'")
        (refusal,) = look.run(ROWS % "Last requests that the server itself has refused")[1:]
        assert refusal[0].startswith("GET /<i>")
        assert refusal[1] == "400"
        with server.connect() as waiting:
            waiting.send_request("GET", f"{hostile}?until={gate}")
            server.wait_log(f"entered {gate}\n")
            look.wait_text("<script>alert(1)</script>")
            assert look.run(f"{TILES}['In flight']") == "1"
            row = "document.querySelector('.doing').previousElementSibling"
            busy = look.run(f"{row}.cells[1].innerText")
            show(driver, PHONE, "light")
            assert not look.run(SCROLLS)
            os.kill(int(busy), signal.SIGKILL)
            look.wait_for(f"{ROWS % 'Replaced workers, by reason'}[1][1] == '1'")
            assert waiting.rest() == b""
        # Its counts are still there, and one has come.
        now = set(map(str, workers(server.process.pid)))
        assert busy not in now
        for pid in now:
            look.wait_for(f"document.querySelector('.workers').innerText.includes('{pid}')")
        assert look.run(f"{ROWS % 'Responses since the start'}[2][1]") == "20"
        look.wait_for(f"{TILES}['In flight'] == '0'")
        # What is gone is not shown any more.
        look.wait_for("document.querySelectorAll('.workers tbody tr').length == 2")
        assert busy not in look.run("document.querySelector('.workers').innerText")
        assert look.run("window.stays") is True
        # The configuration, with where it comes from.
        assert ["workers", "2", "--workers"] in look.run(ROWS % "Options that are set, and where")


def test_pause_and_a_server_that_is_replaced(look: Browser, tmp_path: Path) -> None:
    """A reload ends the stream, and the page finds the next process."""
    with Server(APP, "single", "--admin", "127.0.0.1:0", "--workers", "1") as server:
        admin = Admin(server)
        look.open(admin.url)
        look.wait_text("Live: updated every two seconds.")
        look.find("#pause").click()
        assert "Paused." in look.text()
        assert server.get("/").status == 200
        look.find("#pause").click()
        look.wait_for(f"{ROWS % 'Responses since the start'}[2][1] == '1'")
        server.process.send_signal(signal.SIGHUP)
        server.wait_log("reloaded: the new version serves")
        assert server.get("/").status == 200
        look.wait_for(f"{ROWS % 'Responses since the start'}[2][1] == '2'")
        look.wait_for(f"{ROWS % 'Reloads and logs'}[1][1] == '1'")


def test_a_server_that_stops(driver: Chrome, look: Browser) -> None:
    """The page says so, keeps the figures, and goes on with the next server at the address."""
    with Server(APP, "single", "--admin", "127.0.0.1:0", "--workers", "1") as server:
        address = Admin(server).url.removeprefix("http://")
        assert server.get("/").status == 200
        look.open(f"http://{address}")
        look.wait_text("Live: updated every two seconds.")
        said(driver)
        server.stop()
    look.wait_text("The server has stopped")
    assert look.run("document.querySelector('.pill.bad').innerText") == "stopped"
    assert look.run(f"{ROWS % 'Responses since the start'}[2][1]") == "1"
    assert look.run("document.body.classList.contains('old')")
    # The stream has ended in order.
    assert said(driver) == []
    with Server(APP, "single", "--admin", address, "--workers", "1"):
        look.wait_text("Live: updated every two seconds.")
        assert look.run(f"{ROWS % 'Responses since the start'}[2][1]") == "0"
        assert look.run("document.querySelector('.pill').innerText") == "ready"


def test_headers(served: Admin) -> None:
    """Nothing may come from elsewhere, nothing is kept that changes, nobody else may show it."""
    with served.connect() as connection:
        page = connection.request("GET", "/")
        policy = str(page.get("Content-Security-Policy"))
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
        assert page.get("Cache-Control") == "no-store"
        text = page.body.decode()
        assert not re.search(r"<(script|style)[^>]*>[^<]|\son\w+=|style=", text)
        # Without JavaScript it is complete, and loads itself again.
        assert re.search(r'<noscript><meta http-equiv="refresh" content="\d+"></noscript>', text)
        for heading in ("Rates and memory", "Where the time goes", "Workers", "Slowest requests"):
            assert f"<h3>{heading}</h3>" in text
        for name in re.findall(r'(?:href|src)="(-/page[^"]+)"', text):
            part = connection.request("GET", f"/{name}")
            assert part.status == 200
            assert part.get("X-Content-Type-Options") == "nosniff"
            assert part.get("Cache-Control") == "private, max-age=86400"
        assert connection.request("HEAD", "/").body == b""
        assert connection.request("HEAD", "/-/events").body == b""
    with served.connect() as connection:
        assert connection.request("POST", "/", body=b"x").status == 405


def stream(admin: Admin) -> Connection:
    """A stream of events that has begun."""
    connection = admin.connect()
    connection.send_request("GET", "/-/events")
    return connection


def peek(connection: Connection) -> bytes:
    """What has come, which stays there."""
    return connection.socket.recv(1 << 20, socket.MSG_PEEK)


def events(connection: Connection, number: int) -> list[str]:
    """The names of the next events."""
    names: list[str] = []
    received = b""
    while len(names) < number:
        received += connection.socket.recv(1 << 20)
        names = re.findall(r"event: (\w+)\n", received.decode("ascii"))
    return names


def test_many_streams_and_health(served: Admin) -> None:
    """They take no thread: with one more than are held, the others are answered as before."""
    streams = []
    try:
        held = []
        for _ in range(40):
            streams.append(stream(served))
            wait_for(lambda: b"event: " in peek(streams[-1]), "an event")
            # The others are not kept open, so that requests can be answered.
            if b"Content-Length: " not in peek(streams[-1]):
                held.append(streams[-1])
        # A request in flight may be counted as a stream.
        assert 30 <= len(held) <= 32
        for each in held:
            assert set(events(each, 3)) == {"content"}
        with served.connect() as connection:
            assert connection.request("GET", "/-/ready").status == 200
            assert connection.request("GET", "/").status == 200
    finally:
        for each in streams:
            each.close()
    # The thread that sends events has ended with the last of them.
    threads = Path(f"/proc/{served.process}/task")
    wait_for(lambda: len(list(threads.iterdir())) == 1, "one thread is left")


def test_a_main_process_that_does_not_answer(driver: Chrome, look: Browser) -> None:
    """The page says so, and goes on afterwards.

    On a busy machine the main process takes longer than its short limit at other times, too.
    """
    launcher = patched("poorhttp.plugins.monitor.admin.questions", TIMEOUT=0.2)
    with Server(APP, "single", "--admin", "127.0.0.1:0", launcher=launcher) as server:
        admin = Admin(server)
        look.open(admin.url)
        look.wait_text("Live: updated every two seconds.")
        with stopped(server.process.pid):
            look.wait_text("the main process does not answer")
            with admin.connect() as connection:
                assert connection.request("GET", "/").status == 503
        look.wait_text("Live: updated every two seconds.")
        assert "Workers, and what each works on now" in look.text()
    assert all("a status of 503" in str(each) for each in said(driver))
