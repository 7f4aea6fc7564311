"""What is served, as a browser shows it: a listing, a site with images, a page with a form.

One mode will do: what a browser makes of an answer is not a matter of who has given it.
"""

from __future__ import annotations

from pathlib import Path

from apps.site import make_site
from tests.browser import Browser, look, page
from tests.server import Server

#: Where the page that looks is, beside what it looks at.
PROBE = "/probe/look.html"


def find(target: str, script: str, tmp_path: Path, *options: str) -> object:
    """What a page finds that looks at a server."""
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe/look.html").write_text(page(script))
    probe = ("--static", f"/probe={tmp_path}/probe")
    with Server(target, "single", *probe, *options) as server:
        return look(server.urls + PROBE, tmp_path / "profile")


def test_listing(tmp_path: Path) -> None:
    """It sorts by size, is no wider than a phone, and its links lead to the files."""
    folder = tmp_path / "files"
    (folder / "sub folder").mkdir(parents=True)
    sizes = {"b & c.txt": 3, "größe.txt": 2_000_000, "a" * 120 + ".txt": 50, "100%.txt": 7}
    for name, size in sizes.items():
        (folder / name).write_bytes(b"x" * size)
    script = """
        const names = page => [...page.querySelectorAll("tbody a")].map(link => link.textContent);
        const first = await open("/");
        const by_size = await shown(() => first.querySelector('th a[href*="sort=size"]').click());
        const links = [...by_size.querySelectorAll("tbody a")].map(link => link.href);
        const sizes = [];
        for (const link of links.filter(link => link.endsWith(".txt")))
            sizes.push((await (await fetch(link)).arrayBuffer()).byteLength);
        return {
            first: names(first),
            by_size: names(by_size),
            sorted: by_size.querySelector("th[aria-sort]").textContent,
            scrolls: by_size.documentElement.scrollWidth > by_size.documentElement.clientWidth,
            sizes,
        };
    """
    found = find(f"static:{folder}", script, tmp_path, "--static-listing", "on")
    by_size = sorted(sizes, key=lambda name: sizes[name])
    assert found == {
        "first": ["sub folder/", *sorted(sizes)],
        "by_size": ["sub folder/", *by_size],
        "sorted": "Size ↑",
        "scrolls": False,
        "sizes": sorted(sizes.values()),
    }


def test_site(tmp_path: Path) -> None:
    """A page of the site, with all its images drawn down to the last corner."""
    make_site.make(tmp_path / "site")
    script = """
        const page = await open("/index5.html");
        return [...page.images].map(image => {
            const [width, height] = [image.naturalWidth, image.naturalHeight];
            const canvas = Object.assign(page.createElement("canvas"), {width, height});
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            const opacity = context.getImageData(width - 1, height - 1, 1, 1).data[3];
            return [width, height, opacity];
        });
    """
    found = find(f"static:{tmp_path}/site", script, tmp_path)
    assert found == [[width, height, 255] for _, width, height in make_site.IMAGES.values()]


def test_form_and_session(tmp_path: Path) -> None:
    """What a form has sent stands in the page behind it, and the session knows who it was."""
    script = """
        const page = await open("/index.html");
        page.querySelector("[name=name]").value = "Ada <b>";
        page.querySelector("[name=text]").value = "Grüße & more";
        const next = await shown(() => page.querySelector("button").click());
        return {
            path: next.location.pathname,
            entry: next.querySelector("li").textContent.replace(/, .* UTC/, ""),
            name: next.querySelector("[name=name]").value,
            scrolls: next.documentElement.scrollWidth > next.documentElement.clientWidth,
        };
    """
    assert find("pages:apps/pages", script, tmp_path) == {
        "path": "/index.html",
        "entry": "Ada <b>: Grüße & more",
        "name": "Ada <b>",
        "scrolls": False,
    }


def test_a_page_that_stays_open(tmp_path: Path) -> None:
    """What happens on it can be watched."""
    with Server("apps.hello.app", "single") as server, Browser(tmp_path / "profile") as browser:
        browser.open(server.urls)
        browser.wait_text("Hello, world!")
        browser.run("setTimeout(() => { document.body.innerText = 'later'; }, 10)")
        browser.wait_text("later")
        browser.open(server.urls + "/another")
        browser.wait_text("Hello, world!")
        assert browser.run("fetch('/').then(answer => answer.status)") == 200
