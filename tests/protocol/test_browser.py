"""Responses in a real browser: a listing, a site with images, a page with a form.

One mode will do: what a browser makes of an answer is not a matter of who has given it.
"""

from __future__ import annotations

import re
from pathlib import Path

from loadtests.apps import study_sites
from tests.support.browser import Browser
from tests.testkit.server import Server

#: As wide as a phone.
PHONE = 360, 640

#: Whether what is on the page is wider than the window.
SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def test_listing(tmp_path: Path, browser: Browser) -> None:
    """It sorts by size, is no wider than a phone, and its links lead to the files."""
    (tmp_path / "sub folder").mkdir()
    sizes = {"b & c.txt": 3, "größe.txt": 2_000_000, "a" * 120 + ".txt": 50, "100%.txt": 7}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * size)
    links = "[...document.querySelectorAll('tbody a')]"
    names = f"{links}.map(link => link.textContent)"
    fetched = f"""Promise.all({links}.filter(link => link.href.endsWith(".txt")).map(
        async link => (await (await fetch(link.href)).arrayBuffer()).byteLength))"""
    by_size = sorted(sizes, key=lambda name: sizes[name])
    browser.resize(*PHONE)
    with Server(f"static:{tmp_path}", "single", "--static-listing", "on") as server:
        browser.open(server.urls)
        assert browser.run(names) == ["sub folder/", *sorted(sizes)]
        browser.find('th a[href*="sort=size"]').click()
        browser.wait_for("location.search.includes('sort=size')")
        assert browser.run(names) == ["sub folder/", *by_size]
        assert browser.find("th[aria-sort]").text == "Size ↑"
        assert browser.run("innerWidth") == PHONE[0]
        assert not browser.run(SCROLLS)
        assert browser.run(fetched) == sorted(sizes.values())


def test_site(tmp_path: Path, browser: Browser) -> None:
    """A page of the site, with all its images drawn down to the last corner."""
    study_sites.make(tmp_path / "site")
    drawn = """[...document.images].map(image => {
        const [width, height] = [image.naturalWidth, image.naturalHeight];
        const canvas = Object.assign(document.createElement("canvas"), {width, height});
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        const opacity = context.getImageData(width - 1, height - 1, 1, 1).data[3];
        return [width, height, opacity];
    })"""
    with Server(f"static:{tmp_path}/site", "single") as server:
        browser.open(f"{server.urls}/index5.html")
        found = browser.run(drawn)
    assert found == [[width, height, 255] for _, width, height in study_sites.IMAGES.values()]


def test_form_and_session(browser: Browser) -> None:
    """What a form has sent stands in the page behind it, and the session knows who it was."""
    browser.resize(*PHONE)
    with Server("pages:apps/pages", "single") as server:
        browser.open(f"{server.urls}/index.html")
        browser.find("[name=name]").send_keys("Ada <b>")
        browser.find("[name=text]").send_keys("Grüße & more")
        browser.find("button").click()
        browser.wait_for("document.querySelector('li')")
        assert browser.run("location.pathname") == "/index.html"
        assert re.sub(", .* UTC", "", browser.find("li").text) == "Ada <b>: Grüße & more"
        assert browser.find("[name=name]").get_property("value") == "Ada <b>"
        assert browser.run("innerWidth") == PHONE[0]
        assert not browser.run(SCROLLS)
